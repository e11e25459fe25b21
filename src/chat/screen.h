#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "chat/layout.h"

namespace fermata::chat {

enum class Look { kPlain, kBold, kDim, kRed };

// What stands at the bottom of a terminal: text that grows and stays, and below it a block that changes (what is being
// written, or a choice). Nothing but the block is ever erased, so the terminal keeps the talk. Pure: every call gives
// the bytes for the terminal.
class Screen {
 public:
  // `has_colours`: else every look is plain.
  Screen(TerminalSize size, bool has_colours) : size_(size), has_colours_(has_colours) {}

  // Appends to the text. A block goes; show() brings it again. Nothing in `text` can do anything to the terminal.
  std::string write(std::string_view text, Look look = Look::kPlain);
  // The same, and the end of the line, if the text is not at the beginning of one.
  std::string end_line();

  // A block instead of the one that is there.
  std::string show(Layout block, Look look = Look::kPlain);
  std::string hide();

  // The terminal has another size, and has wrapped anew what was too wide. The block is gone.
  std::string resize(TerminalSize size);
  // Somebody else has written: text begins in column 0, and what was a block is no longer ours.
  void forget();

  TerminalSize size() const { return size_; }

 private:
  std::string in_look(std::string_view text, Look look) const;
  std::size_t rows_above_cursor(std::size_t n_columns) const;
  std::string expanded(std::string_view text);

  TerminalSize size_;
  bool has_colours_;
  std::string line_;             // of the text: what follows its last end of line
  bool is_row_begun_ = false;    // the last row was full and the cursor is below it: an end of line is there already
  Layout block_;                 // no rows: there is none
  bool is_block_below_ = false;  // on a row of its own, below `line_`
};

}  // namespace fermata::chat
