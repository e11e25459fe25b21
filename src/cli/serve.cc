#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/config_flags.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/open_engine.h"
#include "cli/serve_words.h"
#include "cli/stopping.h"
#include "cli/variables.h"
#include "engine/llama/json_text.h"
#include "server/line_writer.h"
#include "server/log.h"
#include "server/server.h"
#include "server/service_manager.h"

namespace fermata::cli {
namespace {

struct ServeSettings {
  EngineFlags engine;
  ServerOptions server;
  LogOptions log;
  std::string model_name;
  std::string config;
  std::vector<std::string> warnings;  // of how it was started
  double drain_s = 30;
  double keep_alive_s = limits::kKeepAliveMs / 1e3;
  double pause_wait_s = limits::kPauseWaitMs / 1e3;
};

std::string in_words(const Error& error) {
  return printable(error.message + (error.detail.empty() ? "" : ": " + error.detail));
}

Result<LoadedModel> load(const ServeSettings& settings, const TellLoading& tell) {
  Result<OpenedEngine> opened =
      open_engine(settings.engine, [&tell](const std::string& line) { tell(LogLevel::kInfo, printable(line)); });
  if (!opened) return opened.error();
  if (const std::optional<Error> why = opened->without_chat()) tell(LogLevel::kWarn, in_words(*why));
  return to_serve(*std::move(opened), settings.engine, settings.model_name);
}

std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// What to do about a server that cannot listen.
Error with_advice(Error error) {
  if (error.field == "port" && error.code == Code::kBusy)
    error.message += "; stop the other program, or take another with --port (0: any free one)";
  else if (error.field == "port")
    error.message += "; take one from 1024 on with --port (0: any free one)";
  else if (error.field == "host")
    error.message += "; --host takes an address of this machine, or localhost (0.0.0.0: all there are)";
  else if (error.field == "keys")
    error.message +=
        "; make keys with 'fermata new-key NAME --append keys' and name their file with --api-key-file, or leave out "
        "--host";
  return error;
}

void tell_keys(Log& log, const Result<KeysRead>& keys) {
  if (!keys) {
    log.say(LogLevel::kError, "the API keys stay as they were, the new file is refused: " + in_words(keys.error()));
  } else {
    log.say(LogLevel::kInfo, "API keys read anew: " + counted(keys->n_keys, "key") + ", " +
                                 std::to_string(keys->n_gone) + " of those before gone");
  }
}

ServerEvents told_to(Log& log, LineWriter& out, Stopping& stopping, ServiceManager& manager) {
  ServerEvents events;
  events.listening = [&](const std::string& url, ServerControls controls) {
    log.say(LogLevel::kInfo, "listening at " + url + "; the model is being loaded");
    manager.loading();
    stopping.listening(std::move(controls));
  };
  events.loading = [&](LogLevel level, const std::string& line) { log.say(level, line); };
  events.ready = [&](const Readiness& now) {
    stopping.ready();
    out.put(told_when_ready(now));
    manager.ready(now.model + " at " + now.url);
  };
  events.draining = [&](std::size_t n_running) {
    manager.stopping();
    if (!stopping.is_ready())
      log.say(LogLevel::kInfo, "stopping when the model is loaded, which may take a while (Ctrl-C again: at once)");
    if (n_running > 0)
      log.say(LogLevel::kInfo, "stopping when " + counted(n_running, "generation") +
                                   (n_running == 1 ? " has" : " have") + " ended (Ctrl-C again ends " +
                                   (n_running == 1 ? "it" : "them") + ")");
  };
  events.keys_read = [&](const Result<KeysRead>& keys) { tell_keys(log, keys); };
  events.answered = [&](const api::AnsweredRequest& request) { log.answered(request); };
  events.alive = [&] { manager.alive(); };
  events.over = [&] { stopping.over(); };
  return events;
}

Result<void> serve_and_log(const ServeSettings& settings, Stopping& stopping, ServiceManager& manager) {
  Log log(settings.log, STDERR_FILENO);
  LineWriter out(STDOUT_FILENO);  // nobody may read that either
  for (const std::string& warning : settings.warnings) log.say(LogLevel::kWarn, printable(warning));
  ServerOptions options = settings.server;
  options.n_log_lines_lost = [&log] { return log.n_lost(); };
  // Often enough that one answer that is late does not count.
  if (manager.watchdog()) options.watch_every = Duration{manager.watchdog()->ns / 4};
  Result<void> served = serve(
      options, [&](const TellLoading& tell) { return load(settings, tell); }, told_to(log, out, stopping, manager));
  if (served) log.say(LogLevel::kInfo, "stopped: asked to");  // a server that is gone without it died
  return served;
}

int run_server(ServeSettings& settings, InterruptSignal& signals) {
  ServiceManager manager = ServiceManager::of_environment();
  Stopping stopping(signals, !settings.server.api_key_file.empty() || manager.is_there());
  std::signal(SIGPIPE, SIG_IGN);  // a complaint at the end may have no reader: the exit code says it still
  const auto duration = [](double s) { return milliseconds(static_cast<std::int64_t>(s * 1e3)); };
  settings.server.drain = duration(settings.drain_s);
  settings.server.keep_alive = duration(settings.keep_alive_s);
  settings.server.pause_wait = duration(settings.pause_wait_s);
  if (const Result<void> checked = check_engine(settings.engine); !checked) return complain(checked.error());
  const Result<void> served = serve_and_log(settings, stopping, manager);
  if (served) return kOk;
  signals.leave_at_once();
  return complain(with_advice(served.error()));
}

void add_address(CLI::App& command, ServeSettings& settings) {
  ServerOptions& server = settings.server;
  const std::string group = "Address and who may come";
  command.add_option("--host", server.host, "Address to listen at; another than loopback needs --api-key-file")
      ->group(group)
      ->type_name("ADDRESS")
      ->capture_default_str();
  add_number(command, "--port", server.port, "Port; 0 takes any free one")->group(group)->capture_default_str();
  command.add_option("--allow-host", server.hosts, "Another name by which clients may call it; repeatable")
      ->group(group)
      ->type_name("NAME");
  command.add_option("--allow-origin", server.origins, "Web pages that may call it (CORS), as https://name[:port]")
      ->group(group)
      ->type_name("ORIGIN");
  add_path(command, "--api-key-file", server.api_key_file,
           "Who may come, with tenant and scopes: lines that 'fermata new-key' makes. Read anew when it changes")
      ->group(group);
}

void add_log(CLI::App& command, LogOptions& log) {
  const std::map<std::string, LogFormat> formats = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
  const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::kDebug},
                                                  {"info", LogLevel::kInfo},
                                                  {"warn", LogLevel::kWarn},
                                                  {"error", LogLevel::kError},
                                                  {"off", LogLevel::kOff}};
  add_choice(command, "--log-format", log.format, formats, "Lines of the log on standard error: for people or programs")
      ->group("Log")
      ->capture_default_str();
  add_choice(command, "--log-level", log.level, levels,
             "info: a line for each request; warn: for those refused or failed; debug: for health checks too")
      ->group("Log")
      ->capture_default_str();
}

