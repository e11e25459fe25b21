#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/limits.h"
#include "chat/answering.h"
#include "chat/commands.h"
#include "chat/history.h"
#include "chat/line_editor.h"
#include "chat/readiness.h"
#include "chat/talk.h"
#include "chat/terminal.h"

namespace fermata::chat {
namespace {

using Kind = Key::Kind;

constexpr std::string_view kPrompt = "> ";
constexpr std::string_view kInjectPrompt = "go on with: ";
constexpr std::string_view kChoice = "Enter: go on · d: discard · i: put a sentence in · c: cancel, keep the text";

std::string indented(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out.append(kPrompt.size(), ' ');
  }
  return out;
}

std::string in_words(const News& pause) {
  std::string line = "paused";
  if (pause.at_token >= 0) line += " at token " + std::to_string(pause.at_token);
  char ms[32];
  std::snprintf(ms, sizeof ms, " (%.1f ms)", pause.reach_ms);
  if (pause.reach_ms > 0) line += ms;  // else nobody waited for it
  return line;
}

bool is_control(const Key& key, const char* letter) { return key.kind == Kind::kControl && key.text == letter; }

class TalkInTerminal {
 public:
  TalkInTerminal(client::RemoteServer& server, const TalkOptions& options, int stop)
      : server_(server),
        options_(options),
        stop_(stop),
        terminal_(options.has_colours),
        dialogue_(options.system),
        history_(options.history_path),
        editor_(&history_.entries()) {}

  TalkEnd run();

 private:
  enum class State {
    kAsking,     // the user writes
    kAnswering,  // the model does
    kPaused,
    kInjecting,  // paused, and the user writes how the answer goes on
  };

  void take_key(const Key& key);
  void take_key_asking(const Key& key);
  void take_key_answering(const Key& key);
  void take_key_paused(const Key& key);
  void take_key_injecting(const Key& key);
  void interrupt();
  void leave(TalkEnd end) { end_ = end; }

  void send();
  void take_line(const Line& line, const std::string& sent);
  void retry();
  void ask(const std::string& question);
  void begin(std::string question, std::string answer_begun);

  void take_news(const News& news);
  void take_text(const News& news);
  void fail(const Error& error);
  void resume();
  void inject();
  void discard();
  void cut();
  void keep_answer(bool is_cut);
  void offer_question();
  void suspend();

  void note(std::string_view text, Look look = Look::kDim);
  void show_editor();
  void show_waiting();
  void show_pause();
  void show_injection();

