// fermata chat: a talk in the terminal, with a server that is there or with one of its own.
#include "chat/talk.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json/parse.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "chat/answering.h"
#include "chat/history.h"
#include "chat/terminal_mode.h"
#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/open_engine.h"
#include "cli/own_server.h"
#include "cli/remote_flags.h"
#include "cli/terminal.h"
#include "client/json_member.h"

namespace fermata::cli {
namespace {

namespace json = boost::json;

struct ChatSettings {
  RemoteFlags remote;
  EngineFlags engine;
  chat::TalkOptions talk;
  bool has_history = true;
  bool names_server = false;  // --url, or the variable
  bool names_engine = false;  // --model or --engine
};

// Who answers, and where.
struct Partner {
  std::unique_ptr<OwnServer> own;  // may be null
  client::Endpoint endpoint;
};

// Also one that loads, or is stuck: what it is asked tells more. No key is sent to whoever happens to listen there.
bool is_fermata(const std::string& url) {
  client::HttpClient http({url, {}});
  auto health =
      http.ask({.method = "GET", .path = "/health", .body = {}, .at_most = milliseconds(limits::kHealthLookMs)});
  if (!health || (health->status != 200 && health->status != 503)) return false;
  health->status = 200;  // else it were read as a refusal
  const auto said = client::object_of(health);
  if (!said) return false;
  const std::string status = client::text_at(*said, "status");
  return said->contains("unreached_ms") || status == "loading";
}

Result<Partner> find_partner(const ChatSettings& settings) {
  Partner partner;
  partner.endpoint = settings.remote.endpoint;
  if (settings.names_server || (!settings.names_engine && is_fermata(partner.endpoint.url))) return partner;
  Result<std::unique_ptr<OwnServer>> own = OwnServer::start(settings.engine);
  if (!own) return own.error();
  partner.own = *std::move(own);
  partner.endpoint = {partner.own->url(), {}};
  return partner;
}

Result<std::string> model_of(client::RemoteServer& server) {
  const Result<json::array> models = server.list("/v1/models");
  if (!models) return models.error();
  const json::object* first = models->empty() ? nullptr : models->front().if_object();
  return first ? client::text_at(*first, "id") : std::string("a model without a name");
}

// Escape codes make sense there.
bool is_terminal() {
  const char* term = std::getenv("TERM");
  return chat::TerminalMode::is_there() && term != nullptr && std::strcmp(term, "dumb") != 0;
}

int code_of(chat::TalkEnd end, const InterruptSignal& signals) {
  switch (end) {
    case chat::TalkEnd::kLeft: return kOk;
    case chat::TalkEnd::kInterrupted: return kInterrupted;
    case chat::TalkEnd::kStopped: return exit_code_for_signal(signals.received());
    case chat::TalkEnd::kNobodyThere: return kFailed;
  }
  return kFailed;
}

int talk(const ChatSettings& settings, const Partner& partner, InterruptSignal& signals) {
  client::RemoteServer server(partner.endpoint);
  const Result<std::string> model = model_of(server);
  if (!model) return complain(model.error());
  chat::TalkOptions options = settings.talk;
  options.greeting = *model + (partner.own ? ", in this process" : " at " + partner.endpoint.url);
  if (options.session.empty()) options.session = chat::random_name();
  if (settings.has_history) options.history_path = chat::History::usual_path();
  options.has_colours = Style(STDOUT_FILENO).on();

  const Descriptor stop(eventfd(0, EFD_CLOEXEC));
  signals.on_first([&] {
    chat::TerminalMode::give_back_for_good();  // the second signal ends the process where it is
    eventfd_write(stop.number(), 1);
  });
  int code = kFailed;
  if (is_terminal()) {
    code = code_of(chat::talk_in_terminal(server, options, stop.number()), signals);
  } else {
    const Result<chat::TalkEnd> end = chat::talk_by_lines(server, options, stop.number());
    code = end ? code_of(*end, signals) : complain(end.error());
  }
  signals.leave_at_once();  // what it would call is about to go
  return code;
}

int run_chat(const ChatSettings& settings, InterruptSignal& signals) {
  const Result<Partner> partner = find_partner(settings);
  return partner ? talk(settings, *partner, signals) : complain(partner.error());
}

template <class Number>
void add_field(CLI::App& command, json::object& fields, const std::string& names, const std::string& field,
               const std::string& help) {
  const auto take = [&fields, field, name = long_name(names)](const CLI::results_t& given) {
    const std::optional<Number> number = parse_number<Number>(given.at(0));
    if (!number) throw CLI::ValidationError(name, "takes a number, not '" + given.at(0) + "'");
    fields[field] = *number;
    return true;
  };
  command.add_option(names, take, help)->type_name(std::is_integral_v<Number> ? "INT" : "NUMBER")->group("Sampling");
}

void take_field(json::object& fields, const std::string& given) {
  const auto equals = given.find('=');
  boost::system::error_code failed;
  const json::value value = equals == std::string::npos ? json::value() : json::parse(given.substr(equals + 1), failed);
  if (equals == std::string::npos || equals == 0 || failed)
    throw CLI::ValidationError("--field", "takes NAME=JSON, such as ignore_eos=true, not '" + given + "'");
  fields[given.substr(0, equals)] = value;
}

void add_fields(CLI::App& command, json::object& fields) {
  add_field<std::int64_t>(command, fields, "-n,--max-tokens", "max_tokens", "Most tokens of an answer");
  add_field<double>(command, fields, "--temp,--temperature", "temperature", "0 takes the most likely token");
  add_field<std::int64_t>(command, fields, "--top-k", "top_k", "Keep the K most likely tokens; 0 keeps all");
  add_field<double>(command, fields, "--top-p", "top_p", "Keep the most likely up to this sum; 1 keeps all");
  add_field<double>(command, fields, "--min-p", "min_p", "Keep those with this share of the best one's probability");
  add_field<double>(command, fields, "--repeat-penalty", "repeat_penalty", "Above 1: what was said is less likely");
  add_field<std::uint64_t>(command, fields, "-s,--seed", "seed", "Equal seeds, equal answers");
  CLI::Option* field = command.add_option_function<std::vector<std::string>>(
      "--field",
      [&fields](const std::vector<std::string>& given) {
        for (const std::string& one : given) take_field(fields, one);
      },
      "Any other field of a request, as docs/api.md lists them; repeatable");
  repeatable(field)->type_name("NAME=JSON")->group("Sampling");
}

// A server that is named by hand and an engine exclude each other; the variable just steps back.
void look_who_is_named(ChatSettings& settings, const CLI::App& command) {
  const char* variable = std::getenv("FERMATA_URL");
  const bool has_url = command.get_option("--url")->count() > 0;
  const bool has_variable = variable != nullptr && settings.remote.endpoint.url == variable;
  settings.names_engine = command.get_option("--model")->count() > 0 || command.get_option("--engine")->count() > 0;
  if (settings.names_engine && has_url && !has_variable)
    throw CLI::ValidationError("--url", "names a server, --model and --engine start one; give one of them");
  settings.names_server = has_url && !settings.names_engine;
}

}  // namespace

Command add_chat(CLI::App& app) {
  auto settings = std::make_shared<ChatSettings>();
  settings->engine.n_ctx = 8192;
  CLI::App* command = app.add_subcommand("chat", "Talk with a model in the terminal; ESC pauses its answer");
  command->footer(
      "With the server of --url or FERMATA_URL; else with one at http://127.0.0.1:8080 if there is one; else, or with\n"
      "--model or --engine, with one that it starts in its own process. docs/chat.md tells of the keys.\n"
      "Without a terminal each line of standard input is a question and the answers are printed.\n\n"
      "Examples:\n"
      "  fermata chat\n"
      "  fermata chat -m other.gguf --system \"Answer in one sentence.\" --temp 0.2\n"
      "  fermata chat --url http://desk:8080 --session desk-7\n"
      "  echo \"Why is the sky blue?\" | fermata chat -n 100\n\n" +
      std::string(kExitCodesHelp));
  command->add_option("--system", settings->talk.system, "What the model is told before all else");
  command->add_option("--session", settings->talk.session, "Session of the server, by which others may pause it");
  command->add_flag_callback(
      "--no-history", [settings] { settings->has_history = false; }, "What is asked is not kept for the next time");
  settings->remote.add_to(*command);
  settings->engine.add_to(*command);
  settings->engine.add_chat_template_to(*command);
  add_fields(*command, settings->talk.fields);
  command->callback([settings, command] { look_who_is_named(*settings, *command); });
  return [settings](InterruptSignal& signals) { return run_chat(*settings, signals); };
}

}  // namespace fermata::cli
