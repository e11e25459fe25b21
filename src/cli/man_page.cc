#include "cli/man_page.h"

#include <cstdio>
#include <string_view>

namespace fermata::cli {
namespace {

// The code point of a character that begins here, and its bytes. The texts are our own: they are UTF-8.
std::string beyond_ascii(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const int n_more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  unsigned code = lead & (0x3Fu >> n_more);
  for (int i = 0; i < n_more; ++i) code = code << 6 | (static_cast<unsigned char>(text[++at]) & 0x3Fu);
  if (code == 0x2026) return "...";  // terminals of ASCII have none
  char name[16];
  std::snprintf(name, sizeof name, "\\[u%04X]", code);
  return name;
}

// Text that roff prints as it is: no request at the start of a line, no escape, hyphens that can be pasted.
std::string roff(std::string_view text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    if (begins_line && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      escaped += beyond_ascii(text, at);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string as_it_stands(const std::string& text) { return ".nf\n" + roff(text) + "\n.fi\n"; }

std::string item(const FlagShown& flag, bool is_word) {
  std::string text = ".TP\n";
  std::string names;
  for (const std::string& name : flag.names)
    names += (names.empty() ? "" : ", ") + std::string(is_word ? "\\fI" : "\\fB") + roff(name) + "\\fR";
  text += names + (is_word || flag.value.empty() ? "" : " \\fI" + roff(flag.value) + "\\fR") + "\n";
  text += roff(flag.help) + ".";
  if (!flag.default_text.empty()) text += "\nDefault: " + roff(flag.default_text) + ".";
  if (!flag.variable.empty()) text += "\nVariable: " + roff(flag.variable) + ".";
  return text + "\n";
}

std::string synopsis(const CommandShown& command) {
  std::string text = "\\fB" + roff(command.name) + "\\fR [\\fIOPTIONS\\fR]";
  for (const FlagShown& word : command.words) text += " \\fI" + roff(word.names.front()) + "\\fR";
  return text + "\n";
}

std::string items_of(const CommandShown& command) {
  std::string text;
  for (const FlagShown& word : command.words) text += item(word, true);
  for (const FlagGroup& group : groups_of(command)) {
    if (group.name != "Options") text += ".PP\n" + roff(group.name) + ":\n";
    for (const FlagShown* flag : group.flags) text += item(*flag, false);
  }
  return text;
}

// "fermata: inference that …" without its first word, and without the end of the sentence.
std::string in_one_line(const std::string& help) {
  const std::size_t begin = help.find(": ") == std::string::npos ? 0 : help.find(": ") + 2;
  return help.substr(begin, help.find_last_not_of('.') + 1 - begin);
}

}  // namespace

std::string man_page(const CommandShown& program, const std::string& version) {
  std::string commands;
  std::string synopses;
  for_each_command(program, [&](const CommandShown& command) {
    if (!command.commands.empty()) return;
    synopses += (synopses.empty() ? "" : ".PP\n") + synopsis(command);
    commands += ".SS " + roff(command.name) + "\n" + roff(command.help) + ".\n" + items_of(command);
    if (!command.footer.empty()) commands += ".PP\n" + as_it_stands(command.footer);
  });
  return ".TH FERMATA 1 \"\" \"fermata " + roff(version) + "\" \"User Commands\"\n.SH NAME\nfermata \\- " +
         roff(in_one_line(program.help)) + "\n.SH SYNOPSIS\n" + synopses + ".SH OPTIONS\n" + items_of(program) +
         ".SH COMMANDS\n" + commands + ".SH NOTES\n" + as_it_stands(program.footer);
}

}  // namespace fermata::cli
