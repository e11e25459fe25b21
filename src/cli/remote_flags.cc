#include "cli/remote_flags.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cstdio>
#include <utility>
#include <vector>

#include "api/openai/json.h"
#include "engine/llama/json_text.h"

namespace fermata::cli {
namespace {

namespace json = boost::json;

constexpr std::string_view kGenerationPrefix = "gen_";
constexpr std::size_t kWholeBytes = kGenerationPrefix.size() + 32;  // 128 bits in hex

bool is_beginning(const std::string& name) { return name.starts_with(kGenerationPrefix) && name.size() < kWholeBytes; }

std::string id_of(const json::value& generation) {
  const json::object* object = generation.if_object();
  const json::value* id = object ? object->if_contains("id") : nullptr;
  return id && id->is_string() ? std::string(id->get_string()) : "";
}

// It becomes a line of a request: one that ends that line would begin another. The key is not quoted.
std::string why_no_key(const std::string& key) {
  const bool is_visible = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return is_visible ? ""
                    : "is a key as 'fermata new-key' prints it, without blanks or line ends; look at FERMATA_API_KEY";
}

}  // namespace

std::string why_empty(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

void print_json(const json::value& value) { std::printf("%s\n", json_for_terminal(api::to_text(value)).c_str()); }

void RemoteFlags::add_to(CLI::App& command) {
  command.add_option("--url", endpoint.url, "The server")
      ->envname("FERMATA_URL")
      ->check(why_empty)
      ->capture_default_str();
  command
      .add_option("--api-key", endpoint.api_key,
                  "Key of a server that wants one; better as the variable, since others see command lines")
      ->envname("FERMATA_API_KEY")
      ->check(why_no_key);
}

void RemoteFlags::add_json_to(CLI::App& command) {
  command.add_flag("--json", json, "What the server says, as JSON: for scripts");
}

Result<std::vector<std::string>> whole_names(client::RemoteServer& server, std::vector<std::string> names) {
  json::array known;
  bool is_known = false;
  for (std::string& name : names) {
    if (!is_beginning(name)) continue;
    if (!std::exchange(is_known, true)) {
      Result<json::array> listed = server.list("/v1/generations");
      if (!listed) return listed.error();
      known = *std::move(listed);
    }
    std::vector<std::string> meant;
    for (const json::value& generation : known)
      if (std::string id = id_of(generation); id.starts_with(name)) meant.push_back(std::move(id));
    if (meant.size() > 1)
      return Error{Code::kInvalidArgument, "several generations begin so; write more of the name", name, false};
    if (meant.size() == 1) name = meant.front();
  }
  return names;
}

}  // namespace fermata::cli