  client::RemoteServer& server_;
  const TalkOptions& options_;
  int stop_;
  SystemClock clock_;
  Terminal terminal_;
  Dialogue dialogue_;
  History history_;
  LineEditor editor_;  // of questions; takes what is typed while the model writes
  LineEditor injection_;
  State state_ = State::kAsking;
  std::unique_ptr<Answering> answering_;
  std::string question_;
  std::string answer_;  // as far as it was shown
  bool is_in_thought_ = false;
  bool is_last_kept_ = false;     // the dialogue ends with `question_`
  bool is_text_awaited_ = false;  // none has come
  News pause_;
  bool is_suspend_wanted_ = false;
  std::optional<Instant> interrupted_;
  bool is_leaving_asked_ = false;  // Ctrl-C at an empty prompt, and nothing since
  std::optional<TalkEnd> end_;
};

TalkEnd TalkInTerminal::run() {
  note(options_.greeting + "\nESC pauses an answer, Ctrl-C ends it, Ctrl-D leaves; /help tells more.\n\n");
  if (const Result<void> loaded = history_.load(); !loaded) note(loaded.error().message + "\n");
  show_editor();
  while (!end_) {
    if (!terminal_.flush()) return TalkEnd::kNobodyThere;
    const std::array descriptors = {terminal_.input(), terminal_.signals(), stop_};
    server_.http().wait(descriptors, terminal_.patience());
    if (can_be_read(stop_)) return TalkEnd::kStopped;
    const Terminal::Input input = terminal_.take_input();
    for (const Key& key : input.keys)
      if (!end_) take_key(key);
    if (!end_ && input.is_gone) leave(TalkEnd::kNobodyThere);
    is_suspend_wanted_ |= input.is_suspend_asked;
    if (answering_)
      for (const News& news : answering_->take_news())
        if (state_ != State::kAsking) take_news(news);
    if (is_suspend_wanted_ && !end_) suspend();
  }
  return *end_;
}

// --- keys

void TalkInTerminal::take_key(const Key& key) {
  if (is_control(key, "c")) return interrupt();
  is_leaving_asked_ = false;
  if (is_control(key, "z")) {
    if (std::exchange(is_suspend_wanted_, true)) terminal_.suspend();  // the pause takes too long
    return;
  }
  if (is_control(key, "l")) return terminal_.clear();
  switch (state_) {
    case State::kAsking: return take_key_asking(key);
    case State::kAnswering: return take_key_answering(key);
    case State::kPaused: return take_key_paused(key);
    case State::kInjecting: return take_key_injecting(key);
  }
}

void TalkInTerminal::take_key_asking(const Key& key) {
  if (is_control(key, "d") && editor_.text().empty()) return leave(TalkEnd::kLeft);
  const LineEditor::Did did = editor_.take(key);
  if (did == LineEditor::Did::kSent) return send();
  if (did == LineEditor::Did::kTooLong) note("that is too long: nothing was put in\n", Look::kRed);
  show_editor();
}

// What is typed waits for the next question, unseen: so nothing but writing, and Enter does not send it.
void TalkInTerminal::take_key_answering(const Key& key) {
  // ESC and a key right after it look like one with Alt, and nobody means that here.
  if (key.kind == Kind::kEscape || key.kind == Kind::kAlt) return answering_->pause();
  if (key.kind == Kind::kText || key.kind == Kind::kPaste || key.kind == Kind::kBackspace) editor_.take(key);
}

void TalkInTerminal::take_key_paused(const Key& key) {
  if (key.kind == Kind::kEnter) return resume();
  if (key.kind != Kind::kText) return;
  if (key.text == "d") return discard();
  if (key.text == "c") return cut();
  if (key.text != "i") return;
  state_ = State::kInjecting;
  show_injection();
}

void TalkInTerminal::take_key_injecting(const Key& key) {
  const LineEditor::Did did = key.kind == Kind::kEscape ? LineEditor::Did::kNothing : injection_.take(key);
  if (did == LineEditor::Did::kTooLong) note("that is too long: nothing was put in\n", Look::kRed);
  if (did == LineEditor::Did::kSent && !injection_.text().empty()) return inject();
  if (key.kind != Kind::kEscape && did != LineEditor::Did::kSent) return show_injection();
  state_ = State::kPaused;
  show_pause();
}

void TalkInTerminal::interrupt() {
  const Instant now = clock_.now();
  const bool is_second = interrupted_ && now - *interrupted_ < milliseconds(limits::kSecondInterruptMs);
  interrupted_ = now;
  if (is_second) return leave(TalkEnd::kInterrupted);
  if (state_ != State::kAsking) return cut();
  if (!editor_.text().empty()) {
    editor_.set({});
    return show_editor();
  }
  if (std::exchange(is_leaving_asked_, true)) return leave(TalkEnd::kInterrupted);
  note("Ctrl-C again leaves; so does Ctrl-D\n");
}

// --- questions

void TalkInTerminal::send() {
  const std::string sent = editor_.text();
  if (sent.find_first_not_of(" \t\n") == std::string::npos) return;
  editor_.set({});
  terminal_.hide();
  terminal_.write(std::string(kPrompt) + indented(sent), Look::kBold);
  terminal_.end_line();
  if (const Result<void> kept = history_.add(sent); !kept)
    note(kept.error().message + ": " + kept.error().detail + "\n");
  take_line(line_of(sent), sent);
  if (state_ == State::kAsking) show_editor();
}

void TalkInTerminal::take_line(const Line& line, const std::string& sent) {
  switch (line.kind) {
    case Line::Kind::kQuestion: return ask(line.text);
    case Line::Kind::kRetry: return retry();
    case Line::Kind::kQuit: return leave(TalkEnd::kLeft);
    case Line::Kind::kUnknown: editor_.set(sent); break;  // to be mended
    case Line::Kind::kNew: question_.clear(); break;
    default: break;
  }
  const Result<std::string> said = carry_out(line, dialogue_);
  if (!said)
    note(said.error().message + (said.error().detail.empty() ? "" : ": " + said.error().detail) + "\n", Look::kRed);
  else
    note(*said + (line.kind == Line::Kind::kHelp ? std::string(kKeysHelp) : ""));
}

void TalkInTerminal::retry() {
  if (question_.empty()) return note("nothing was asked yet\n");
  if (is_last_kept_) dialogue_.drop_last();
  begin(question_, {});
}

void TalkInTerminal::ask(const std::string& question) { begin(question, {}); }

void TalkInTerminal::begin(std::string question, std::string answer_begun) {
  question_ = std::move(question);
  answer_ = std::move(answer_begun);
  injection_.set({});  // what was begun for another answer
  is_last_kept_ = false;
  is_in_thought_ = false;
  const json::object request = request_for(options_, dialogue_, question_, answer_);
  answering_ = std::make_unique<Answering>(server_, request, options_.session);
  state_ = State::kAnswering;
  is_text_awaited_ = true;
  show_waiting();
}

// --- answers

void TalkInTerminal::take_news(const News& news) {
  switch (news.kind) {
    case News::Kind::kText:
    case News::Kind::kThought: return take_text(news);
    case News::Kind::kPaused:
      pause_ = news;
      state_ = State::kPaused;
      return show_pause();
    case News::Kind::kResumed: state_ = State::kAnswering; return show_waiting();
    case News::Kind::kEnded:
      if (news.text != "stop") note(news.text == "length" ? " [its token limit]" : " [" + news.text + "]");
      return keep_answer(false);
    case News::Kind::kFailed: return fail(news.error);
    case News::Kind::kRefused:
      is_suspend_wanted_ = false;
      terminal_.end_line();
      return note(news.error.message + "\n", Look::kRed);
  }
}

void TalkInTerminal::take_text(const News& news) {
  if (state_ == State::kAnswering) terminal_.hide();
  is_text_awaited_ = false;
  const bool is_thought = news.kind == News::Kind::kThought;
  if (std::exchange(is_in_thought_, is_thought) && !is_thought) terminal_.end_line();
  terminal_.write(news.text, is_thought ? Look::kDim : Look::kPlain);
  if (!is_thought) answer_ += news.text;
}

// What was shown stays; a question that nothing answers can be sent again.
void TalkInTerminal::fail(const Error& error) {
  terminal_.hide();
  terminal_.end_line();
  note(error.message + (error.detail.empty() ? "" : ": " + error.detail) + "\n", Look::kRed);
  if (answer_.empty()) offer_question();
  keep_answer(true);
}

void TalkInTerminal::keep_answer(bool is_cut) {
  is_last_kept_ = !answer_.empty();
  if (is_last_kept_) dialogue_.add({question_, answer_, is_cut});
  state_ = State::kAsking;
  terminal_.hide();
  terminal_.end_line();
  terminal_.write("\n");
  show_editor();
}

// To be changed and sent again. What was typed meanwhile stays; the question is one Up away then.
void TalkInTerminal::offer_question() {
  if (editor_.text().empty()) editor_.set(line_for(question_));
}

void TalkInTerminal::resume() {
  answering_->resume();
  state_ = State::kAnswering;
  show_waiting();
}

// The answer is ended and asked for anew, with the sentence at the end of what is there.
void TalkInTerminal::inject() {
  const std::string sentence = joint_of(answer_, injection_.text());
  answering_->cancel();
  terminal_.hide();
  terminal_.write(sentence, Look::kBold);
  begin(question_, answer_ + sentence);
}

void TalkInTerminal::discard() {
  answering_->cancel();
  terminal_.hide();
  note(" [discarded]");
  answer_.clear();
  offer_question();
  keep_answer(true);
}

void TalkInTerminal::cut() {
  answering_->cancel();
  terminal_.hide();
  note(" [cut]");
  keep_answer(true);
}

// An answer is paused first: its server may be in this process, and would not know how long it stood still.
void TalkInTerminal::suspend() {
  if (state_ == State::kAnswering) return answering_->pause();
  is_suspend_wanted_ = false;
  terminal_.suspend();
}

// --- what is shown

void TalkInTerminal::note(std::string_view text, Look look) { terminal_.write(text, look); }

void TalkInTerminal::show_editor() { terminal_.show({std::string(kPrompt), editor_.text(), editor_.cursor()}); }

// Where text is, more of it is sign enough.
void TalkInTerminal::show_waiting() {
  constexpr std::string_view kSign = "…";
  terminal_.hide();
  if (is_text_awaited_) terminal_.show({{}, std::string(kSign), kSign.size(), Look::kDim});
}

void TalkInTerminal::show_pause() {
  const std::string text = in_words(pause_) + "\n" + std::string(kChoice);
  terminal_.show({{}, text, text.size(), Look::kDim});
}

void TalkInTerminal::show_injection() {
  terminal_.show({std::string(kInjectPrompt), injection_.text(), injection_.cursor()});
}

}  // namespace

TalkEnd talk_in_terminal(client::RemoteServer& server, const TalkOptions& options, int stop) {
  return TalkInTerminal(server, options, stop).run();
}

}  // namespace fermata::chat
