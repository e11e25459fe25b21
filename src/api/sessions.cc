#include "api/sessions.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>

#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

Standing standing_of(const Dossier& dossier) {
  if (dossier.recording.ended()) return Standing::kEnded;
  if (dossier.core_id == kNoGeneration) return dossier.is_held() ? Standing::kHeld : Standing::kWaits;
  return dossier.goes_on() ? Standing::kGoesOn : Standing::kPaused;
}

std::optional<std::size_t> going_on_beside(std::span<const Standing> session, std::size_t me) {
  for (std::size_t i = 0; i < session.size(); ++i)
    if (i != me && session[i] == Standing::kGoesOn) return i;
  return std::nullopt;
}

// The nearest one before it that has not ended.
std::optional<std::size_t> alive_before(std::span<const Standing> session, std::size_t me) {
  for (std::size_t i = me; i-- > 0;)
    if (session[i] != Standing::kEnded) return i;
  return std::nullopt;
}

}  // namespace

// Room is made first, also for one that was held or ended meanwhile: it came, and that is what it asked for. What is
// paused is only what goes on: what is held, and what waits for its turn, stays as it is.
Move next_move(OnNewMessage policy, std::span<const Standing> session, std::size_t me) {
  const auto running = going_on_beside(session, me);
  const auto before = alive_before(session, me);
  if (policy == OnNewMessage::kPause && running) return {Move::Kind::kPause, *running};
  if (policy == OnNewMessage::kCancel && before) return {Move::Kind::kCancel, *before};
  if (session[me] == Standing::kEnded) return {Move::Kind::kGiveUp, me};
  if (session[me] == Standing::kHeld) return {Move::Kind::kWait, me};
  if (policy == OnNewMessage::kQueue && before) return {Move::Kind::kWait, *before};
  // One that came later may have begun while those before were ended one by one.
  if (running) return {Move::Kind::kWait, *running};
  return {Move::Kind::kStart, me};
}

// ------------------------------------------------------------------------------------------------------------- members

void Sessions::join(const std::shared_ptr<Dossier>& dossier) {
  if (!dossier->head.session.empty()) members_[{dossier->tenant, dossier->head.session}].push_back(dossier);
}

void Sessions::leave(const Dossier& dossier) {
  const auto entry = members_.find({dossier.tenant, dossier.head.session});
  if (entry == members_.end()) return;
  std::erase_if(entry->second, [&](const auto& one) { return one.get() == &dossier; });
  if (entry->second.empty()) members_.erase(entry);
}

std::vector<std::shared_ptr<Dossier>> Sessions::of(std::string_view tenant, std::string_view session) const {
  const auto entry = members_.find({std::string(tenant), std::string(session)});
  return entry == members_.end() ? Members() : entry->second;
}

const Sessions::Members* Sessions::members_of(const Dossier& dossier) const {
  const auto entry = members_.find({dossier.tenant, dossier.head.session});
  return entry == members_.end() ? nullptr : &entry->second;
}

// ------------------------------------------------------------------------------------------------------ taking places

Sessions::Planned Sessions::plan(const std::shared_ptr<Dossier>& me, OnNewMessage policy) const {
  // One that is of no session, or was forgotten when it had ended, is alone.
  const Members alone{me};
  const Members* members = members_of(*me);
  if (!members || std::find(members->begin(), members->end(), me) == members->end()) members = &alone;
  std::vector<Standing> session;
  session.reserve(members->size());
  for (const auto& one : *members) session.push_back(standing_of(*one));
  const auto place = std::find(members->begin(), members->end(), me) - members->begin();
  const Move move = next_move(policy, session, static_cast<std::size_t>(place));
  return {move.kind, (*members)[move.whom]};
}

asio::awaitable<Result<void>> Sessions::take_place(std::shared_ptr<Dossier> me, std::shared_ptr<Generation> prepared) {
  const OnNewMessage policy = me->options.on_new_message;
  Planned planned = plan(me, policy);
  for (; planned.kind == Move::Kind::kPause || planned.kind == Move::Kind::kCancel; planned = plan(me, policy)) {
    const Result<void> made = co_await make_room(planned);
    if (!made) co_return made;
  }
  if (planned.kind == Move::Kind::kStart) co_return steering_.start(me, prepared);
  if (planned.kind == Move::Kind::kWait)
    asio::co_spawn(executor_, wait_for_turn(std::move(me), std::move(prepared)), asio::detached);
  co_return Result<void>();
}

asio::awaitable<Result<void>> Sessions::make_room(Planned planned) {
  if (planned.kind == Move::Kind::kCancel) co_return co_await steering_.cancel(planned.whom, EndReason::kReplaced);
  const Result<void> paused = co_await steering_.pause(planned.whom, WaitReason::kNewMessage);
  if (paused || paused.error().code != Code::kWrongState) co_return paused;
  // It ended, and its end is on its way here.
  if (planned.whom->goes_on()) co_await planned.whom->changed.wait(milliseconds(limits::kSessionLookMs));
  co_return Result<void>();
}

// Whatever it did to those before is done; from here on it stands in the queue like any other: its turn comes when
// nobody holds it, all before it have ended, and nothing that came later, and paused those, goes on.
asio::awaitable<void> Sessions::wait_for_turn(std::shared_ptr<Dossier> me, std::shared_ptr<Generation> prepared) {
  for (;;) {
    const Planned planned = plan(me, OnNewMessage::kQueue);
    if (planned.kind == Move::Kind::kWait) {
      // Thousands may wait: each looks at all of them only when what it waits for, or itself, is another than it was.
      const Standing theirs = standing_of(*planned.whom), mine = standing_of(*me);
      while (standing_of(*planned.whom) == theirs && standing_of(*me) == mine)
        co_await planned.whom->changed.wait(milliseconds(limits::kSessionLookMs));
      continue;
    }
    if (planned.kind != Move::Kind::kStart) co_return;
    const Result<void> started = steering_.start(me, prepared);
    if (started) co_return;
    if (started.error().code != Code::kBusy) co_return steering_.undo(me, started.error());
    // Too many had their turn at once; its client was told long ago that it is waiting.
    co_await me->changed.wait(milliseconds(limits::kStartAgainMs));
  }
}

// ---------------------------------------------------------------------------------------------- going on, holding back

bool Sessions::begin_resume(Dossier& dossier) const {
  const Members* members = members_of(dossier);
  if (members && std::any_of(members->begin(), members->end(),
                             [&](const auto& one) { return one.get() != &dossier && one->goes_on(); }))
    return false;
  ++dossier.n_resuming;
  return true;
}

void Sessions::end_resume(Dossier& dossier) {
  --dossier.n_resuming;
  dossier.changed.notify();  // if it did not go on, another one may
}

bool Sessions::hold(Dossier& dossier, Instant now) {
  if (dossier.core_id != kNoGeneration || dossier.recording.ended()) return false;
  if (!dossier.is_held()) dossier.held_since = now;
  dossier.recording.wait_for(WaitReason::kUser);
  return true;
}

bool Sessions::let_go(Dossier& dossier) {
  if (!dossier.is_held()) return false;
  dossier.held_since = {};
  dossier.recording.wait_for(WaitReason::kQueue);
  dossier.changed.notify();
  return true;
}

}  // namespace fermata::api
