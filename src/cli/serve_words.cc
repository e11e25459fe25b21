#include "cli/serve_words.h"

#include <string_view>
#include <utility>

#include "engine/llama/json_text.h"

namespace fermata::cli {
namespace {

std::string_view chat_in_words(std::string_view origin) {
  if (origin == "model") return "the model's own template";
  return origin == "file" ? "the template of --chat-template-file" : "no template: /v1/completions alone";
}

// As a client of this machine calls it: nobody can be asked at "any address".
std::string url_to_call(std::string url) {
  for (const auto& [any, one] :
       {std::pair<std::string, std::string>{"//0.0.0.0:", "//127.0.0.1:"}, {"//[::]:", "//[::1]:"}})
    if (const auto at = url.find(any); at != std::string::npos) url.replace(at, any.size(), one);
  return url;
}

// A call that is answered, and ends: without a template there are no dialogues.
std::string call_to_try(const Readiness& now, const std::string& url, const std::string& key) {
  const bool is_chat = !now.chat_origin.empty();
  return "curl -N " + key + url + (is_chat ? "/v1/chat/completions" : "/v1/completions") +
         " -H 'Content-Type: application/json' \\\n            -d '{" +
         (is_chat ? R"("messages": [{"role": "user", "content": "Why is the sky blue?"}])"
                  : R"("prompt": "The sky is blue because")") +
         R"(, "max_tokens": 200, "stream": true, "fermata": {"client_id": "try"}}')";
}

// Whoever comes by another name gets 421, which looks like a server that is broken.
std::string hosts_in_words(const Readiness& now) {
  std::string names;
  for (const std::string& host : now.hosts) names += (names.empty() ? "" : ", ") + printable(host);
  return names + "; by any other it answers 421: --allow-host NAME allows one";
}

}  // namespace

std::string told_when_ready(const Readiness& now) {
  const EngineInfo& info = now.info;
  const std::string url = url_to_call(now.url);
  const std::string key = now.wants_key ? "-H \"Authorization: Bearer $FERMATA_API_KEY\" " : "";
  const std::string control =
      "curl -X POST " + key + "-H 'Content-Type: application/json' " + url + "/v1/generations/client:try/";
  std::string told = "fermata serves " + now.model + " at " + now.url + "\n";
  const auto say = [&told](std::string_view name, const std::string& what) {
    told += "  " + std::string(name) + std::string(8 - name.size(), ' ') + what + "\n";
  };
  say("exact", (info.exactness.with_neighbours ? "yes: " : "no: ") + info.exactness.why);
  say("pool", std::to_string(info.n_cells) + " tokens, shared by all generations");
  say("chat", std::string(chat_in_words(now.chat_origin)));
  if (!now.hosts.empty()) say("names", hosts_in_words(now));
  if (now.wants_key) say("key", "export FERMATA_API_KEY=KEY (what 'fermata new-key' printed)");
  say("try", call_to_try(now, url, key));
  say("pause", control + "pause");
  say("resume", control + "resume");
  say("stop", "Ctrl-C");
  return told;
}

}  // namespace fermata::cli
