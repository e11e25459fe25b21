// fermata pause, resume, cancel: what is done to generations of a running server.
#include <boost/json/array.hpp>
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
#include "client/json_member.h"
#include "engine/llama/json_text.h"

namespace fermata::cli {
namespace {

using client::number_at;
using client::text_at;

namespace json = boost::json;

struct ControlSettings {
  RemoteFlags remote;
  std::string verb;
  std::vector<std::string> names;
  std::string session;
};

// `name`: what it was called, for an answer that does not say.
std::string in_words(const std::string& verb, const std::string& name, const json::object& answer) {
  std::string id = text_at(answer, "id");
  if (id.empty()) id = name;
  if (client::is_true_at(answer, "will_be_cancelled"))
    return id + "  has not come yet; it is cancelled when it does, within a minute";
  if (verb != "pause") return id + "  " + state_in_words(answer);
  const json::object* at = client::object_at(answer, "at");
  const double n_tokens = at ? number_at(*at, "token") : 0;
  char line[160];
  std::snprintf(line, sizeof line, "paused at token %.0f, %.0f bytes sent, %.0f held, in %.1f ms", n_tokens,
                number_at(answer, "sent_bytes"), number_at(answer, "held_bytes"), number_at(answer, "reach_ms"));
  return id + "  " + line + "  " + text_at(answer, "pause_id");
}

void tell(const ControlSettings& settings, const std::string& verb, const std::string& name,
          const json::object& answer) {
  if (settings.remote.json)
    print_json(answer);
  else
    std::printf("%s\n", printable(in_words(verb, name, answer)).c_str());
}

int control_names(client::RemoteServer& server, const ControlSettings& settings) {
  const auto names = whole_names(server, settings.names);
  if (!names) return complain(names.error());
  int code = kOk;
  for (const std::string& name : *names) {
    const auto done = server.post("/v1/generations/" + client::percent_encoded(name) + "/" + settings.verb);
    if (done) {
      tell(settings, settings.verb, name, *done);
    } else {
      Error error = done.error();
      if (error.message.find(name) == std::string::npos) error.message = name + ": " + error.message;
      code = complain(error);
    }
  }
  return code;
}

int control_session(client::RemoteServer& server, const ControlSettings& settings) {
  auto done = server.post("/v1/sessions/" + client::percent_encoded(settings.session) + "/" + settings.verb);
  if (!done) return complain(done.error());
  const Result<json::array> generations = client::data_of(*std::move(done));
  if (!generations) return complain(generations.error());
  // Each is a generation, also after a pause.
  for (const json::value& generation : *generations)
    if (const json::object* object = generation.if_object()) tell(settings, {}, {}, *object);
  return kOk;
}

int control(const ControlSettings& settings) {
  client::RemoteServer server(settings.remote.endpoint);
  return settings.session.empty() ? control_names(server, settings) : control_session(server, settings);
}

Command add_verb(CLI::App& app, const std::string& verb, const std::string& what, const std::string& more) {
  auto settings = std::make_shared<ControlSettings>();
  settings->verb = verb;
  CLI::App* command = app.add_subcommand(verb, what);
  command->footer(more + kNamesHelp +
                  "The exit code is that of the last one that was refused, 0 if none was.\n\nExamples:\n  fermata " +
                  verb + " client:story\n  fermata " + verb + " --session desk-7 --json");
  CLI::Option* names =
      command->add_option("NAME", settings->names, "Generations, by any of their names")->check(why_empty);
  CLI::Option* session = command->add_option("--session", settings->session, "All of this session")->check(why_empty);
  session->excludes(names);
  command->callback([=] {
    if (names->empty() && session->empty()) throw CLI::RequiredError("a NAME, or --session,");
  });
  settings->remote.add_json_to(*command);
  settings->remote.add_to(*command);
  return [settings](InterruptSignal&) { return control(*settings); };
}

}  // namespace

Command add_pause(CLI::App& app) {
  return add_verb(app, "pause", "Pause generations of a running server; answers when they are frozen",
                  "A stream that is read stays open, silent, until the generation is resumed.\n");
}

Command add_resume(CLI::App& app) { return add_verb(app, "resume", "Let paused generations go on, exactly", ""); }

Command add_cancel(CLI::App& app) {
  return add_verb(app, "cancel", "End generations of a running server",
                  "A client:ID that has not come yet is cancelled when it comes, within a minute.\n");
}

}  // namespace fermata::cli
