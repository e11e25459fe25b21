#include "generation/revision.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace fermata {
namespace {

Error wrong(std::string message, Position at) {
  return {Code::kInvalidArgument, std::move(message), "token " + std::to_string(at), false, "edits"};
}

// What a fold told of a journal, and up to where after each row that told something.
struct Told {
  struct Mark {
    std::size_t n_bytes = 0;       // raw bytes of the completion
    std::size_t n_text_bytes = 0;  // of what was told of them
  };
  std::string text;
  std::vector<Mark> marks{Mark{}};

  void add(const TextStream::Step& step) {
    text += step.released;
    if (step.n_bytes_out > marks.back().n_bytes) marks.push_back({step.n_bytes_out, text.size()});
  }
};

// Pushes all rows. An error says at which row.
Result<Told> replay(Fold& fold, std::span<const JournalRow> rows) {
  Told told;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<Position>(i);
    if (fold.text().stopped())
      return wrong("the completion goes on behind the stop string \"" + std::string(fold.text().stop_string()) + "\"",
                   at);
    const Result<TextStream::Step> step = fold.push(rows[i]);
    if (!step) {
      Error error = step.error();
      error.detail = "token " + std::to_string(at);
      error.field = "edits";
      return error;
    }
    told.add(*step);
  }
  if (fold.text().stopped())
    return wrong("the completion has the stop string \"" + std::string(fold.text().stop_string()) + "\"",
                 static_cast<Position>(rows.size()));
  return told;
}

// The last place up to which both told the same of the same bytes.
Told::Mark common(const Told& before, const Told& after, std::size_t n_bytes_same) {
  Told::Mark last;
  auto mark = before.marks.begin();
  for (const Told::Mark& other : after.marks) {
    while (mark != before.marks.end() && mark->n_bytes < other.n_bytes) ++mark;
    if (mark == before.marks.end() || other.n_bytes > n_bytes_same) break;
    if (mark->n_bytes != other.n_bytes) continue;
    if (mark->n_text_bytes != other.n_text_bytes ||
        before.text.compare(0, other.n_text_bytes, after.text, 0, other.n_text_bytes) != 0)
      break;
    last = other;
  }
  return last;
}

std::size_t n_same_bytes(std::string_view a, std::string_view b) {
  const std::size_t n = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first - a.begin());
}

Position n_same_tokens(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<Position>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The same token may be of the prompt here and of the completion there.
Position n_same_rows(std::span<const JournalRow> a, std::span<const JournalRow> b) {
  const auto same = [](const JournalRow& x, const JournalRow& y) { return x.token == y.token && x.role == y.role; };
  return static_cast<Position>(std::mismatch(a.begin(), a.end(), b.begin(), b.end(), same).first - a.begin());
}

Result<void> check_splice(const Splice& splice, Position from, const Journal& journal, const Vocabulary& vocabulary) {
  if (splice.begin < from || splice.begin > splice.end || splice.end > journal.size())
    return wrong("edits stand in order, do not overlap, and lie within the " + std::to_string(journal.size()) +
                     " tokens there are",
                 splice.begin);
  if (splice.begin < journal.n_prompt() && splice.end > journal.n_prompt())
    return wrong("an edit cannot cross from the prompt into the completion: make it two", splice.begin);
  for (const TokenId token : splice.tokens) {
    if (!vocabulary.contains(token))
      return wrong("token " + std::to_string(raw(token)) + " is not in the vocabulary", splice.begin);
    if (splice.role == TokenRole::kGenerated && vocabulary.ends_generation(token))
      return wrong("token " + std::to_string(raw(token)) + " would end the generation", splice.begin);
  }
  return {};
}

}  // namespace

Result<Revision> Revision::make(const Anchor& before, std::span<const Splice> splices, ValidRequest request,
                                const EngineInfo& info, const Vocabulary& vocabulary, Instant now) {
  Revision revision(before, std::move(request), vocabulary);
  if (const auto spliced = revision.splice(before, splices, vocabulary, now); !spliced) return spliced.error();
  if (const auto folded = revision.fold(before, info, vocabulary); !folded) return folded.error();
  return revision;
}

