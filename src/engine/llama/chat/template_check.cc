#include "engine/llama/chat/template_check.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace fermata {
namespace {

Error beyond(const char* what, std::size_t limit) {
  return Error{Code::kModel, "the model's chat template is broken", std::string(what) + std::to_string(limit), false};
}

// "if" of "- if x": the first word of a statement's code.
std::string_view first_word(std::string_view code) {
  code.remove_prefix(std::min(code.size(), code.find_first_not_of("-+ \t\r\n")));
  return code.substr(0, std::min(code.size(), code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_")));
}

struct Tag {
  std::string_view code;  // between its marks
  std::size_t n_code_bytes = 0;
  std::size_t n_brackets_max = 0;
};

// The tag that begins at `at`, behind its opening mark; `end` is its closing one.
Tag read_tag(std::string_view source, std::size_t at, std::string_view end) {
  Tag tag;
  std::size_t n_brackets = 0;
  std::size_t i = at;
  // "}}" closes two brackets of the code before it closes the tag.
  for (; i < source.size() && (n_brackets != 0 || source.substr(i, 2) != end); ++i) {
    const char c = source[i];
    ++tag.n_code_bytes;
    if (c == '\'' || c == '"') {
      for (++i; i < source.size() && source[i] != c; ++i)
        if (source[i] == '\\') ++i;
    } else if (c == '(' || c == '[' || c == '{') {
      tag.n_brackets_max = std::max(tag.n_brackets_max, ++n_brackets);
    } else if (c == ')' || c == ']' || c == '}') {
      n_brackets -= n_brackets > 0 ? 1 : 0;
    }
  }
  i = std::min(i, source.size());
  tag.code = source.substr(at, i - at);
  return tag;
}

// How deep blocks stand within each other; an elif stands within the if before it.
class Blocks {
 public:
  void see(std::string_view word) {
    constexpr std::array<std::string_view, 6> openers = {"if", "for", "macro", "call", "filter", "generation"};
    if (std::ranges::find(openers, word) != openers.end()) {
      open_.push_back(1);
      ++depth_;
    } else if (word == "elif" && !open_.empty()) {
      ++open_.back();
      ++depth_;
    } else if (word.starts_with("end") && word != "endset" && !open_.empty()) {
      depth_ -= open_.back();
      open_.pop_back();
    }
  }
  std::size_t depth() const { return depth_; }

 private:
  std::vector<std::size_t> open_;  // levels that each open block stands for
  std::size_t depth_ = 0;
};

}  // namespace

Result<void> check_template_nesting(std::string_view source) {
  if (source.size() > kTemplateBytesMax) return beyond("it has more bytes than ", kTemplateBytesMax);
  Blocks blocks;
  for (std::size_t at = source.find('{'); at < source.size() && at + 1 < source.size(); at = source.find('{', at)) {
    const char kind = source[at + 1];
    at += kind == '{' || kind == '%' || kind == '#' ? 2 : 1;
    if (kind == '#') at = std::min(source.size(), source.find("#}", at));
    if (kind != '{' && kind != '%') continue;
    const Tag tag = read_tag(source, at, kind == '{' ? "}}" : "%}");
    if (tag.n_code_bytes > kTagCodeBytesMax) return beyond("one of its tags has more code than ", kTagCodeBytesMax);
    if (tag.n_brackets_max > kTagBracketsMax) return beyond("its brackets nest deeper than ", kTagBracketsMax);
    if (kind == '%') blocks.see(first_word(tag.code));
    if (blocks.depth() > kTemplateBlocksMax) return beyond("its blocks nest deeper than ", kTemplateBlocksMax);
    at += tag.code.size();
  }
  return {};
}

}  // namespace fermata
