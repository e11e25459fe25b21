#include "api/event_filter.h"

#include <algorithm>

#include "api/records.h"
#include "api/respond.h"

namespace fermata::api {

Result<EventFilter> EventFilter::parse(const HttpRequest& request) {
  EventFilter filter;
  filter.tenant_ = request.principal.tenant;
  filter.session_ = request.parameter("session");
  filter.tag_ = request.parameter("tag");
  auto types = words_parameter(request, "types", kEntryTypes);
  if (!types) return types.error();
  filter.types_ = *std::move(types);
  return filter;
}

bool EventFilter::wants(const Dossier& dossier, std::size_t place) const {
  const auto& tags = dossier.options.tags;
  return dossier.tenant == tenant_ && (!session_ || *session_ == dossier.head.session) &&
         (!tag_ || std::find(tags.begin(), tags.end(), *tag_) != tags.end()) &&
         (types_.empty() || types_.contains(entry_type(dossier.recording.log()[place])));
}

}  // namespace fermata::api
