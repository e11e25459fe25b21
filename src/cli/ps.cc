// fermata ps: the generations of a running server.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/generation_line.h"
#include "cli/remote_flags.h"
#include "cli/table.h"

namespace fermata::cli {
namespace {

namespace json = boost::json;

struct PsSettings {
  RemoteFlags remote;
  bool all = false;
  std::string session;
};

std::string path_of(const PsSettings& settings) {
  std::string path = "/v1/generations?order=asc";
  if (!settings.all) path += "&state=queued,running,pausing,paused,restoring";
  if (!settings.session.empty()) path += "&session=" + client::percent_encoded(settings.session);
  return path;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

int ps(const PsSettings& settings) {
  client::RemoteServer server(settings.remote.endpoint);
  const Result<json::array> generations = server.list(path_of(settings));
  if (!generations) return complain(generations.error());
  if (settings.remote.json) {
    for (const json::value& generation : *generations) print_json(generation);
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {generation_heads()};
  for (const json::value& generation : *generations)
    if (const json::object* object = generation.if_object()) rows.push_back(generation_line(*object, now()));
  std::fputs(table(rows).c_str(), stdout);
  return kOk;
}

}  // namespace

Command add_ps(CLI::App& app) {
  auto settings = std::make_shared<PsSettings>();
  CLI::App* command = app.add_subcommand("ps", "Show the generations of a running server");
  command->footer(
      "Examples:\n"
      "  fermata ps\n"
      "  fermata ps --all --session desk-7\n"
      "  fermata ps --json | jq -r 'select(.state == \"paused\").id'      # one generation a line\n");
  command->add_flag("-a,--all", settings->all, "Those that have ended too, as long as the server keeps them");
  command->add_option("--session", settings->session, "Of this session alone")->check(why_empty);
  settings->remote.add_json_to(*command);
  settings->remote.add_to(*command);
  return [settings](InterruptSignal&) { return ps(*settings); };
}

}  // namespace fermata::cli
