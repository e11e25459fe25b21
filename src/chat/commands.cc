#include "chat/commands.h"

#include <array>
#include <utility>
#include <vector>

#include "base/nearest.h"

namespace fermata::chat {
namespace {

using Kind = Line::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 6> kCommands = {{{"/help", Kind::kHelp},
                                                                         {"/new", Kind::kNew},
                                                                         {"/system", Kind::kSystem},
                                                                         {"/save", Kind::kSave},
                                                                         {"/retry", Kind::kRetry},
                                                                         {"/quit", Kind::kQuit}}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

Line unknown(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [known, kind] : kCommands) names.push_back(known);
  const std::string_view near = nearest(name, names);
  const std::string meant = near.empty() ? "" : "; did you mean '" + std::string(near) + "'?";
  return {Kind::kUnknown,
          "there is no command '" + std::string(name) + "'" + meant + " (/help lists them, // sends a slash)"};
}

}  // namespace

Line line_of(std::string_view sent) {
  if (!sent.starts_with('/')) return {Kind::kQuestion, std::string(sent)};
  if (sent.starts_with("//")) return {Kind::kQuestion, std::string(sent.substr(1))};
  const auto end = std::min(sent.find_first_of(" \t\n"), sent.size());
  const std::string_view name = sent.substr(0, end);
  for (const auto& [known, kind] : kCommands) {
    if (name != known) continue;
    std::string rest(trimmed(sent.substr(end)));
    if (kind == Kind::kSave && rest.empty()) return {Kind::kUnknown, "/save wants the name of a file"};
    return {kind, std::move(rest)};
  }
  return unknown(name);
}

std::string line_for(const std::string& question) { return question.starts_with('/') ? "/" + question : question; }

Result<std::string> carry_out(const Line& line, Dialogue& dialogue) {
  switch (line.kind) {
    case Kind::kHelp: return std::string(kHelp);
    case Kind::kNew: dialogue.clear(); return std::string("a new dialogue\n");
    case Kind::kSystem:
      if (!line.text.empty()) dialogue.set_system(line.text);
      return dialogue.system().empty() ? "there is no system message\n" : "system: " + dialogue.system() + "\n";
    case Kind::kSave:
      if (dialogue.turns().empty() && dialogue.system().empty()) return std::string("nothing was said yet\n");
      if (Result<void> saved = dialogue.save(line.text); !saved) return saved.error();
      return "saved to " + line.text + "\n";
    default: return Error{Code::kInvalidArgument, line.text, {}, false};
  }
}

}  // namespace fermata::chat
