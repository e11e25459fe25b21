#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/dossier.h"
#include "api/http/http_message.h"
#include "api/openai/call.h"
#include "base/clock.h"
#include "base/result.h"

namespace fermata::api {

// Which generation a request began that came with an idempotency key: the same request again gets the same one, and
// does not run again either for a day after it was forgotten (docs/api.md). Owner: the io thread.
class IdempotencyKeys {
 public:
  // Nothing: it has no key, or its key is free. The generation of the same request, or why there is none: kIdempotency
  // if the key was used with another body, kGone if its generation is forgotten.
  std::optional<Result<std::shared_ptr<Dossier>>> find(const Call& call, const Principal& who,
                                                       const std::string& body_digest) const;
  void remember(const std::shared_ptr<Dossier>& dossier, std::string body_digest);
  // Its key is free again: it never started.
  void release(const Dossier& dossier);
  // The generation is forgotten; its key is kept from now on for its time, or freed if nobody had its answer.
  void forget(const Dossier& dossier, Instant now);
  void sweep(Instant now);

 private:
  using Name = std::pair<std::string, std::string>;  // key of whom, idempotency key
  struct Use {
    std::shared_ptr<Dossier> dossier;  // null: it was forgotten
    std::string body_digest;
  };
  static Name name_of(const std::string& tenant, const std::string& owner, const FermataOptions& options);
  static Name name_of(const Dossier& dossier) { return name_of(dossier.tenant, dossier.owner, dossier.options); }

  std::map<Name, Use> uses_;
  std::deque<std::pair<Instant, Name>> spent_;  // without a generation, in the order of forgetting
};

}  // namespace fermata::api
