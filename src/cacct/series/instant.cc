#include "cacct/series/instant.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/strings.h"

namespace ceems::cacct {

Field instant_field(const SeriesQuery& query) {
  Field field;
  field.name = to_lower(query.name);
  field.label = terminal_safe(query.name);
  field.tag = query.name;
  field.title = terminal_safe(query.title);
  field.max = 12;
  field.kind = FieldKind::kAmount;
  field.help = terminal_safe(query.help);
  field.instant = true;
  return field;
}

Result<> add_instant_value(tsdb::Client& client,
                           const SeriesQuery& query,
                           InstantWindow window,
                           tsdb::QueryVariables variables,
                           std::vector<Record>& units) {
  std::vector<std::string> uuids;
  for (const Record& unit : units) {
    uuids.emplace_back(unit.text("uuid"));
  }
  std::ranges::sort(uuids);
  uuids.erase(std::ranges::unique(uuids).begin(), uuids.end());
  variables.range =
      tsdb::duration_text(std::chrono::seconds(std::max<std::int64_t>(window.to - window.from, 1)));
  CEEMS_TRY(answer, client.query({.query = query.render(uuids, std::move(variables)),
                                  .time_ms = window.to * 1000}));
  std::map<std::string, std::map<std::string, double>, std::less<>> values;
  for (const tsdb::Series& series : answer.series) {
    const double value = series.samples.empty() ? 0 : series.samples.front().value;
    if (std::isfinite(value)) {
      values[std::string(series.labels.get("uuid"))]
            [terminal_safe(series.labels.get("provider"))] += value;
    }
  }
  for (Record& unit : units) {
    if (const auto found = values.find(unit.text("uuid")); found != values.end()) {
      unit.metrics[query.name].assign(found->second.begin(), found->second.end());
    }
  }
  return {};
}

}  // namespace ceems::cacct
