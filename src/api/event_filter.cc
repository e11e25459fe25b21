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
  const std::string types = request.parameter("types").value_or("");
  for (std::size_t begin = 0; begin < types.size();) {
    const std::size_t end = std::min(types.find(',', begin), types.size());
    const std::string type = types.substr(begin, end - begin);
    if (std::find(kEntryTypes.begin(), kEntryTypes.end(), type) == kEntryTypes.end())
      return no_such_word("types", type, kEntryTypes);
    filter.types_.insert(type);
    begin = end + 1;
  }
  return filter;
}

bool EventFilter::wants(const Dossier& dossier, std::size_t place) const {
  const auto& tags = dossier.options.tags;
  return dossier.tenant == tenant_ && (!session_ || *session_ == dossier.head.session) &&
         (!tag_ || std::find(tags.begin(), tags.end(), *tag_) != tags.end()) &&
         (types_.empty() || types_.contains(entry_type(dossier.recording.log()[place])));
}

}  // namespace fermata::api
