// How the past of a generation is changed, and how one becomes several.
#include <algorithm>
#include <utility>

#include "api/control_body.h"
#include "api/desk.h"
#include "api/names.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

Error has_ended(const Dossier& dossier) {
  return {Code::kWrongState, "it has ended and cannot be edited; a fork of it can",
          std::string(to_string(dossier.recording.end()->reason)), false};
}
Error not_begun() { return {Code::kWrongState, "it waits for the generation before it in its session", {}, true}; }
Error never_began() { return {Code::kWrongState, "it ended before it began: there is nothing to fork", {}, false}; }

Error text_sent(std::size_t n_kept, std::size_t n_sent) {
  return {
      Code::kTextSent,
      "the edit would take back text that a client has; sent_text \"end_streams\" ends its stream with an error, and "
      "fermata.stream_events in its request would let it be told",
      "changes the text from byte " + std::to_string(n_kept) + " on, sent " + std::to_string(n_sent), false,
      "sent_text"};
}

Error too_many_branches(std::size_t n) {
  return {Code::kBusy, "this generation has too many branches; delete some",
          std::to_string(n) + ", limit " + std::to_string(limits::kBranchesOfOneMax), false};
}

// A stream that takes its text as it comes, or took it.
bool was_sent(const Dossier& dossier, const Revision& revision) {
  return dossier.n_text_sent > revision.rewind().n_text_bytes;
}

Edited outcome(const Revision& revision, Position n_computed) {
  Edited edited;
  edited.first_changed = revision.first_changed();
  edited.n_recomputed =
      revision.journal().size() - std::min({n_computed, revision.first_changed(), revision.journal().size() - 1});
  edited.version = revision.rewind().version;
  edited.n_text_bytes_kept = revision.rewind().n_text_bytes;
  edited.takes_text_back = revision.takes_text_back();
  return edited;
}

// Of one that is not paused: what was told of it.
Anchor told_anchor(const Dossier& dossier, const Vocabulary& vocabulary) {
  Anchor anchor{dossier.core_id, dossier.recording.version(), *dossier.request, {}, 0, {}};
  JournalRow of_prompt;
  for (const TokenId token : dossier.prompt) {
    of_prompt.token = token;
    anchor.journal.append(of_prompt, {});
  }
  for (const JournalRow& row : dossier.recording.rows())
    anchor.journal.append(row,
                          row.role == TokenRole::kGenerated ? text_bytes(vocabulary, row.token) : std::string_view());
  return anchor;
}

}  // namespace

asio::awaitable<Result<Edited>> Desk::edit(std::shared_ptr<Dossier> dossier, EditBody body) {
  if (dossier->recording.ended()) co_return has_ended(*dossier);
  if (dossier->core_id == kNoGeneration) co_return not_begun();
  const bool runs = !dossier->recording.pause();
  if (runs)
    if (const Result<void> paused = co_await pause(dossier, WaitReason::kUser); !paused) co_return paused.error();
  const PauseTicket* const ours = runs ? dossier->recording.pause() : nullptr;
  const std::string pause_id = ours ? ours->id : std::string();
  Result<Edited> edited = co_await edit_paused(dossier, std::move(body));
  if (pause_id.empty()) co_return edited;
  std::string body_digest = "edit";  // named: g++ 12 destroys some temporaries of a co_await twice
  const Result<std::size_t> resumed = co_await resume(dossier, pause_id, std::move(body_digest));
  if (edited && resumed) edited->pause_id.clear();
  co_return edited;
}

asio::awaitable<Result<Edited>> Desk::edit_paused(std::shared_ptr<Dossier> dossier, EditBody body) {
  const Instant began = clock_.now();
  const Result<Anchor> anchor = co_await anchor_of(dossier);
  if (!anchor) co_return anchor.error();
  if (body.if_version && *body.if_version != anchor->version) co_return another_version(anchor->version);
  const auto work = [&]() -> Result<Revision> {
    const auto splices = splices_of(body.edits, anchor->journal, core_->vocabulary());
    if (!splices) return splices.error();
    return core_->prepare_revision(*anchor, *splices);
  };
  std::shared_ptr<Leaver> nobody_leaves;
  Result<Revision> revision = co_await lanes_.run(anchor->journal.text().size(), std::move(nobody_leaves), work);
  if (!revision) co_return revision.error();
  const bool is_sent = was_sent(*dossier, *revision);
  if (is_sent && !body.ends_streams && !body.dry_run)
    co_return text_sent(revision->rewind().n_text_bytes, dossier->n_text_sent);
  const PauseTicket* const pause = dossier->recording.pause();
  Edited edited = outcome(*revision, pause ? pause->record.computed : 0);
  edited.dry_run = body.dry_run;
  if (pause) edited.pause_id = pause->id;
  if (body.dry_run) {
    edited.version = anchor->version;
    edited.took = clock_.now() - began;
    co_return edited;
  }
  const Result<Revised> revised = co_await put_in_place(dossier, *std::move(revision));
  if (!revised) co_return revised.error();
  if (is_sent) dossier->n_text_sent = edited.n_text_bytes_kept;
  std::vector<PauseTicket>& tickets = dossier->recording.tickets();
  if (revised->pause.ordinal < tickets.size()) tickets[revised->pause.ordinal].record = revised->pause;
  edited.n_recomputed = revised->pause.at - revised->pause.computed;
  edited.took = clock_.now() - began;
  co_return edited;
}

