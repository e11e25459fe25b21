#include "api/respond.h"

#include <algorithm>
#include <charconv>

#include "base/nearest.h"

namespace fermata::api {

HttpResponse json_response(const json::value& body, int status) {
  HttpResponse response;
  response.status = status;
  response.body = to_text(body);
  response.headers.emplace_back("cache-control", "no-store");
  return response;
}

HttpResponse event_stream_head() {
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}};
  return head;
}

HttpResponse error_response(const WireError& error) {
  HttpResponse response = json_response(error_object(error), error.status);
  for (auto& header : error_headers(error)) response.headers.push_back(std::move(header));
  return response;
}

HttpResponse error_response(const Error& error, json::object fermata) {
  return error_response(wire_error(error, std::move(fermata)));
}

Result<std::int64_t> number_parameter(const HttpRequest& request, std::string_view name, std::int64_t otherwise,
                                      std::int64_t least, std::int64_t most) {
  const std::optional<std::string> text = request.parameter(name);
  if (!text) return otherwise;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= least && value <= most) return value;
  return invalid(name,
                 std::string(name) + " must be a number from " + std::to_string(least) + " to " + std::to_string(most),
                 *text);
}

Result<void> check_word(const HttpRequest& request, std::string_view name, std::span<const std::string_view> known) {
  const std::optional<std::string> value = request.parameter(name);
  if (!value || std::find(known.begin(), known.end(), *value) != known.end()) return {};
  return no_such_word(name, *value, known);
}

Result<std::set<std::string, std::less<>>> words_parameter(const HttpRequest& request, std::string_view name,
                                                           std::span<const std::string_view> known) {
  std::set<std::string, std::less<>> words;
  const std::string value = request.parameter(name).value_or("");
  for (std::size_t begin = 0; begin < value.size();) {
    const std::size_t end = std::min(value.find(',', begin), value.size());
    std::string word = value.substr(begin, end - begin);
    if (std::find(known.begin(), known.end(), word) == known.end()) return no_such_word(name, word, known);
    words.insert(std::move(word));
    begin = end + 1;
  }
  return words;
}

Error no_such_word(std::string_view name, const std::string& value, std::span<const std::string_view> known) {
  std::string message = std::string(name) + " must be one of";
  for (const std::string_view& word : known) message += (&word == &known.front() ? " " : ", ") + std::string(word);
  if (const std::string_view hint = nearest(value, known); !hint.empty())
    message += "; did you mean " + std::string(hint) + "?";
  return invalid(name, std::move(message), value);
}

Error invalid(std::string_view field, std::string message, std::string detail) {
  return {Code::kInvalidArgument, std::move(message), std::move(detail), false, std::string(field)};
}

}  // namespace fermata::api
