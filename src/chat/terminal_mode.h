#pragma once

#include "base/regular_file.h"
#include "chat/layout.h"

namespace fermata::chat {

// The terminal of standard input and output while keys are read one by one and pastes are told apart from typing. It is
// given back as it was by the destructor, by give_back() from any thread, and by signals that kill the process. One at
// a time.
class TerminalMode {
 public:
  TerminalMode();  // takes it
  ~TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;

  // False: it cannot be had.
  static bool take();
  // As it was before. Async-signal-safe; does nothing if it is not taken.
  static void give_back();
  // The same, and take() does nothing any more: the process ends.
  static void give_back_for_good();

  static bool is_there();  // standard input and output are a terminal
  static TerminalSize size();
};

// Signals that concern a terminal, while it lives: a new size, and being suspended and continued. One at a time.
class TerminalSignals {
 public:
  TerminalSignals();
  ~TerminalSignals();
  TerminalSignals(const TerminalSignals&) = delete;
  TerminalSignals& operator=(const TerminalSignals&) = delete;

  int descriptor() const { return wake_.number(); }  // can be read when something came

  struct Came {
    bool resized = false;
    bool suspend = false;    // somebody else asks for it
    bool continued = false;  // the terminal may be another's, and look otherwise
  };
  Came take();

  // Stops the process and its group as Ctrl-Z does any program; returns when it goes on.
  static void suspend();

 private:
  Descriptor wake_;
};

}  // namespace fermata::chat
