#include "api/http/response_head.h"

#include <ctime>

#include "api/http/http_text.h"

namespace fermata::api {
namespace {

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 507: return "Insufficient Storage";
    default: return "Unknown";
  }
}

bool frames_the_message(std::string_view name) {
  for (const std::string_view ours : {"content-length", "transfer-encoding", "connection", "date", "content-type"}) {
    if (equals_ignoring_case(name, ours)) return true;
  }
  return false;
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  head.append(name).append(": ");
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      head += c;
    } else {
      head += '%';
      head += kHex[byte >> 4];
      head += kHex[byte & 15];
    }
  }
  head += "\r\n";
}

}  // namespace

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string response_head(const HttpResponse& response, const HeadOptions& options) {
  std::string head;
  head.reserve(256);
  head.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ").append(reason_of(response.status));
  head.append("\r\n");
  append_header(head, "date", options.date);
  const bool body = has_body(response.status);
  if (body && !response.content_type.empty()) append_header(head, "content-type", response.content_type);
  if (body && options.framing == Framing::kLength) {
    append_header(head, "content-length", std::to_string(response.body.size()));
  }
  if (body && options.framing == Framing::kChunked) append_header(head, "transfer-encoding", "chunked");
  if (!options.keep_alive) append_header(head, "connection", "close");
  if (options.keep_alive && !options.http11) append_header(head, "connection", "keep-alive");
  append_header(head, "x-content-type-options", "nosniff");
  bool says_caching = false;
  for (const auto& [name, value] : response.headers) {
    if (frames_the_message(name)) continue;
    says_caching = says_caching || equals_ignoring_case(name, "cache-control");
    append_header(head, name, value);
  }
  if (!says_caching) append_header(head, "cache-control", "no-store");
  return head.append("\r\n");
}

std::string http_date(std::int64_t unix_seconds) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char rest[32];
  std::strftime(rest, sizeof rest, " %Y %H:%M:%S GMT", &utc);
  std::string date = kDays[utc.tm_wday];
  date.append(utc.tm_mday < 10 ? ", 0" : ", ").append(std::to_string(utc.tm_mday)).append(" ");
  return date.append(kMonths[utc.tm_mon]).append(rest);
}

}  // namespace fermata::api
