#include "api/send_answer.h"

#include <utility>

#include "api/http/silence.h"
#include "api/openai/stream_answer.h"
#include "api/records.h"
#include "api/respond.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

// Somebody has to resume it, and its reader is not the cause.
bool is_for_the_client(const PauseRecord& record) {
  return needs_resume(record.reason) && record.reason != WaitReason::kSlowReader;
}

bool returns_pauses(const Dossier& dossier) { return dossier.options.on_pause == OnPause::kReturn; }

// What clients that cannot read a body, or read the headers first, find there.
std::vector<std::pair<std::string, std::string>> headers_of(const Dossier& dossier) {
  std::vector<std::pair<std::string, std::string>> headers = {{"x-fermata-generation", dossier.id()}};
  if (!dossier.head.session.empty()) headers.emplace_back("x-fermata-session", dossier.head.session);
  return headers;
}

// What the log calls an answer's end with a pause that is returned; else it ends as the generation does.
constexpr std::string_view kEndByPause = "pause";

// The same for a stream and a whole answer. Whoever is asked to stop, and does, did well; a time limit is its client's.
Ending ending_of(const FinishEvent& finish) {
  switch (finish.reason) {
    case EndReason::kNone:
    case EndReason::kStop:
    case EndReason::kLength:
    case EndReason::kToolCalls:
    case EndReason::kContentFilter:
    case EndReason::kCancelled:
    case EndReason::kReplaced:
    case EndReason::kDisconnected: return Ending::kWell;
    case EndReason::kTimeout:
    case EndReason::kShutdown: return Ending::kRefused;
    case EndReason::kError: break;
  }
  return end_error(finish).status >= 500 ? Ending::kFailed : Ending::kRefused;
}

void note_end(Exchange& exchange, const FinishEvent& finish) {
  exchange.note_end(to_string(finish.reason), ending_of(finish));
}
void note_pause(Exchange& exchange) { exchange.note_end(kEndByPause, Ending::kWell); }

// Of a reader that went: its generation ends by that, unless somebody wants it all the same.
void note_left(Exchange& exchange, const Dossier& dossier) {
  const OnDisconnect gone = dossier.options.on_disconnect;
  const bool ends = dossier.readers.size() <= 1 && (gone == OnDisconnect::kDefault || gone == OnDisconnect::kCancel);
  exchange.note_end(ends ? to_string(EndReason::kDisconnected) : std::string_view(), Ending::kLeft);
}

void note_end_of_stream(Exchange& exchange, const LogEntry& last) {
  if (const auto* finish = std::get_if<FinishEvent>(&last.what)) return note_end(exchange, *finish);
  if (std::holds_alternative<RewindEvent>(last.what)) return exchange.note_end("rewound", Ending::kRefused);
  note_pause(exchange);
}

// Appends what an entry is to a stream. True if the stream ends with it.
bool say(const Desk& desk, const Dossier& dossier, std::size_t place, StreamAnswer& answer, std::string& out) {
  const LogEntry& entry = dossier.recording.log()[place];
  if (const auto* text = std::get_if<TextEvent>(&entry.what)) {
    out += answer.text(*text);
    return false;
  }
  if (const auto* finish = std::get_if<FinishEvent>(&entry.what)) {
    out += answer.finish(*finish);
    return true;
  }
  if (std::holds_alternative<RewindEvent>(entry.what)) {
    auto [chunks, ended] = answer.rewind(dossier.recording.text_until(place + 1), place);
    out += chunks;
    return ended;
  }
  const TextCount& sent = answer.sent();
  if (std::holds_alternative<LogEntry::Resumed>(entry.what))
    out += answer.event({"resumed", place, sent.n_bytes, sent.n_utf16});
  const auto* paused = std::get_if<LogEntry::Paused>(&entry.what);
  if (!paused) return false;
  const PauseTicket& ticket = dossier.recording.tickets()[paused->ticket];
  out += answer.event({"paused", place, sent.n_bytes, sent.n_utf16, ticket.id});
  if (!returns_pauses(dossier) || !is_for_the_client(ticket.record)) return false;
  out += answer.pause_return(pause_object(desk, dossier, ticket), usage_at(dossier, ticket.record));
  return true;
}

// The pause that a whole answer ends with, if there is one: the first after `from`, also when it was resumed meanwhile.
// A repeated request gets what the first one got.
const PauseTicket* returned_pause(const Dossier& dossier, std::size_t from) {
  if (!returns_pauses(dossier)) return nullptr;
  for (const PauseTicket& ticket : dossier.recording.tickets())
    if (ticket.log_end > from && is_for_the_client(ticket.record)) return &ticket;
  return nullptr;
}