Result<Generation> Desk::branch_of(const Anchor& anchor, const ForkBody::Branch& branch, const ForkBody& body) const {
  const Journal& journal = anchor.journal;
  const Result<Position> at = body.at ? token_at(*body.at, journal) : Result<Position>(journal.size());
  if (!at) return at.error();
  if (*at < journal.n_prompt())
    return Error{Code::kInvalidArgument, "a branch begins behind the prompt; an edit of a branch can change the prompt",
                 "token " + std::to_string(*at) + ", prompt of " + std::to_string(journal.n_prompt()), false, "at"};
  auto splices = splices_of(branch.edits, journal, core_->vocabulary());
  if (!splices) return splices.error();
  if (*at < journal.size()) splices->push_back({*at, journal.size(), {}});
  Request request = *anchor.request;
  request.pause_at.reset();
  if (!body.is_exact_copy(branch)) request.sampling.seed = branch.seed ? *branch.seed : new_seed();
  Result<Revision> revision = core_->prepare_revision(anchor, *splices, &request);
  if (!revision) return revision.error();
  return core_->branch(*std::move(revision));
}

std::shared_ptr<Dossier> Desk::file_branch(const Dossier& parent, const Generation& generation, const Principal& who,
                                           Position at) {
  auto dossier = std::make_shared<Dossier>(executor_);
  dossier->head = parent.head;
  AnswerHead& head = dossier->head;
  name_answer(head);
  head.session.clear();
  head.seed = generation.request().sampling.seed;
  dossier->tenant = who.tenant;
  dossier->owner = who.name;
  dossier->options = parent.options;
  dossier->options.session.clear();
  dossier->options.on_disconnect = OnDisconnect::kContinue;
  dossier->n_metadata_bytes = parent.n_metadata_bytes;
  dossier->priority = parent.priority;
  dossier->prompt = generation.request().prompt;
  dossier->parent = parent.id();
  dossier->forked_at = at;
  enter(dossier);
  return dossier;
}

asio::awaitable<Result<std::vector<std::shared_ptr<Dossier>>>> Desk::fork(std::shared_ptr<Dossier> dossier,
                                                                          ForkBody body, Principal who) {
  if (!dossier->request) co_return dossier->recording.ended() ? never_began() : not_begun();
  const std::size_t n_branches = branches_of(*dossier).size() + body.branches.size();
  if (n_branches > limits::kBranchesOfOneMax) co_return too_many_branches(n_branches);
  if (const auto checked = check_caps(who, body.branches.size()); !checked) co_return checked.error();
  Result<Anchor> anchor = told_anchor(*dossier, core_->vocabulary());
  if (dossier->recording.pause()) anchor = co_await anchor_of(dossier);
  if (!anchor) co_return anchor.error();
  const auto work = [&]() -> Result<std::vector<Generation>> {
    std::vector<Generation> generations;
    for (const ForkBody::Branch& branch : body.branches) {
      Result<Generation> made = branch_of(*anchor, branch, body);
      if (!made) return made.error();
      generations.push_back(*std::move(made));
    }
    return generations;
  };
  const std::size_t n_work = anchor->journal.text().size() * body.branches.size();
  std::shared_ptr<Leaver> nobody_leaves;
  Result<std::vector<Generation>> generations = co_await lanes_.run(n_work, std::move(nobody_leaves), work);
  if (!generations) co_return generations.error();
  if (const auto checked = check_caps(who, body.branches.size()); !checked) co_return checked.error();
  const Position at = body.at ? *token_at(*body.at, anchor->journal) : anchor->journal.size();
  std::vector<std::shared_ptr<Dossier>> branches;
  for (Generation& generation : *generations) {
    const std::shared_ptr<Dossier> branch = file_branch(*dossier, generation, who, at);
    branches.push_back(branch);
    if (const auto started = start_in_core(branch, std::move(generation), !body.resume); !started) {
      for (const auto& one : branches) {
        if (one->core_id != kNoGeneration)
          core_->cancel(one->core_id);
        else
          undo(one, started.error());
      }
      co_return started.error();
    }
  }
  if (!body.resume)
    for (const auto& branch : branches)
      (void)co_await pause(branch, WaitReason::kUser);  // in which it begins: answered when it does
  co_return branches;
}

std::vector<std::shared_ptr<Dossier>> Desk::branches_of(const Dossier& dossier) const {
  std::vector<std::shared_ptr<Dossier>> branches;
  for (const auto& one : catalogue_.in_order())
    if (one->parent == dossier.id()) branches.push_back(one);
  return branches;
}

}  // namespace fermata::api
