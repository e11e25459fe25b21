#include "api/idempotency_keys.h"

#include "base/limits.h"

namespace fermata::api {
namespace {

// Nobody had its answer, or it was refused by who may take it later: the key is free again.
bool is_worth_another_try(const Dossier& dossier) {
  const auto& end = dossier.recording.end();
  return end && (end->reason == EndReason::kDisconnected || (end->reason == EndReason::kError && end->error.retryable));
}

}  // namespace

// Of the key, not of the tenant: two programs of one tenant may count their requests alike.
IdempotencyKeys::Name IdempotencyKeys::name_of(const std::string& tenant, const std::string& owner,
                                               const FermataOptions& options) {
  return {tenant + "/" + owner, options.idempotency_key};
}

std::optional<Result<std::shared_ptr<Dossier>>> IdempotencyKeys::find(const Call& call, const Principal& who,
                                                                      const std::string& body_digest) const {
  const std::string& key = call.fermata.idempotency_key;
  if (key.empty()) return std::nullopt;
  const auto entry = uses_.find(name_of(who.tenant, who.name, call.fermata));
  if (entry == uses_.end()) return std::nullopt;
  const auto& [dossier, its_digest] = entry->second;
  if (dossier && is_worth_another_try(*dossier)) return std::nullopt;  // free again
  if (its_digest != body_digest)
    return Error{Code::kIdempotency, "this idempotency key was used with another request", key, false,
                 "fermata.idempotency_key"};
  if (!dossier)
    return Error{Code::kGone, "this idempotency key was used, and its answer is no longer kept", key, false,
                 "fermata.idempotency_key"};
  return dossier;
}

void IdempotencyKeys::remember(const std::shared_ptr<Dossier>& dossier, std::string body_digest) {
  if (!dossier->options.idempotency_key.empty()) uses_[name_of(*dossier)] = {dossier, std::move(body_digest)};
}

void IdempotencyKeys::release(const Dossier& dossier) {
  const auto entry = uses_.find(name_of(dossier));
  if (entry != uses_.end() && entry->second.dossier.get() == &dossier) uses_.erase(entry);
}

void IdempotencyKeys::forget(const Dossier& dossier, Instant now) {
  const auto entry = uses_.find(name_of(dossier));
  if (entry == uses_.end() || entry->second.dossier.get() != &dossier) return;
  if (is_worth_another_try(dossier)) {
    uses_.erase(entry);
    return;
  }
  entry->second.dossier = nullptr;
  spent_.emplace_back(now, entry->first);
}

void IdempotencyKeys::sweep(Instant now) {
  for (; !spent_.empty() && (spent_.size() > limits::kIdempotencyKeysKept ||
                             now - spent_.front().first >= milliseconds(limits::kIdempotencyKeptMs));
       spent_.pop_front())
    uses_.erase(spent_.front().second);
}

}  // namespace fermata::api
