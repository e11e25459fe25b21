#include "api/http/api_keys.h"

#include <sodium.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/limits.h"

namespace fermata::api {
namespace {

constexpr std::string_view kKeyPrefix = "fermata_";  // so that scanners for leaked secrets know one
constexpr std::string_view kHashPrefix = "blake2b:";
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kNameBytesMax = 64;
constexpr const char* kNameWanted = "the name of a key has letters, digits, '.', '-' and '_', at most 64";
constexpr const char* kLineWanted =
    "there stands a name, a tenant, scopes and a hash, not a key; 'fermata new-key NAME --append FILE' makes a key and "
    "writes such a line";
constexpr const char* kTenantWanted = "a tenant is named like a key, or '-'";
constexpr Scope kScopes[] = {Scope::kUse, Scope::kReview, Scope::kAdmin};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && text != "-" &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                  c == '.';
         });
}

Error wrong(std::string message) { return Error{Code::kInvalidArgument, std::move(message), {}}; }

}  // namespace

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::kUse: return "use";
    case Scope::kReview: return "review";
    case Scope::kAdmin: return "admin";
  }
  return "unknown";
}

Result<std::vector<Scope>> parse_scopes(const std::string& text) {
  std::vector<Scope> scopes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found =
        std::find_if(std::begin(kScopes), std::end(kScopes), [&](Scope s) { return to_string(s) == word; });
    if (found == std::end(kScopes)) return wrong("scopes are use, review and admin, with commas between");
    scopes.push_back(*found);
  }
  if (scopes.empty()) return wrong("a key has at least one of the scopes use, review and admin");
  std::sort(scopes.begin(), scopes.end());
  scopes.erase(std::unique(scopes.begin(), scopes.end()), scopes.end());
  return scopes;
}

ApiKeys::Hash ApiKeys::hash_of(std::string_view key) {
  Hash hash;
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(key.data()), key.size(), nullptr,
                     0);
  return hash;
}

Result<ApiKeys::Entry> ApiKeys::parse_line(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string name, tenant, scopes, hash, more;
  if (!(words >> name >> tenant >> scopes >> hash) || words >> more) return wrong(kLineWanted);
  if (!is_name(name)) return wrong(kNameWanted);
  if (tenant != "-" && !is_name(tenant)) return wrong(kTenantWanted);
  auto granted = parse_scopes(scopes);
  if (!granted) return granted.error();
  if (!hash.starts_with(kHashPrefix)) return wrong("the hash begins with blake2b:");
  Entry entry{{name, tenant == "-" ? "" : tenant, *std::move(granted)}, {}};
  std::size_t n = 0;
  const std::string_view hex = std::string_view(hash).substr(kHashPrefix.size());
  if (hex.size() != 2 * entry.hash.size() ||
      sodium_hex2bin(entry.hash.data(), entry.hash.size(), hex.data(), hex.size(), nullptr, &n, nullptr) != 0 ||
      n != entry.hash.size()) {
    return wrong("the hash has 64 hexadecimal digits");
  }
  return entry;
}

Result<ApiKeys> ApiKeys::parse(std::string_view text) {
  ApiKeys keys;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (const auto comment = line.find('#'); comment != std::string::npos) line.resize(comment);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (keys.entries_.size() == limits::kApiKeysMax) {
      return Error{Code::kTooLarge, "there are at most " + std::to_string(limits::kApiKeysMax) + " API keys", {}};
    }
    auto entry = parse_line(line);
    // The line is not quoted: somebody may have put a key where its hash belongs.
    if (!entry) return wrong("line " + std::to_string(number) + ": " + entry.error().message);
    keys.entries_.push_back(*std::move(entry));
  }
  return keys;
}

Result<ApiKeys> ApiKeys::load(const std::string& path) {
  Result<KeysInFile> file = read_key_file(path);
  if (!file) return file.error();
  if (file->keys.empty()) return wrong(path + " has no API key; 'fermata new-key NAME --append " + path + "' adds one");
  return std::move(file->keys);
}

Result<KeysInFile> read_key_file(const std::string& path) {
  const Result<RegularFile> file = open_regular_file(path);
  if (!file && file.error().code == Code::kNotFound)
    return Error{Code::kNotFound,
                 "there is no file of API keys at " + path + "; 'fermata new-key NAME --append " + path + "' makes one",
                 {}};
  if (!file) return file.error();
  if (file->permissions.others_may_write())
    return wrong(path + " may be written by others; make it yours alone: chmod 600 " + path);
  Result<std::string> text = read_to_end(file->descriptor, path, limits::kApiKeyFileBytesMax);
  if (!text) return text.error();
  Result<ApiKeys> keys = ApiKeys::parse(*text);
  if (!keys) return Error{keys.error().code, path + ": " + keys.error().message, {}};
  return KeysInFile{*std::move(text), *std::move(keys), file->permissions};
}

Result<ApiKeys::Made> ApiKeys::make_key(std::string_view name, std::string_view tenant,
                                        const std::vector<Scope>& scopes) {
  if (!is_name(name)) return wrong(kNameWanted);  // a blank in it would move what follows
  if (!tenant.empty() && !is_name(tenant)) return wrong(kTenantWanted);
  if (sodium_init() < 0) return Error{Code::kIo, "there are no random numbers on this machine", {}};
  std::array<unsigned char, kKeyBytes> secret;
  randombytes_buf(secret.data(), secret.size());
  std::array<char, sodium_base64_ENCODED_LEN(kKeyBytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING)> text;
  sodium_bin2base64(text.data(), text.size(), secret.data(), secret.size(), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  Made made{std::string(kKeyPrefix) + text.data(), {}};
  const Hash hash = hash_of(made.key);
  std::array<char, 2 * hash.size() + 1> hex;
  sodium_bin2hex(hex.data(), hex.size(), hash.data(), hash.size());
  std::string list;
  for (const Scope scope : scopes) list.append(list.empty() ? "" : ",").append(to_string(scope));
  made.line = std::string(name) + " " + (tenant.empty() ? "-" : std::string(tenant)) + " " + list + " " +
              std::string(kHashPrefix) + hex.data();
  if (auto readable = parse_line(made.line); !readable) return readable.error();
  return made;
}

std::optional<ApiKeys::Entry> ApiKeys::find(std::string_view key) const {
  if (key.size() > limits::kApiKeyBytesMax) return std::nullopt;
  const Hash hash = hash_of(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (sodium_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) found = &entry;
  }
  if (!found) return std::nullopt;
  return *found;
}

std::vector<ApiKeys::Hash> ApiKeys::gone_from(const ApiKeys& next) const {
  std::vector<Hash> gone;
  for (const Entry& entry : entries_) {
    const Entry* now = next.last_of(entry.hash);
    const bool counts = last_of(entry.hash) == &entry;
    if (counts && (!now || now->principal != entry.principal)) gone.push_back(entry.hash);
  }
  return gone;
}

// Of two lines with one key the last counts, as in find().
const ApiKeys::Entry* ApiKeys::last_of(const Hash& hash) const {
  const auto place =
      std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) { return entry.hash == hash; });
  return place == entries_.rend() ? nullptr : &*place;
}

}  // namespace fermata::api
