#include "client/remote_server.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/limits.h"
#include "client/json_member.h"

namespace fermata::client {
namespace {

Code code_of(int status) {
  switch (status) {
    case 401: return Code::kUnauthenticated;
    case 403: return Code::kForbidden;
    case 404: return Code::kNotFound;
    case 409: return Code::kWrongState;
    case 410: return Code::kGone;
    case 413: return Code::kTooLarge;
    case 421: return Code::kWrongHost;
    case 422: return Code::kGrammar;
    case 429: return Code::kBusy;
    case 501: return Code::kUnsupported;
    case 503: return Code::kDraining;
    default: return status < 500 ? Code::kInvalidArgument : Code::kIo;
  }
}

HttpCall post_call(const std::string& path, const json::object& body) {
  return {.method = "POST", .path = path, .body = json::serialize(body)};
}

std::string hint_for(int status) {
  return status == 401 ? "; set FERMATA_API_KEY to a key that 'fermata new-key' printed" : "";
}

Error endless() { return {Code::kIo, "the server's list has no end", {}, false}; }

}  // namespace

Error error_of(int status, const json::object& body) {
  Error error{
      code_of(status), "the server answers with status " + std::to_string(status), {}, status >= 429 && status != 501};
  const json::object* told = object_at(body, "error");
  if (!told) {  // ours says why, each time
    error.code = Code::kIo;
    error.message = "what answers there is no fermata server; --url names another (it answers with status " +
                    std::to_string(status) + ")";
    return error;
  }
  const json::object& what = *told;
  if (std::string message = text_at(what, "message"); !message.empty()) error.message = std::move(message);
  error.message += hint_for(status);
  if (const json::object* ours = object_at(what, "fermata")) error.detail = text_at(*ours, "detail");
  error.field = text_at(what, "param");
  return error;
}

Result<json::object> object_of(const Result<HttpAnswer>& answer) {
  if (!answer) return answer.error();
  boost::system::error_code failed;
  const json::value parsed = json::parse(answer->body, failed);
  if (answer->status >= 300) return error_of(answer->status, parsed.is_object() ? parsed.get_object() : json::object());
  if (failed || !parsed.is_object())
    return Error{Code::kIo, "what answers there is no fermata server: it says no JSON object", {}, false};
  return parsed.get_object();
}

Result<json::object> RemoteServer::get(const std::string& path) {
  return object_of(http_.ask({.method = "GET", .path = path, .body = {}}));
}

Result<json::object> RemoteServer::post(const std::string& path, const json::object& body) {
  return object_of(http_.ask(post_call(path, body)));
}

void RemoteServer::post_later(const std::string& path, const json::object& body,
                              std::function<void(Result<json::object>)> then) {
  http_.begin(post_call(path, body), {},
              [then = std::move(then)](const Result<HttpAnswer>& answer) { then(object_of(answer)); });
}

Result<json::array> RemoteServer::list(const std::string& path) {
  const char joint = path.find('?') == std::string::npos ? '?' : '&';
  json::array all;
  std::string after;
  std::size_t n_bytes = 0;
  bool has_more = true;
  for (std::size_t n_pages = 0; has_more; ++n_pages) {
    if (n_pages == limits::kListPagesMax) return endless();
    const std::string query =
        joint + std::string("limit=100") + (after.empty() ? "" : "&after=" + percent_encoded(after));
    const Result<HttpAnswer> answer = http_.ask({.method = "GET", .path = path + query, .body = {}});
    const Result<json::object> page = object_of(answer);
    if (answer) n_bytes += answer->body.size();
    if (n_bytes > limits::kAnswerBytesMax) return endless();
    if (!page) return page.error();
    const Result<json::array> data = data_of(*page);
    if (!data) return data.error();
    all.insert(all.end(), data->begin(), data->end());
    has_more = is_true_at(*page, "has_more");
    std::string last = text_at(*page, "last_id");
    if (has_more && (last.empty() || last == after)) return endless();
    after = std::move(last);
  }
  return all;
}

}  // namespace fermata::client
