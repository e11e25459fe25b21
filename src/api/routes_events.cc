// What generations say, to whoever wants to follow them: one from its beginning, or all of a tenant from now on.
#include <charconv>
#include <deque>
#include <memory>
#include <utility>

#include "api/broadcast.h"
#include "api/event_filter.h"
#include "api/feed.h"
#include "api/http/silence.h"
#include "api/http/websocket.h"
#include "api/records.h"
#include "api/respond.h"
#include "api/routes.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

// Waits for news, or says a comment. False: the client is gone.
asio::awaitable<bool> still_here(Signal& news, Silence& silence, Exchange& exchange) {
  const bool has_news = co_await news.wait(silence.left());
  if (has_news || exchange.is_gone()) co_return !exchange.is_gone();
  const bool is_here = co_await exchange.write(": still here\n\n");
  silence.begin();
  co_return is_here;
}

// ------------------------------------------------------------------------------------------------------------- of one

// `from` (inclusive), or after the last one that the client has.
Result<std::size_t> first_entry(const HttpRequest& request) {
  const std::optional<std::string> from = request.parameter("from");
  const std::string text = from ? *from : std::string(request.header("last-event-id"));
  if (!from && text.empty()) return std::size_t{0};
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > INT64_MAX)
    return Error{Code::kInvalidArgument, "from must be the number of an event", text, false, "from"};
  return from ? number : number + 1;
}

std::string entry_text(const Desk& desk, const Dossier& dossier, std::size_t place) {
  return "id: " + std::to_string(place) + "\nevent: " + std::string(entry_type(dossier.recording.log()[place])) +
         "\ndata: " + to_text(entry_object(desk, dossier, place)) + "\n\n";
}

asio::awaitable<void> events_of(Desk& desk, HttpRequest request, Exchange& exchange) {
  Result<std::shared_ptr<Dossier>> found = desk.find(name_in_path(request), request.principal);
  if (!found) co_return co_await refuse(exchange, found.error());
  const std::shared_ptr<Dossier> dossier = *std::move(found);
  const Result<std::size_t> from = first_entry(request);
  if (!from) co_return co_await refuse(exchange, from.error());
  const Recording& recording = dossier->recording;
  if (recording.ended() && *from >= recording.log().size()) {
    HttpResponse nothing_more;
    nothing_more.status = 204;
    co_return co_await exchange.respond(std::move(nothing_more));
  }
  exchange.on_gone([weak = std::weak_ptr<Dossier>(dossier)] {
    if (const auto alive = weak.lock()) alive->changed.notify();
  });
  bool is_here = co_await exchange.begin_stream(event_stream_head());
  Silence silence(desk.clock(), desk.options().keep_alive);
  std::size_t cursor = *from;
  while (is_here) {
    std::string piece;
    while (cursor < recording.log().size() && piece.size() < limits::kStreamPieceBytesMax)
      piece += entry_text(desk, *dossier, cursor++);
    if (!piece.empty()) {
      is_here = co_await exchange.write(piece);
      silence.begin();
      continue;
    }
    if (recording.ended()) break;
    is_here = co_await still_here(dossier->changed, silence, exchange);
  }
  if (is_here) co_await exchange.end_stream();
}

// ------------------------------------------------------------------------------------------------------------- of all

std::string event_text(std::string_view type, std::string_view data) {
  return "event: " + std::string(type) + "\ndata: " + std::string(data) + "\n\n";
}

// What a stream of all events has not sent yet.
struct Unsent {
  explicit Unsent(Exchange& exchange) : changed(exchange.executor()) {}

  bool offer(const Announcement& announcement) {
    const std::size_t n = announcement->data.size();
    if (events.size() >= limits::kFeedQueueMax || n_bytes + n > limits::kFeedBytesMax) return false;
    events.push_back(announcement);
    n_bytes += n;
    changed.notify();
    return true;
  }
  std::string take() {
    std::string piece;
    for (; !events.empty() && piece.size() < limits::kStreamPieceBytesMax; events.pop_front()) {
      piece += event_text(events.front()->type, events.front()->data);
      n_bytes -= events.front()->data.size();
    }
    return piece;
  }

  std::deque<Announcement> events;
  std::size_t n_bytes = 0;  // of their data
  bool is_last = false;     // none will follow
  Signal changed;
};

asio::awaitable<void> all_by_stream(Desk& desk, Broadcast& broadcast, HttpRequest request, EventFilter filter,
                                    Exchange& exchange) {
  Unsent unsent(exchange);
  Feed feed([&unsent](const Announcement& announcement) { return unsent.offer(announcement); });
  const auto take = [&feed](const Announcement& announcement) { feed.take(announcement); };
  const auto on_end = [&unsent] {
    unsent.is_last = true;
    unsent.changed.notify();
  };
  const Result<Broadcast::Following> following = broadcast.follow(request.principal, std::move(filter), take, on_end);
  if (!following) co_return co_await refuse(exchange, following.error());
  exchange.on_gone([&unsent] { unsent.changed.notify(); });
  bool is_here = co_await exchange.begin_stream(event_stream_head()) && co_await exchange.write(": following\n\n");
  Silence silence(desk.clock(), desk.options().keep_alive);
  while (is_here) {
    const std::string piece = unsent.take();
    if (!piece.empty()) {
      is_here = co_await exchange.write(piece);
      silence.begin();
    } else if (!feed.tell_lost()) {
      if (unsent.is_last) break;
      is_here = co_await still_here(unsent.changed, silence, exchange);
    }
  }
  if (is_here) is_here = co_await exchange.write(event_text("shutdown", R"({"type":"shutdown"})"));
  exchange.on_gone({});
  if (is_here) co_await exchange.end_stream();
}

asio::awaitable<void> all_by_websocket(Broadcast& broadcast, HttpRequest request, EventFilter filter,
                                       Exchange& exchange) {
  std::shared_ptr<WebSocketSession> socket;
  Feed feed([&socket](const Announcement& announcement) { return socket->offer(announcement->data); });
  const auto take = [&](const Announcement& announcement) {
    if (socket) feed.take(announcement);
  };
  // Before the handshake: a refusal is an answer of HTTP.
  const Result<Broadcast::Following> following = broadcast.follow(request.principal, std::move(filter), take);
  if (!following) co_return co_await refuse(exchange, following.error());
  socket = co_await exchange.accept_websocket();
  if (!socket) co_return;
  while (co_await socket->receive()) {  // says nothing that is listened to yet
  }
}

asio::awaitable<void> events_of_all(Desk& desk, Broadcast& broadcast, HttpRequest request, Exchange& exchange) {
  Result<EventFilter> filter = EventFilter::parse(request);
  if (!filter) co_return co_await refuse(exchange, filter.error());
  if (wants_websocket(request))
    co_return co_await all_by_websocket(broadcast, std::move(request), *std::move(filter), exchange);
  co_await all_by_stream(desk, broadcast, std::move(request), *std::move(filter), exchange);
}

}  // namespace

void add_event_routes(Router& router, Desk& desk) {
  const std::shared_ptr<Broadcast> broadcast = Broadcast::of(desk);
  router.add("GET", "/v1/generations/*/events", Scope::kUse,
             when_ready(desk, [&desk](HttpRequest request, Exchange& exchange) {
               return events_of(desk, std::move(request), exchange);
             }));
  router.add("GET", "/v1/events", Scope::kUse,
             when_ready(desk, [&desk, broadcast](HttpRequest request, Exchange& exchange) {
               return events_of_all(desk, *broadcast, std::move(request), exchange);
             }));
}

}  // namespace fermata::api
