#include "engine/chat_prompt.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <string_view>
#include <utility>

#include "base/utf8.h"

namespace fermata {
namespace {

constexpr std::string_view kBreak = "\xE2\x80\x8B";  // U+200B
constexpr std::string_view kWhite = " \t\n\v\f\r";

// Bytes of the character that the text begins with.
std::size_t n_first(std::string_view text) { return utf8_unit(text).n_bytes; }

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kWhite)));
  return text.substr(0, text.find_last_not_of(kWhite) + 1);
}

bool needs_care(const SpecialTexts& specials, const std::vector<ChatMessage>& messages) {
  return std::ranges::any_of(messages, [&](const ChatMessage& message) {
    return specials.any_in(message.content) || specials.may_join(trimmed(message.content));
  });
}

// A character of plane 15, which is for private use, that no message has.
std::optional<std::string> unused_character(const std::vector<ChatMessage>& messages) {
  const auto low6 = [](char c) { return static_cast<unsigned>(c) & 63U; };
  std::bitset<1 << 16> used;
  for (const ChatMessage& message : messages) {
    const std::string& text = message.content;
    for (std::size_t i = text.find('\xF3'); i != std::string::npos && i + 3 < text.size(); i = text.find('\xF3', i + 1))
      if (low6(text[i + 1]) >= 0x30)
        used.set((low6(text[i + 1]) & 15U) << 12 | low6(text[i + 2]) << 6 | low6(text[i + 3]));
  }
  for (unsigned i = 0; i < used.size(); ++i) {
    const auto trail = [](unsigned bits) { return static_cast<char>(0x80U | (bits & 63U)); };
    if (!used[i]) return std::string{'\xF3', trail(0x30U | i >> 12), trail(i >> 6), trail(i)};
  }
  return std::nullopt;
}

// The content with a mark within each special text (behind its first character), and at both ends of what is no white
// space, if the template's text may complete one there.
std::string marked(const SpecialTexts& specials, std::string_view content, std::string_view mark) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < content.size(); ++i)
    if (const std::string_view rest = content.substr(i); !specials.at_beginning(rest).empty())
      places.push_back(i + n_first(rest));
  if (const std::string_view middle = trimmed(content); specials.may_join(middle)) {
    const auto begin = static_cast<std::size_t>(middle.data() - content.data());
    places.insert(places.end(), {begin, begin + middle.size()});
  }
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::string out;
  std::size_t from = 0;
  for (const std::size_t place : places) {
    (out += content.substr(from, place - from)) += mark;
    from = place;
  }
  return out += content.substr(from);
}

std::vector<ChatMessage> marked(const SpecialTexts& specials, std::vector<ChatMessage> messages,
                                std::string_view mark) {
  for (ChatMessage& message : messages) message.content = marked(specials, message.content, mark);
  return messages;
}

// Places of the marks in the text without them, ascending.
std::vector<std::size_t> take_out(std::string& text, std::string_view mark) {
  std::vector<std::size_t> places;
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, from)) {
    out += std::string_view(text).substr(from, at - from);
    places.push_back(out.size());
    from = at + mark.size();
  }
  out += std::string_view(text).substr(from);
  text = std::move(out);
  return places;
}

std::vector<std::size_t> find_all(std::string_view text, std::string_view mark) {
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + mark.size()))
    places.push_back(at);
  return places;
}

// Cuts a text in which marks say what is the users'. An example, where <s> and </s> are special texts and • is the
// mark:
//
//   content   hi </s> you
//   marked    hi <•/s> you
//   rendered  <s>user:hi <•/s> you</s><s>assistant:
//   text      <s>user:hi </s> you</s><s>assistant:     and the place of the mark, 12
//             -                                        <s> at 0: no mark within it, so it is the template's
//                        -                             </s> at 11: 12 is within it, so it is the user's
//                                -                     </s> at 19 and <s> at 23: the template's
//   pieces    ---================---------------       - kParse  = kPlain: all between two of the template's
class Cutter {
 public:
  Cutter(const SpecialTexts& specials, std::string_view text, const std::vector<std::size_t>& marks)
      : specials_(specials), text_(text), marks_(marks) {}

