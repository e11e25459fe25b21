#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/openai/answer.h"

namespace fermata::api {

// Makes the stream of one answer: pieces of server-sent events, each "data: {…}\n\n", to be written as they come.
// Owner: the io thread. `vocabulary` must outlive it. The order of calls:
//
//   begin  (text | keep_alive | event)*  (finish | pause_return | fail)
//
// The last of them ends with "data: [DONE]\n\n"; then nothing may be asked for.
class StreamAnswer {
 public:
  StreamAnswer(AnswerHead head, const Vocabulary& vocabulary);

  // The role chunk (chat) or an empty one, with `fermata` beside the choices.
  std::string begin();
  // What an earlier stream of this answer said, so that this one goes on from there. After begin().
  void skip(const TextEvent& event);
  // Empty if there is nothing to say: no text, and rows only where nobody asked for log-probabilities.
  std::string text(const TextEvent& event);
  // A chunk that adds nothing: clients do not count comments as life.
  std::string keep_alive() const;

  struct Notice {
    std::string_view type;  // paused, resumed, rewound
    std::uint64_t seq = 0;
    std::size_t to_byte = 0;
    std::size_t to_utf16 = 0;
    std::string pause_id = {};  // of one that is paused
  };
  // Empty unless the request asked for stream_events.
  std::string event(const Notice& notice) const;

  // Its generation was revised: of all that was said this is left. Says so if the request asked for stream_events; else
  // nothing, if nothing that this stream said is taken back; else the stream ends with the error `rewound`.
  struct Rewound {
    std::string chunks;
    bool ended = false;
  };
  Rewound rewind(const AnswerText& left, std::uint64_t seq);

  // The finish_reason, usage if asked for, [DONE]. An end that cut the answer short: usage if asked for, the error,
  // [DONE].
  std::string finish(const FinishEvent& end);
  // The client asked to get pauses back: finish_reason "pause", usage, [DONE].
  std::string pause_return(const json::object& pause_record, const Usage& usage);
  // An error that is no end of the generation, e.g. a pause that may not be waited for, or text taken back.
  std::string fail(const WireError& error);

  // What was sent so far, by this stream and those before it: the raw text, thoughts and their markers included.
  const TextCount& sent() const { return sent_; }

 private:
  struct Parts {
    bool has_role = false;
    bool has_text = false;
    std::string_view text = {};
    std::string_view thought = {};
    std::string logprobs = {};            // JSON; empty: none
    std::string_view finish_reason = {};  // empty: null
    std::string in_choice = {};           // more of the choice: `,"key":value`
    std::string top = {};                 // more beside the choices
  };
  std::string chunk(const Parts& parts) const;
  std::string usage_chunk(const Usage& usage) const;  // empty if nobody asked for it
  std::string rest();                                 // what was held for a marker of a thought
  void end();

  AnswerHead head_;
  const Vocabulary* vocabulary_;
  Logprobs logprobs_;
  ThoughtSplit split_;
  std::string prefix_;  // of every chunk, up to its choices
  TextCount sent_;
  std::size_t n_rows_sent_ = 0;
  bool has_begun_ = false;
  bool has_ended_ = false;
};

}  // namespace fermata::api