HttpResponse whole_until(Desk& desk, const Dossier& dossier, const PauseTicket& ticket) {
  return json_response(paused_answer(dossier.head, dossier.recording.text_until(ticket.log_end),
                                     pause_object(desk, dossier, ticket), usage_at(dossier, ticket.record),
                                     desk.core().vocabulary()));
}

// The reader is registered as long as this lives.
class Reading {
 public:
  Reading(Desk& desk, std::shared_ptr<Dossier> dossier, std::size_t from, Exchange& exchange)
      : cursor(from), desk_(desk), dossier_(std::move(dossier)), exchange_(exchange) {
    desk_.reader_comes(dossier_, &cursor);
    exchange_.on_gone([weak = std::weak_ptr<Dossier>(dossier_)] {
      if (const auto alive = weak.lock()) alive->changed.notify();
    });
  }
  ~Reading() { desk_.reader_leaves(dossier_, &cursor, !got_all && exchange_.is_gone()); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  std::size_t cursor;  // entries of the log that it has
  bool got_all = false;

 private:
  Desk& desk_;
  std::shared_ptr<Dossier> dossier_;
  Exchange& exchange_;
};

}  // namespace

asio::awaitable<void> send_stream(Desk& desk, std::shared_ptr<Dossier> dossier, std::size_t from, Exchange& exchange) {
  Reading reading(desk, dossier, from, exchange);
  const std::vector<LogEntry>& log = dossier->recording.log();
  HttpResponse head = event_stream_head();
  for (auto& header : headers_of(*dossier)) head.headers.push_back(std::move(header));
  StreamAnswer answer(dossier->head, desk.core().vocabulary());
  std::string piece = answer.begin();
  const AnswerText before = dossier->recording.text_until(from);  // an earlier stream sent it
  answer.skip({before.text, 0, before.rows, before.n_bytes_cut});
  bool is_here = co_await exchange.begin_stream(std::move(head));
  Silence silence(desk.clock(), desk.options().keep_alive);
  while (is_here) {
    for (; reading.cursor < log.size() && !reading.got_all && piece.size() < limits::kStreamPieceBytesMax;
         ++reading.cursor)
      reading.got_all = say(desk, *dossier, reading.cursor, answer, piece);
    if (!dossier->head.stream_events) dossier->n_text_sent = std::max(dossier->n_text_sent, answer.sent().n_bytes);
    if (!piece.empty()) {
      is_here = co_await exchange.write(piece);
      piece.clear();
      silence.begin();
    }
    if (!is_here || reading.got_all) break;
    if (reading.cursor < log.size()) continue;
    desk.reader_caught_up(dossier);
    const bool has_news = co_await dossier->changed.wait(silence.left());
    if (exchange.is_gone()) break;
    if (!has_news) piece = answer.keep_alive();
  }
  if (reading.got_all) note_end_of_stream(exchange, log[reading.cursor - 1]);
  if (reading.got_all && is_here) co_await exchange.end_stream();
}

asio::awaitable<void> send_whole(Desk& desk, std::shared_ptr<Dossier> dossier, std::size_t from, Exchange& exchange) {
  Reading reading(desk, dossier, Desk::kTakesAll, exchange);
  const Recording& recording = dossier->recording;
  HttpResponse response;
  const PauseTicket* returned = returned_pause(*dossier, from);
  while (!returned && !recording.ended()) {
    const PauseTicket* pause = recording.pause();
    Duration at_most = Signal::kForever;
    if (pause && is_for_the_client(pause->record)) {
      at_most = pause->reached + desk.options().pause_wait - desk.clock().now();
      if (at_most.ns <= 0) {
        response =
            error_response(Error{Code::kPaused, "the generation is paused; resume it, or ask for it as a stream", {}},
                           {{"pause", pause_object(desk, *dossier, *pause)}, {"generation", dossier->id()}});
        break;
      }
    }
    co_await dossier->changed.wait(at_most);
    if (exchange.is_gone()) {  // or half gone: it still hears the end
      note_left(exchange, *dossier);
      response = error_response(Error{Code::kAborted, "the client closed its side of the connection", {}});
      break;
    }
    returned = returned_pause(*dossier, from);
  }
  if (returned) {
    note_pause(exchange);
    response = whole_until(desk, *dossier, *returned);
  } else if (recording.ended()) {
    const FinishEvent& end = *recording.end();
    note_end(exchange, end);
    response = finish_reason(end.reason)
                   ? json_response(whole_answer(dossier->head, recording.text(), end, desk.core().vocabulary()))
                   : error_response(end_error(end));
  }
  for (auto& header : headers_of(*dossier)) response.headers.push_back(std::move(header));
  reading.got_all = returned || recording.ended() || !exchange.is_gone();
  co_await exchange.respond(std::move(response));
}

}  // namespace fermata::api
