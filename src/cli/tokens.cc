// fermata tokens: the journal of a generation of a running server.
#include <boost/json/array.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/remote_flags.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "client/json_member.h"
#include "engine/llama/json_text.h"

namespace fermata::cli {
namespace {

using client::text_at;

namespace json = boost::json;

constexpr std::int64_t kPageRows = 1000;

struct TokensSettings {
  RemoteFlags remote;
  std::string name;
  std::int64_t from = 0;
  std::int64_t n_max = 1'000'000;
};

std::string figure(const json::object& row, std::string_view key) {
  const json::value* value = row.if_contains(key);
  if (!value || !value->is_number()) return "-";
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", value->to_number<double>());
  return text;
}

std::vector<std::string> line_of(const json::object& row) {
  return {std::to_string(client::integer_at(row, "index")),
          std::to_string(client::integer_at(row, "id")),
          printable(text_at(row, "origin")),
          figure(row, "logprob"),
          figure(row, "entropy"),
          figure(row, "margin"),
          cli::quoted(printable(text_at(row, "token")))};
}

struct Page {
  json::array rows;
  bool has_more = false;
};

// `n_left` says how many rows are wanted still.
Result<Page> page_of(client::RemoteServer& server, const std::string& path, std::int64_t from, std::int64_t n_left) {
  auto page =
      server.get(path + "?from=" + std::to_string(from) + "&limit=" + std::to_string(std::min(n_left, kPageRows)));
  if (!page) return page.error();
  const bool has_more = client::is_true_at(*page, "has_more");
  auto rows = client::data_of(*std::move(page));
  if (!rows) return rows.error();
  return Page{*std::move(rows), has_more};
}

int tokens(const TokensSettings& settings) {
  client::RemoteServer server(settings.remote.endpoint);
  const auto names = whole_names(server, {settings.name});
  if (!names) return complain(names.error());
  const std::string path = "/v1/generations/" + client::percent_encoded(names->front()) + "/tokens";
  std::vector<std::vector<std::string>> rows = {{"INDEX", "ID", "ORIGIN", "LOGPROB", "ENTROPY", "MARGIN", "TOKEN"}};
  for (std::int64_t from = settings.from, n_left = settings.n_max; n_left > 0;) {
    const auto page = page_of(server, path, from, n_left);
    if (!page) return complain(page.error());
    for (const json::value& row : page->rows) {
      if (settings.remote.json)
        print_json(row);
      else if (row.is_object())
        rows.push_back(line_of(row.get_object()));
    }
    if (!page->has_more || page->rows.empty()) break;
    from += static_cast<std::int64_t>(page->rows.size());
    n_left -= static_cast<std::int64_t>(page->rows.size());
  }
  if (!settings.remote.json) std::fputs(table(rows).c_str(), stdout);
  return kOk;
}

}  // namespace

Command add_tokens(CLI::App& app) {
  auto settings = std::make_shared<TokensSettings>();
  CLI::App* command = app.add_subcommand("tokens", "Show the journal of a generation, token by token");
  command->footer(
      std::string(kNamesHelp) +
      "LOGPROB, ENTROPY and MARGIN (of the likeliest before the second) are in nats, of the raw softmax.\n\n"
      "Examples:\n  fermata tokens client:story --from 120\n  fermata tokens gen_3f --json | jq .token");
  command->add_option("NAME", settings->name, "The generation, by any of its names")->required()->check(why_empty);
  add_number(*command, "--from", settings->from, "Index of the first row; the prompt is counted", {0, 1'000'000});
  add_number(*command, "--limit", settings->n_max, "Most rows", {1, 1'000'000});
  settings->remote.add_json_to(*command);
  settings->remote.add_to(*command);
  return [settings](InterruptSignal&) { return tokens(*settings); };
}

}  // namespace fermata::cli
