#include "runtime/core.h"

#include <utility>

#include "base/limits.h"

namespace fermata {

Core::Core(std::unique_ptr<Engine> engine, const Clock& clock, LoopOptions options)
    : engine_(std::move(engine)), clock_(clock), loop_(*engine_, clock, options), thread_([this] { loop_.run(); }) {}

Core::~Core() {
  loop_.close();
  thread_.join();
}

Result<Generation> Core::prepare(Request request) {
  Result<ValidRequest> valid =
      validate(std::move(request), engine_->info(), engine_->vocabulary(), engine_->samplers());
  if (!valid) return valid.error();
  const GenerationId id{next_id_.fetch_add(1, std::memory_order_relaxed)};
  return Generation::make(id, *std::move(valid), engine_->vocabulary(), clock_.now());
}

Result<Started> Core::start(Generation&& prepared, std::function<void()> wake, bool paused) {
  Started started{prepared.id(), std::make_shared<EventRing>(limits::kEventRingMax, std::move(wake))};
  Command submit{clock_.now(), Submit{std::make_unique<Generation>(std::move(prepared)), started.events, paused}};
  const Result<void> posted = loop_.post(std::move(submit));
  if (posted) return started;
  // What is refused was not moved from: Mailbox::put.
  prepared = std::move(*std::get<Submit>(submit.what).generation);  // NOLINT(bugprone-use-after-move)
  return posted.error();
}

Result<Started> Core::submit(Request request, std::function<void()> wake) {
  Result<Generation> prepared = prepare(std::move(request));
  if (!prepared) return prepared.error();
  return start(*std::move(prepared), std::move(wake));
}

template <class What, class T>
Reply<T> Core::post(What what, Reply<T> reply) {
  if (const Result<void> posted = loop_.post({clock_.now(), std::move(what)}); !posted) reply.send(posted.error());
  return reply;
}

Reply<PauseRecord> Core::pause(GenerationId id, WaitReason reason, Wake wake) {
  Reply<PauseRecord> reply(std::move(wake));
  return post(Pause{id, reply, reason}, reply);
}

Reply<Status> Core::resume(GenerationId id, MeantPause meant, Wake wake) {
  Reply<Status> reply(std::move(wake));
  return post(Resume{id, reply, meant}, reply);
}

Reply<Status> Core::cancel(GenerationId id, EndReason reason, Wake wake) {
  Reply<Status> reply(std::move(wake));
  return post(Cancel{id, reason, reply}, reply);
}

Reply<Inspection> Core::inspect(GenerationId id, std::int32_t n_rows, std::int32_t n_next, Wake wake) {
  Reply<Inspection> reply(std::move(wake));
  return post(Inspect{id, n_rows, n_next, reply}, reply);
}

Reply<Status> Core::status(GenerationId id, Wake wake) {
  Reply<Status> reply(std::move(wake));
  return post(GetStatus{id, reply}, reply);
}

Reply<Anchor> Core::anchor(GenerationId id, Wake wake) {
  Reply<Anchor> reply(std::move(wake));
  return post(TakeAnchor{id, reply}, reply);
}

Result<Revision> Core::prepare_revision(const Anchor& anchor, std::span<const Splice> splices,
                                        const Request* request) const {
  std::optional<ValidRequest> valid;
  if (request) {
    Result<ValidRequest> checked = validate(*request, engine_->info(), engine_->vocabulary(), engine_->samplers());
    if (!checked) return checked.error();
    valid = *std::move(checked);
  }
  return Revision::make(anchor, splices, valid ? *std::move(valid) : anchor.request, engine_->info(),
                        engine_->vocabulary(), clock_.now());
}

Reply<Revised> Core::revise(GenerationId id, Revision revision, Wake wake) {
  Reply<Revised> reply(std::move(wake));
  return post(Revise{id, std::make_unique<Revision>(std::move(revision)), reply}, reply);
}

Generation Core::branch(Revision revision) {
  const GenerationId id{next_id_.fetch_add(1, std::memory_order_relaxed)};
  return Generation::branch(id, std::move(revision), engine_->vocabulary(), clock_.now());
}

}  // namespace fermata
