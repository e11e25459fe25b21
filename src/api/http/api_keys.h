#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http_request.h"
#include "base/regular_file.h"
#include "base/result.h"

namespace fermata::api {

// Who may call. At rest only a hash of each key is kept. File: one key a line, `#` starts a comment,
//   name tenant scope[,scope] blake2b:HEX
// with `-` for the tenant "". A key is 256 random bits, so one plain BLAKE2b-256 hides it: there is nothing to guess.
// Scopes are what is written, none contains another. Two lines may have one name: keys are replaced without a gap.
class ApiKeys {
 public:
  using Hash = std::array<std::uint8_t, 32>;

  static Result<ApiKeys> load(const std::string& path);  // as read_key_file(); refuses a file without a key
  static Result<ApiKeys> parse(std::string_view text);

  struct Made {
    std::string key;   // shown once, kept nowhere
    std::string line;  // for the file
  };
  static Result<Made> make_key(std::string_view name, std::string_view tenant, const std::vector<Scope>& scopes);

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  struct Entry {
    Principal principal;
    Hash hash;
  };
  // Takes the same time whichever key it is, and whether it is one.
  std::optional<Entry> find(std::string_view key) const;
  // Keys that `next` does not have, or not for the same name, tenant and scopes.
  std::vector<Hash> gone_from(const ApiKeys& next) const;

 private:
  static Hash hash_of(std::string_view key);
  const Entry* last_of(const Hash& hash) const;
  static Result<Entry> parse_line(std::string_view line);

  std::vector<Entry> entries_;
};

// A file of keys as it stands, for whoever writes it anew.
struct KeysInFile {
  std::string text;
  ApiKeys keys;
  FilePermissions permissions;
};
// kNotFound if there is none. Refuses one that others may write, or in which a line cannot be read.
Result<KeysInFile> read_key_file(const std::string& path);

std::string_view to_string(Scope scope);
// "use,admin"
Result<std::vector<Scope>> parse_scopes(const std::string& text);

}  // namespace fermata::api
