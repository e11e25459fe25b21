#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/dossier.h"
#include "api/http/http_message.h"
#include "base/result.h"

namespace fermata::api {

// All generations that are kept, by each of their names: gen_…, chatcmpl-… or cmpl-…, client:…, and those of their
// pauses. What another tenant has is not found; what is no longer kept is gone. Owner: the io thread.
class Catalogue {
 public:
  using Entry = std::shared_ptr<Dossier>;

  void file(const Entry& dossier);
  void name_pause(const std::string& pause_id, const Dossier& dossier) { by_pause_[pause_id] = dossier.id(); }

  Result<Entry> find(std::string_view name, const Principal& who) const;
  Result<Entry> find_pause(std::string_view pause_id, const Principal& who) const;
  // Null: none has this client id. Of several the newest.
  Entry find_client_id(const std::string& tenant, const std::string& client_id) const;
  bool is_forgotten(std::string_view id, const Principal& who) const;

  // Newest last.
  const std::deque<Entry>& in_order() const { return in_order_; }
  std::vector<Entry> all(const Principal& who) const;

  void forget(const Entry& dossier) { forget(std::span(&dossier, 1)); }
  void forget(std::span<const Entry> dossiers);

 private:
  using Name = std::pair<std::string, std::string>;  // tenant, name
  // Names of what is no longer kept: the last limits::kForgottenIdsMax of them.
  class Forgotten {
   public:
    void note(Name name);
    bool contains(const Name& name) const { return names_.contains(name); }

   private:
    std::set<Name> names_;
    std::deque<Name> in_order_;
  };

  Error unknown_generation(std::string_view name, const Principal& who) const;
  void forget_names(const Dossier& dossier);

  std::map<std::string, Entry, std::less<>> by_id_;  // gen_…
  std::deque<Entry> in_order_;
  std::map<Name, std::string> by_client_id_;                  // client id -> gen_…
  std::map<std::string, std::string, std::less<>> by_pause_;  // pau_… -> gen_…
  Forgotten forgotten_;                                       // gen_… or client:…
  Forgotten forgotten_pauses_;                                // pau_…
};

}  // namespace fermata::api
