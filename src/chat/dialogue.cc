#include "chat/dialogue.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>

#include "base/regular_file.h"

namespace fermata::chat {
namespace {

json::object message(std::string_view role, std::string_view content) {
  return {{"role", json::string_view(role.data(), role.size())},
          {"content", json::string_view(content.data(), content.size())}};
}

}  // namespace

json::array Dialogue::messages(std::string_view question, std::string_view answer_begun) const {
  json::array all;
  if (!system_.empty()) all.push_back(message("system", system_));
  for (const Turn& turn : turns_) {
    all.push_back(message("user", turn.question));
    all.push_back(message("assistant", turn.answer));
  }
  if (!question.empty()) all.push_back(message("user", question));
  if (!answer_begun.empty()) all.push_back(message("assistant", answer_begun));
  return all;
}

Result<void> Dialogue::save(const std::string& path) const {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open() && errno == EEXIST)
    return Error{Code::kIo, path + " is there already; name another file", {}, false};
  const std::string text = json::serialize(json::object{{"messages", messages()}}) + "\n";
  if (file.is_open() && write_whole(file, text)) return {};
  return Error{Code::kIo, path + " cannot be written", std::strerror(errno), false};
}

std::string joint_of(std::string_view answer, std::string_view sentence) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t'; };
  const bool has_blank = answer.empty() || sentence.empty() || is_blank(answer.back()) || is_blank(sentence.front());
  constexpr std::string_view kCloses = ".,;:!?)";
  const bool is_tied = !sentence.empty() && kCloses.find(sentence.front()) != std::string_view::npos;
  return std::string(has_blank || is_tied ? "" : " ") + std::string(sentence);
}

}  // namespace fermata::chat