void add_waits(CLI::App& command, ServeSettings& settings) {
  add_number(command, "--drain", settings.drain_s, "Seconds that running generations may take to end when stopping",
             {0.0, 86400.0})
      ->capture_default_str();
  add_number(command, "--keep-alive", settings.keep_alive_s,
             "Seconds after which a silent stream says that it is there; less than proxies wait", {0.05, 3600.0})
      ->capture_default_str();
  add_number(command, "--pause-wait", settings.pause_wait_s,
             "Seconds that a request without stream waits through a pause before its 409; less than proxies wait",
             {0.0, 3600.0})
      ->capture_default_str();
}

}  // namespace

Command add_serve(CLI::App& app) {
  auto settings = std::make_shared<ServeSettings>();
  settings->engine.n_ctx = 8192;
  CLI::App* command = app.add_subcommand("serve", "Serve the OpenAI API with a pause button");
  command->footer(
      "Every flag is also a key of the file that --config names (TOML: port = 8081), and a variable FERMATA_….\n"
      "'fermata config --example' prints such a file, with all keys and their defaults.\n"
      "Examples:\n"
      "  fermata serve\n"
      "  fermata serve --port 0 --engine fake\n"
      "  fermata serve -m model.gguf --kv q8_0 -c 32768 --host 0.0.0.0 --allow-host my.name --api-key-file keys\n"
      "API keys: 'fermata new-key NAME --append keys' makes the file, or adds to it, and prints the key. A server that "
      "runs\n"
      "reads the file anew when it changes, or on SIGHUP; a broken one is refused, and the keys stay as they were.\n"
      "docs/api.md lists what is served.");
  add_path(*command, "--config", settings->config,
           "TOML file with these flags as keys; a flag or variable wins; 'fermata config --example' prints one");
  add_address(*command, *settings);
  command->add_option("--model-name", settings->model_name, "What clients call the model; its own name if left out")
      ->type_name("NAME")
      ->check(why_no_name);
  command
      ->add_option("--alias", settings->server.model_aliases, "Another name for it, or several with commas; repeatable")
      ->type_name("NAME")
      ->delimiter(',')
      ->check(why_no_name);
  add_waits(*command, *settings);
  add_log(*command, settings->log);
  settings->engine.add_to(*command);
  settings->engine.add_chat_template_to(*command);
  name_variables(*command);
  command->parse_complete_callback([] {});  // else CLI11 reads the variables for every other command too
  return [settings, command](InterruptSignal& signals) {
    const Result<void> configured = settings->config.empty() ? Result<void>() : read_config(*command, settings->config);
    settings->warnings = strange_variables(*command, environ);
    return configured ? run_server(*settings, signals) : complain(configured.error());
  };
}

}  // namespace fermata::cli
