#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace fermata {

// Why a call did not do what was asked. One enum for the whole product; it is mapped once to HTTP, to WebSocket and to
// exit codes.
enum class Code {
  kInvalidArgument,  // the request can never work as written
  kTooLarge,         // a stated limit was passed; the message carries both figures
  kContextLength,    // prompt and answer have more tokens than there is room for
  kNotFound,
  kModelNotFound,  // a request names a model that is not served
  kWrongState,     // the generation is in a state that does not allow this
  kBusy,           // a bounded queue is full; try later
  kNoCells,        // the KV pool cannot hold it now
  kNoSequences,    // all sequence ids are taken
  kGrammar,        // the grammar is malformed, or allows no token
  kAborted,        // an interrupt ended the work before it was done
  kUnsupported,    // this build, backend or model cannot do it
  kModel,          // the model file is missing, damaged or of a kind we cannot run
  kEngine,         // the engine failed in a way no request is to blame for
  kIo,
  // --- at the border to clients
  kUnauthenticated,  // no key, or an unknown one
  kForbidden,        // the key may not do this, or a web page of another origin asks
  kWrongHost,        // the Host header names nobody we are
  kMediaType,        // the body is not of the type that is read here
  kMethod,           // the path is there, but not for this method
  kGone,             // it was there, and was forgotten by a limit
  kStale,            // what it was decided on has changed since
  kAlreadyResumed,   // this pause was used by another call
  kPaused,           // the generation is paused, and who waits cannot be told otherwise
  kIdempotency,      // the key was used with another body
  kTextSent,         // an edit would take back text that a client has, who cannot be told
  kDuplicate,        // a name that is to be given is another's
  kDraining,         // the server is stopping, or still loading; another replica or a later try may serve
};

std::string_view to_string(Code code);

struct Error {
  Code code = Code::kInvalidArgument;
  std::string message;  // one sentence that says what to do
  std::string detail;   // evidence: the offending value, the place, the limit
  bool retryable = false;
  std::string field = {};  // of a request: its path, e.g. "messages[2].content"
};

// A value or an Error, with the interface of std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return content_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return std::get<0>(checked()); }
  const T& value() const& { return std::get<0>(checked()); }
  T&& value() && { return std::get<0>(std::move(checked())); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    FERMATA_CHECK(!has_value());
    return std::get<1>(content_);
  }
  Error&& error() && {
    FERMATA_CHECK(!has_value());
    return std::get<1>(std::move(content_));
  }

 private:
  std::variant<T, Error>& checked() {
    if (!has_value()) internal::check_failed(__FILE__, __LINE__, "has_value()", std::get<1>(content_).message);
    return content_;
  }
  const std::variant<T, Error>& checked() const { return const_cast<Result*>(this)->checked(); }

  std::variant<T, Error> content_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return !failed_; }
  const Error& error() const {
    FERMATA_CHECK(failed_);
    return error_;
  }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace fermata
