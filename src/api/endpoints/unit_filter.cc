#include "api/endpoints/unit_filter.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "access/lists.h"
#include "api/request/list_params.h"
#include "base/time/durations.h"

namespace ceems::api {

void set_owners(const Call& call, store::FactFilter& filter) {
  if (call.admin_route) {
    const std::vector<std::string> users = std::exchange(filter.users, {});
    access::list_everybodys(call.identity, users, filter);
  } else {
    access::list_own(call.identity, access::parse_part(call.params.scope), filter);
  }
}

Result<Searched> check_amount(const Services& services,
                              const Call& call,
                              store::FactFilter& filter) {
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(many, timer.run([&] { return services.reader->has_more_units(filter, kMaxUnits); }));
  if (!many) {
    return Searched::kAll;
  }
  if (filter.ended || filter.words.empty()) {
    return Searched::kRefused;
  }
  std::string_view words = call.params.text(Param::kWords);
  const std::size_t first = words.find_first_not_of(" \t\r\n");
  words.remove_prefix(std::min(first, words.size()));
  filter.id_prefix = words.substr(0, words.find_first_of(" \t\r\n"));
  return Searched::kIds;
}

void answer_too_much(Call& call) {
  answer_error(*call.response, ApiErrorType::kBadData,
               "the period has too many units: choose a shorter period (query parameters 'from' "
               "and 'to')");
}

Result<std::string> notes_of(const Services& services, Searched searched) {
  CEEMS_TRY(complete, services.reader->facts_complete());
  std::string notes;
  notes += complete ? "" : R"(,"partial":true)";
  notes += searched == Searched::kIds ? R"(,"searched":"ids")" : "";
  return notes;
}

std::optional<double> cost_of(Costs& costs,
                              const store::Cursor& row,
                              std::size_t place,
                              std::int64_t now_ms) {
  constexpr double kNano = 1e-9;
  if (!costs.any()) {
    return std::nullopt;
  }
  const std::int64_t energy = row.integer(place);
  const std::int64_t started = row.integer(place + 4);
  const std::int64_t ended = row.integer(place + 5);
  return costs.of(std::string(row.text(place + 3)), started, ended > 0 ? ended : now_ms,
                  energy < 0 ? std::nullopt : std::optional(static_cast<double>(energy) * kNano),
                  static_cast<double>(row.integer(place + 1)) / kHourSeconds,
                  static_cast<double>(row.integer(place + 2)) / kHourSeconds);
}

}  // namespace ceems::api
