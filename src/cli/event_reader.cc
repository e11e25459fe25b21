#include "cli/event_reader.h"

#include <utility>

namespace fermata::cli {

void read_events(EventRing& events, Answer& answer, const std::function<void(const TextEvent&)>& on_text,
                 const std::function<bool(const Answer&)>& until) {
  while (!answer.finished) {
    if (until && until(answer)) return;
    const std::optional<Event> event = events.pop(seconds(60));
    if (!event) {
      answer.end.reason = EndReason::kError;
      answer.end.error = {Code::kEngine, "the engine fell silent", {}, true};
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