  std::vector<ChatPrompt::Piece> cut() {
    for (std::size_t i = 0; i < text_.size();) {
      const std::vector<const SpecialText*> here = specials_.at_beginning(text_.substr(i));
      const auto templates =
          std::find_if(here.rbegin(), here.rend(), [&](const SpecialText* s) { return !is_users(i, s->text); });
      if (templates == here.rend()) {
        has_users_ = has_users_ || !here.empty();
        ++i;
      } else {
        end_gap(i, *templates);
        i += (*templates)->text.size();
        gap_begin_ = i;
        before_ = *templates;
      }
    }
    end_gap(text_.size(), nullptr);
    add(piece_begin_, text_.size(), Markers::kParse);
    return std::move(pieces_);
  }

 private:
  // A mark stands within it, or right behind it if it is one character.
  bool is_users(std::size_t begin, std::string_view special) const {
    const auto mark = std::upper_bound(marks_.begin(), marks_.end(), begin);
    const bool is_one = n_first(special) == special.size();
    return mark != marks_.end() && *mark < begin + special.size() + (is_one ? 1 : 0);
  }

  // The text since the last special token of the template ends at `end`, where `next` begins.
  void end_gap(std::size_t end, const SpecialText* next) {
    if (!std::exchange(has_users_, false)) return;
    add(piece_begin_, gap_begin_, Markers::kParse);
    piece_begin_ = end;
    std::size_t begin = gap_begin_;
    if (before_ && before_->strips_right) begin = std::min(end, text_.find_first_not_of(kWhite, begin));
    if (next && next->strips_left)
      while (end > begin && kWhite.find(text_[end - 1]) != std::string_view::npos) --end;
    add(begin, end, Markers::kPlain);
  }

  void add(std::size_t begin, std::size_t end, Markers markers) {
    if (begin < end) pieces_.push_back({begin, end, markers});
  }

  const SpecialTexts& specials_;
  std::string_view text_;
  const std::vector<std::size_t>& marks_;
  std::vector<ChatPrompt::Piece> pieces_;
  std::size_t piece_begin_ = 0;          // of the kParse piece that goes on
  std::size_t gap_begin_ = 0;            // behind the last special token of the template
  const SpecialText* before_ = nullptr;  // which is this
  bool has_users_ = false;               // the gap has a special text of a user
};

Result<ChatPrompt> render_with_care(const ChatTemplate& chat, const SpecialTexts& specials,
                                    const std::vector<ChatMessage>& messages, std::string plain) {
  ChatPrompt prompt;
  if (const std::optional<std::string> mark = unused_character(messages)) {
    Result<std::string> with_marks = chat.apply(marked(specials, messages, *mark));
    if (with_marks) {
      const std::vector<std::size_t> places = take_out(*with_marks, *mark);
      if (*with_marks == plain) {
        prompt.text = std::move(plain);
        prompt.pieces = Cutter(specials, prompt.text, places).cut();
        return prompt;
      }
    }
  }
  Result<std::string> broken = chat.apply(marked(specials, messages, kBreak));
  if (!broken) return broken.error();
  prompt.text = *std::move(broken);
  prompt.pieces = Cutter(specials, prompt.text, find_all(prompt.text, kBreak)).cut();
  return prompt;
}

}  // namespace

Result<ChatPrompt> render_chat(const ChatTemplate& chat, const SpecialTexts& specials,
                               const std::vector<ChatMessage>& messages) {
  Result<std::string> text = chat.apply(messages);
  if (!text) return text.error();
  if (needs_care(specials, messages)) return render_with_care(chat, specials, messages, *std::move(text));
  const std::size_t n_bytes = text->size();
  return ChatPrompt{*std::move(text), {{0, n_bytes, Markers::kParse}}};
}

std::vector<TokenId> tokenize_chat(const Vocabulary& vocabulary, const ChatPrompt& prompt) {
  std::vector<TokenId> tokens = vocabulary.prompt_prefix();
  for (const ChatPrompt::Piece& piece : prompt.pieces) {
    const std::string_view text = std::string_view(prompt.text).substr(piece.begin, piece.end - piece.begin);
    for (const TokenId token : vocabulary.tokenize(text, piece.markers)) tokens.push_back(token);
  }
  return tokens;
}

}  // namespace fermata
