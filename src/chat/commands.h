#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/dialogue.h"

namespace fermata::chat {

// What a line that was sent is.
struct Line {
  enum class Kind { kQuestion, kHelp, kNew, kSystem, kSave, kRetry, kQuit, kUnknown };
  Kind kind = Kind::kQuestion;
  std::string text = {};  // the question; what stands behind a command; of kUnknown what to say
};

// "/save x" is a command, "//save" the question "/save". Pure.
Line line_of(std::string_view sent);

// The line that asks `question`: line_of() backwards.
std::string line_for(const std::string& question);

// Does what /help, /new, /system or /save ask for; what to say of it, lines.
Result<std::string> carry_out(const Line& line, Dialogue& dialogue);

inline constexpr std::string_view kHelp =
    "/new          forget the dialogue and begin another\n"
    "/system TEXT  what the model is told before all else; without TEXT: what it is told now\n"
    "/retry        ask the last question again\n"
    "/save FILE    the dialogue as JSON messages, in a new file\n"
    "/quit         leave, as Ctrl-D does\n"
    "//…           a question that begins with /\n";

// Of the terminal alone.
inline constexpr std::string_view kKeysHelp =
    "While an answer is written: ESC pauses it, Ctrl-C ends it and keeps what is there.\n"
    "While you write: Enter sends; Alt-Enter, or \\ before Enter, begins a line; Up and Down go through what was "
    "asked;\n"
    "Ctrl-A E K U W Y and Alt-B F D edit as in a shell, Ctrl-L clears the screen.\n";

}  // namespace fermata::chat
