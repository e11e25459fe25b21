#include "cli/remote_flags.h"

#include <boost/json/array.hpp>
#include <utility>
#include <vector>

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

}  // namespace

void RemoteFlags::add_to(CLI::App& command) {
  command.add_option("--url", endpoint.url, "The server")->envname("FERMATA_URL")->capture_default_str();
  command
      .add_option("--api-key", endpoint.api_key,
                  "Key of a server that wants one; better as the variable, since others see command lines")
      ->envname("FERMATA_API_KEY");
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
