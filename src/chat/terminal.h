#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "chat/key_decoder.h"
#include "chat/screen.h"
#include "chat/terminal_mode.h"

namespace fermata::chat {

// The terminal as a talk sees it: keys come in, text and a block below it go out. What is shown is written by flush().
// One thread; never waits for a key.
class Terminal {
 public:
  explicit Terminal(bool has_colours) : screen_(TerminalMode::size(), has_colours) {}
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // To wait for: input, and signals.
  int input() const;
  int signals() const { return signals_.descriptor(); }
  // How long to wait for them at most.
  Duration patience() const;

  struct Input {
    std::vector<Key> keys;
    bool is_suspend_asked = false;  // by a signal
    bool is_gone = false;           // there is no terminal any more
  };
  Input take_input();

  void write(std::string_view text, Look look = Look::kPlain);
  void end_line();

  struct Block {
    std::string prompt;
    std::string text;
    std::size_t cursor = 0;
    Look look = Look::kPlain;
  };
  void show(Block block);
  void hide();
  void clear();  // all but the block
  bool flush();  // false: nobody takes it

  void suspend();  // until somebody lets us go on

 private:
  void take_signals(Input& input);
  void begin_anew();

  TerminalSignals signals_;
  TerminalMode mode_;
  SystemClock clock_;
  KeyDecoder decoder_;
  Screen screen_;
  std::optional<Block> block_;
  bool is_block_shown_ = false;  // as it is now
  std::string out_;
};

}  // namespace fermata::chat
