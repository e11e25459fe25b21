#pragma once

#include <CLI/App.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "client/remote_server.h"

namespace fermata::cli {

// Flags of the commands that ask a running server.
struct RemoteFlags {
  client::Endpoint endpoint{"http://127.0.0.1:8080", {}};
  bool json = false;

  void add_to(CLI::App& command);  // --url, --api-key
  void add_json_to(CLI::App& command);
};

constexpr const char* kNamesHelp =
    "A NAME is gen_… as 'fermata ps' shows it (its beginning is enough), the id of an answer (chatcmpl-…), or "
    "client:ID\n"
    "with the client_id of its request.\n";

// One line, with nothing in it that a terminal obeys.
void print_json(const boost::json::value& value);

// For a flag that was given: "must not be empty" if it is, as a script's variable may be that nobody set.
std::string why_empty(const std::string& text);

// Every name as one that the server takes: beginnings of gen_… become whole. kInvalidArgument if one begins several.
Result<std::vector<std::string>> whole_names(client::RemoteServer& server, std::vector<std::string> names);

}  // namespace fermata::cli
