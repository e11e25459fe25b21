#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http_message.h"
#include "api/openai/json.h"
#include "base/result.h"

namespace fermata::api {

class Desk;

// Lists as OpenAI has them: a page begins after an id, and tells of its first and last id and whether more follow.
struct PageCall {
  std::size_t limit = 0;
  bool newest_first = true;
  std::optional<std::string> after;
};

// The query parameters limit, order and after; kInvalidArgument that names the wrong one.
Result<PageCall> parse_page(const HttpRequest& request, std::string_view order_otherwise = "desc");

// {"object": "list", "data", "first_id", "last_id", "has_more"} of objects that have an id.
json::object list_object(json::array data, bool has_more = false);

Error no_such_place(const std::string& after);
// What an `after` that cut_page did not find among generations is: unknown, or forgotten, and then nobody knows where
// in the list it was.
Error lost_place(const Desk& desk, const Principal& who, const std::string& after);

// Leaves what the call asks for of `all`, which is oldest first; whether more follow. `after` may be one that the
// filter does not want: it may have changed since the page before. An unknown `after` is an error.
template <class Item, class IdOf, class Wants>
Result<bool> cut_page(const PageCall& call, std::vector<Item>& all, IdOf id_of, Wants wants) {
  if (call.newest_first) std::reverse(all.begin(), all.end());
  if (call.after) {
    const auto place =
        std::find_if(all.begin(), all.end(), [&](const Item& item) { return id_of(item) == *call.after; });
    if (place == all.end()) return no_such_place(*call.after);
    all.erase(all.begin(), place + 1);
  }
  std::erase_if(all, [&](const Item& item) { return !wants(item); });
  const bool has_more = all.size() > call.limit;
  if (has_more) all.resize(call.limit);
  return has_more;
}
template <class Item, class IdOf>
Result<bool> cut_page(const PageCall& call, std::vector<Item>& all, IdOf id_of) {
  return cut_page(call, all, id_of, [](const Item&) { return true; });
}

}  // namespace fermata::api