Revision::Revision(const Anchor& before, ValidRequest request, const Vocabulary& vocabulary)
    : version_(before.version),
      n_rows_before_(before.journal.size()),
      n_bytes_told_before_(before.n_bytes_out),
      request_(std::move(request)),
      fold_(request_, vocabulary) {}

void Revision::append(const JournalRow& row, const Vocabulary& vocabulary) {
  journal_.append(row, row.role == TokenRole::kGenerated ? text_bytes(vocabulary, row.token) : std::string_view());
}

Result<void> Revision::splice(const Anchor& before, std::span<const Splice> splices, const Vocabulary& vocabulary,
                              Instant now) {
  Position done = 0;  // rows of the journal before that were looked at
  std::int64_t n_rows = before.journal.size();
  for (const Splice& splice : splices) {
    if (const auto checked = check_splice(splice, done, before.journal, vocabulary); !checked) return checked.error();
    n_rows += static_cast<std::int64_t>(splice.tokens.size()) - (splice.end - splice.begin);
    if (n_rows > limits::kTokensMax)
      return Error{Code::kContextLength, "it would be longer than a generation can be",
                   std::to_string(n_rows) + " tokens, limit " + std::to_string(limits::kTokensMax), false, "edits"};
    for (; done < splice.begin; ++done) append(before.journal[done], vocabulary);
    JournalRow row;
    row.role = splice.role;
    row.origin = splice.origin;
    row.time = now;
    for (const TokenId token : splice.tokens) {
      row.token = token;
      append(row, vocabulary);
    }
    done = splice.end;
  }
  for (; done < before.journal.size(); ++done) append(before.journal[done], vocabulary);
  if (journal_.n_prompt() == 0) return wrong("the prompt must keep at least one token", 0);
  first_changed_ = n_same_tokens(before.journal.tokens(), journal_.tokens());
  return {};
}

Result<void> Revision::fold(const Anchor& before, const EngineInfo& info, const Vocabulary& vocabulary) {
  const std::int64_t n_room = room_for_tokens(info);
  if (journal_.size() >= n_room)
    return Error{Code::kContextLength, "it would leave no room for another token",
                 std::to_string(journal_.size()) + " tokens, room for " + std::to_string(n_room), false, "edits"};
  request_.revise(journal_.tokens().first(static_cast<std::size_t>(journal_.n_prompt())),
                  static_cast<std::int32_t>(n_room) - (journal_.size() - journal_.n_generated()));
  if (journal_.n_generated() > request_->n_tokens_max)
    return Error{
        Code::kContextLength, "the completion would be longer than max_tokens allows",
        std::to_string(journal_.n_generated()) + " tokens, max_tokens " + std::to_string(request_->n_tokens_max), false,
        "edits"};
  Fold old(before.request, vocabulary);
  const Result<Told> was_told = replay(old, before.journal.rows());
  FERMATA_CHECK(was_told.has_value());  // it is the journal of a generation that goes on
  Result<Told> told = replay(fold_, journal_.rows());
  if (!told) return told.error();

  const std::size_t n_bytes_same = std::min(n_same_bytes(before.journal.text(), journal_.text()), before.n_bytes_out);
  const Told::Mark kept = common(*was_told, *told, n_bytes_same);
  rewind_.version = version_ + 1;
  rewind_.n_bytes = kept.n_bytes;
  rewind_.n_text_bytes = kept.n_text_bytes;
  rewind_.n_prompt = journal_.n_prompt();
  const Position n_same = n_same_rows(before.journal.rows(), journal_.rows());
  const bool is_other_prompt = n_same < std::max(journal_.n_prompt(), before.journal.n_prompt());
  Position& n_rows = rewind_.n_rows;
  for (n_rows = journal_.n_prompt(); n_rows < n_same; ++n_rows)
    if (journal_.bytes_end(n_rows) > kept.n_bytes) break;
  if (is_other_prompt) {
    const auto prompt = journal_.rows().first(static_cast<std::size_t>(journal_.n_prompt()));
    rewind_.prompt.assign(prompt.begin(), prompt.end());
  }
  text_ = std::move(told->text);
  if (first_changed_ == journal_.size() && first_changed_ == n_rows_before_) logits_ = before.logits;
  return {};
}

}  // namespace fermata
