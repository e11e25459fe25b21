#include "cli/event_reader.h"

#include <utility>

namespace fermata::cli {

void read_events(Core& core, const Started& started, Answer& answer,
                 const std::function<void(const TextEvent&)>& on_text,
                 const std::function<bool(const Answer&)>& until) {
  while (!answer.finished) {
    if (until && until(answer)) return;
    const std::optional<Event> event = started.events->pop(seconds(10));
    if (!event) {
      // A long prompt says nothing for long; an engine that answers is at work.
      const Result<Status> status = await(core.status(started.id));
      if (status) continue;
      answer.silent = true;
      answer.end.reason = EndReason::kError;
      answer.end.error = status.error();
      return;
    }
    if (const auto* text = std::get_if<TextEvent>(&event->content)) {
      answer.text += text->text;
      answer.rows.insert(answer.rows.end(), text->rows.begin(), text->rows.end());
      if (on_text) on_text(*text);
    } else if (const auto* end = std::get_if<FinishEvent>(&event->content)) {
      answer.end = *end;
      answer.finished = true;
    }
  }
}

}  // namespace fermata::cli
