#include "client/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/limits.h"
#include "base/own_machine.h"

namespace fermata::client {
namespace {

struct EasyCloser {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListCloser {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

void begin_curl() {
  static const CURLcode begun = curl_global_init(CURL_GLOBAL_DEFAULT);
  FERMATA_CHECK(begun == CURLE_OK);
}

// Whatever is between us and others, nothing is between us and ourselves.
bool is_own_machine(const std::string& url) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parts(curl_url(), curl_url_cleanup);
  char* name = nullptr;
  if (!parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), CURLU_GUESS_SCHEME) != CURLUE_OK ||
      curl_url_get(parts.get(), CURLUPART_HOST, &name, 0) != CURLUE_OK)
    return false;
  const bool is_own = names_own_machine(name);
  curl_free(name);
  return is_own;
}

}  // namespace

struct HttpClient::Transfer {
  Id id = 0;
  HttpCall call;
  OnPiece on_piece;
  OnEnd on_end;
  HttpAnswer answer;
  std::uint64_t* n_given = nullptr;  // of the client
  bool is_stream = false;
  bool is_too_large = false;
  bool is_dropped = false;
  std::array<char, CURL_ERROR_SIZE> why{};
  std::unique_ptr<curl_slist, ListCloser> headers;
  std::unique_ptr<CURL, EasyCloser> easy{curl_easy_init()};

  void add_header(const std::string& line) {
    headers.reset(curl_slist_append(headers.release(), line.c_str()));
    FERMATA_CHECK(headers != nullptr);
  }
  static std::size_t take(char* bytes, std::size_t size, std::size_t n, void* self) {
    return static_cast<Transfer*>(self)->take({bytes, size * n}) ? size * n : 0;  // 0 ends the transfer
  }
  bool take(std::string_view bytes);
};

bool HttpClient::Transfer::take(std::string_view bytes) {
  if (is_dropped) return false;
  if (answer.status == 0) {
    long status = 0;
    const char* type = nullptr;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy.get(), CURLINFO_CONTENT_TYPE, &type);
    answer.status = static_cast<int>(status);
    is_stream = on_piece && status < 300 && type && std::string_view(type).starts_with("text/event-stream");
  }
  if (is_stream) {
    ++*n_given;
    on_piece(bytes);
    return !is_dropped;
  }
  is_too_large = answer.body.size() + bytes.size() > limits::kAnswerBytesMax;
  if (!is_too_large) answer.body += bytes;
  return !is_too_large;
}

void HttpClient::MultiCloser::operator()(void* multi) const { curl_multi_cleanup(static_cast<CURLM*>(multi)); }

HttpClient::HttpClient(Endpoint endpoint) : endpoint_(std::move(endpoint)) {
  begin_curl();
  multi_.reset(curl_multi_init());
  FERMATA_CHECK(multi_ != nullptr);
  while (endpoint_.url.ends_with('/')) endpoint_.url.pop_back();
  is_local_ = is_own_machine(endpoint_.url);
}

HttpClient::~HttpClient() {
  for (const auto& [id, transfer] : transfers_) curl_multi_remove_handle(multi_.get(), transfer->easy.get());
  for (const auto& transfer : dropped_) curl_multi_remove_handle(multi_.get(), transfer->easy.get());
}

HttpClient::Id HttpClient::begin(HttpCall call, OnPiece on_piece, OnEnd on_end) {
  auto transfer = std::make_unique<Transfer>();
  CURL* easy = transfer->easy.get();
  FERMATA_CHECK(easy != nullptr);
  transfer->id = next_id_++;
  transfer->n_given = &n_given_;
  transfer->call = std::move(call);
  transfer->on_piece = std::move(on_piece);
  transfer->on_end = std::move(on_end);
  if (!endpoint_.api_key.empty()) transfer->add_header("Authorization: Bearer " + endpoint_.api_key);
  if (transfer->call.method != "GET") {
    transfer->add_header("Content-Type: application/json");
    transfer->add_header("Expect:");  // an answer before the body is of no use here
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer->call.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->call.body.data());
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, transfer->call.method.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_URL, (endpoint_.url + transfer->call.path).c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);  // a generation may be called ".."
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, static_cast<curl_write_callback>(&Transfer::take));
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->why.data());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits::kConnectMs));
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);  // a machine that is gone says nothing, like a pause
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, static_cast<long>(limits::kTcpKeepAliveS));
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, static_cast<long>(limits::kTcpKeepAliveS));
  if (transfer->call.at_most.ns > 0) {
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(transfer->call.at_most.ms() / 1000));
  }
  if (is_local_) curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer.get());
  FERMATA_CHECK(curl_multi_add_handle(multi_.get(), easy) == CURLM_OK);
  const Id id = transfer->id;
  transfers_.emplace(id, std::move(transfer));
  return id;
}

