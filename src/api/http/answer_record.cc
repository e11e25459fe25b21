#include "api/http/answer_record.h"

#include "api/http/http_text.h"
#include "api/http/request_id.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

constexpr std::size_t kMethodBytesKept = 16;

// Of a request that was told nothing.
int status_of_nothing(CutBy by) {
  switch (by) {
    case CutBy::kKey: return 401;
    case CutBy::kStop: return 503;
    case CutBy::kNobody:
    case CutBy::kClient:
    case CutBy::kError: break;
  }
  return 499;
}

}  // namespace

void AnswerRecord::begin(const HttpRequest& request, std::string_view raw_path) {
  told_.method = ascii_excerpt(request.method, kMethodBytesKept);
  told_.path = ascii_excerpt(raw_path, limits::kLogPathBytesMax);
  if (const std::string_view id = request.header("x-request-id"); is_request_id(id)) told_.id = id;
}

void AnswerRecord::admit(const Principal& principal) {
  told_.key = principal.name;
  told_.tenant = principal.tenant;
}

void AnswerRecord::head(const HttpResponse& response, std::string_view noted_header) {
  told_.status = response.status;
  if (noted_header.empty()) return;
  for (const auto& [name, value] : response.headers)
    if (name == noted_header) told_.noted = ascii_excerpt(value);
}

void AnswerRecord::become_websocket() {
  told_.status = 101;
  is_websocket_ = true;
}

void AnswerRecord::end(std::string_view name, Ending how) {
  told_.end = name;
  told_.ending = how;
}

void AnswerRecord::cut(CutBy by) {
  if (!told_.is_whole && told_.cut_by == CutBy::kNobody) told_.cut_by = by;
}

const std::string& AnswerRecord::id() {
  if (told_.id.empty()) told_.id = new_request_id();
  return told_.id;
}

void AnswerRecord::tell(const TellAnswered& answered, Instant now) {
  if (!answered || (told_.status == 0 && told_.method.empty())) return;
  id();
  AnsweredRequest told = told_;
  told.took = now - begun_;
  const bool has_left = told.ending == Ending::kLeft;
  if (has_left) told.ending.reset();  // the status says it
  if (has_left && told.is_whole) {  // whoever closed takes it as one that half closed does: nobody can tell them apart
    told.is_whole = false;
    told.status = status_of_nothing(CutBy::kClient);
  }
  if (is_websocket_) told.is_whole = told.cut_by == CutBy::kNobody;
  if (told.is_whole) told.cut_by = CutBy::kNobody;  // half gone, it still took all
  if (!told.is_whole && told.cut_by == CutBy::kNobody) told.cut_by = CutBy::kClient;
  // A failure of ours is known of an answer that has begun alone: its client has the head.
  const bool heard_nothing = !told.is_whole && told.n_bytes == 0 && told.cut_by != CutBy::kError;
  if (heard_nothing && !is_websocket_) told.status = status_of_nothing(told.cut_by);
  answered(told);
}

}  // namespace fermata::api
