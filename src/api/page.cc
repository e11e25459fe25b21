#include "api/page.h"

#include <utility>

#include "api/desk.h"
#include "api/respond.h"
#include "base/limits.h"

namespace fermata::api {

Result<PageCall> parse_page(const HttpRequest& request, std::string_view order_otherwise) {
  const Result<std::int64_t> limit =
      number_parameter(request, "limit", limits::kListPageDefault, 1, limits::kListPageMax);
  if (!limit) return limit.error();
  static constexpr std::string_view kOrders[] = {"asc", "desc"};
  if (const Result<void> known = check_word(request, "order", kOrders); !known) return known.error();
  const std::string order = request.parameter("order").value_or(std::string(order_otherwise));
  return PageCall{static_cast<std::size_t>(*limit), order == "desc", request.parameter("after")};
}

json::object list_object(json::array data, bool has_more) {
  json::object answer{{"object", "list"}, {"has_more", has_more}};
  answer["first_id"] = data.empty() ? json::value() : data.front().at("id");
  answer["last_id"] = data.empty() ? json::value() : data.back().at("id");
  answer["data"] = std::move(data);
  return answer;
}

Error no_such_place(const std::string& after) {
  return invalid("after", "after names nothing that is in this list", after);
}

Error lost_place(const Desk& desk, const Principal& who, const std::string& after) {
  if (!desk.is_forgotten(after, who)) return no_such_place(after);
  return {Code::kGone, "the page before ends with a generation that is no longer kept; begin anew", after, false,
          "after"};
}

}  // namespace fermata::api