// Inside a callback libcurl still holds the handle: it goes when wait() has returned from libcurl.
void HttpClient::drop(Id id) {
  const auto place = transfers_.find(id);
  if (place == transfers_.end()) return;
  place->second->is_dropped = true;
  dropped_.push_back(std::move(place->second));
  transfers_.erase(place);
}

void HttpClient::wait(std::span<const int> descriptors, Duration at_most) {
  std::vector<curl_waitfd> watched;
  for (const int descriptor : descriptors) watched.push_back({descriptor, CURL_WAIT_POLLIN, 0});
  if (go_on()) return;
  curl_multi_poll(multi_.get(), watched.data(), static_cast<unsigned>(watched.size()),
                  static_cast<int>(std::clamp(at_most.ms(), 0.0, 1e6)), nullptr);
  go_on();
}

// True: something was given to a callback.
bool HttpClient::go_on() {
  const std::uint64_t n_before = n_given_;
  int n_running = 0;
  curl_multi_perform(multi_.get(), &n_running);
  finish_those_done();
  return n_given_ != n_before;
}

void HttpClient::finish_those_done() {
  for (const auto& transfer : std::exchange(dropped_, {})) curl_multi_remove_handle(multi_.get(), transfer->easy.get());
  int n_left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &n_left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* done = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &done);
    const CURLcode code = message->data.result;
    curl_multi_remove_handle(multi_.get(), message->easy_handle);
    const auto place = transfers_.find(done->id);
    if (place == transfers_.end()) continue;
    const std::unique_ptr<Transfer> transfer = std::move(place->second);
    transfers_.erase(place);
    ++n_given_;
    transfer->on_end(outcome(*transfer, code));
  }
}

Result<HttpAnswer> HttpClient::outcome(const Transfer& transfer, int curl_code) const {
  const auto code = static_cast<CURLcode>(curl_code);
  const std::string why = transfer.why[0] ? transfer.why.data() : curl_easy_strerror(code);
  if (transfer.is_too_large)
    return Error{Code::kTooLarge, "the server's answer is too long", "limit " + std::to_string(limits::kAnswerBytesMax),
                 false};
  if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
    return Error{
        Code::kIo,
        "no server answers at " + endpoint_.url + "; start one with 'fermata serve', or name another with --url", why,
        true};
  const bool is_url_well = endpoint_.url.starts_with("http://") || endpoint_.url.starts_with("https://");
  if (code == CURLE_WEIRD_SERVER_REPLY || (code == CURLE_UNSUPPORTED_PROTOCOL && is_url_well))
    return Error{Code::kIo, "what answers at " + endpoint_.url + " is no fermata server; --url names another", why,
                 false};
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
    return Error{Code::kInvalidArgument, "an URL is written http://host:port or https://host", endpoint_.url, false};
  if (code != CURLE_OK) return Error{Code::kIo, "the connection to " + endpoint_.url + " broke off", why, true};
  HttpAnswer answer = transfer.answer;
  long status = 0;
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);  // it may have no body
  return answer;
}

Result<HttpAnswer> HttpClient::ask(HttpCall call) {
  std::optional<Result<HttpAnswer>> answer;
  begin(std::move(call), {}, [&](Result<HttpAnswer> result) { answer.emplace(std::move(result)); });
  while (!answer) wait({}, seconds(1));
  return *std::move(answer);
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = byte < 0x80 && (std::isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~');
    if (is_plain)
      out += c;
    else
      (out += '%').append({kHex[byte >> 4], kHex[byte & 15]});
  }
  return out;
}

}  // namespace fermata::client
