#include "api/http/chunk_decoder.h"

#include <algorithm>

namespace fermata::api {
namespace {

constexpr int kSizeDigitsMax = 8;

bool is_line_text(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }

}  // namespace

bool ChunkDecoder::size_digit(char c) {
  int digit;
  if (c >= '0' && c <= '9') {
    digit = c - '0';
  } else if (c >= 'a' && c <= 'f') {
    digit = c - 'a' + 10;
  } else if (c >= 'A' && c <= 'F') {
    digit = c - 'A' + 10;
  } else {
    return false;
  }
  if (++n_digits_ > kSizeDigitsMax) return false;
  chunk_left_ = chunk_left_ * 16 + static_cast<std::uint64_t>(digit);
  place_ = Place::kSize;
  return true;
}

// Everything but the data itself.
bool ChunkDecoder::step(char c) {
  switch (place_) {
    case Place::kSizeFirst: return size_digit(c);
    case Place::kSize:
      if (size_digit(c)) return true;
      if (c == '\r') {
        place_ = Place::kSizeLf;
      } else if (c == ';' && n_digits_ <= kSizeDigitsMax) {
        place_ = Place::kExtension;
      } else {
        return false;
      }
      return true;
    case Place::kExtension:
      ++extra_bytes_;
      if (c == '\r') place_ = Place::kSizeLf;
      return c == '\r' || is_line_text(c);
    case Place::kSizeLf: place_ = chunk_left_ == 0 ? Place::kTrailerFirst : Place::kData; return c == '\n';
    case Place::kDataCr: place_ = Place::kDataLf; return c == '\r';
    case Place::kDataLf:
      place_ = Place::kSizeFirst;
      n_digits_ = 0;
      return c == '\n';
    case Place::kTrailerFirst:
    case Place::kTrailer:
      ++extra_bytes_;
      if (c == '\r') {
        place_ = place_ == Place::kTrailerFirst ? Place::kEndLf : Place::kTrailerLf;
        return true;
      }
      place_ = Place::kTrailer;
      return is_line_text(c);
    case Place::kTrailerLf: place_ = Place::kTrailerFirst; return c == '\n';
    case Place::kEndLf: place_ = Place::kEnd; return c == '\n';
    case Place::kData:
    case Place::kEnd: break;
  }
  return false;
}

ChunkDecoder::State ChunkDecoder::put(std::string_view bytes, std::size_t& consumed, std::string& body) {
  consumed = 0;
  while (consumed < bytes.size() && place_ != Place::kEnd) {
    if (place_ == Place::kData) {
      const auto n = std::min<std::uint64_t>(chunk_left_, bytes.size() - consumed);
      body.append(bytes.substr(consumed, n));
      consumed += n;
      chunk_left_ -= n;
      body_bytes_ += n;
      if (chunk_left_ == 0) place_ = Place::kDataCr;
      continue;
    }
    if (!step(bytes[consumed++])) return State::kMalformed;
    if (extra_bytes_ > extra_bytes_max_) return State::kTooLarge;
    // Told when the size is, before its data come.
    if (place_ == Place::kData && chunk_left_ > body_bytes_max_ - body_bytes_) return State::kTooLarge;
  }
  return place_ == Place::kEnd ? State::kDone : State::kMore;
}

}  // namespace fermata::api
