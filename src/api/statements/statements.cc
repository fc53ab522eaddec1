#include <algorithm>

#include "api/statements/all.h"

namespace ceems::api {

const StatementSpec* find_statement(std::string_view name) {
  const auto all = statements();
  const auto found = std::ranges::find(all, name, &StatementSpec::name);
  return found == all.end() ? nullptr : &*found;
}

bool is_of_years(const StatementSpec& spec) {
  return spec.name != "month";
}

bool is_of_months(const StatementSpec& spec) {
  return spec.name != "year";
}

Result<StatementPeriod> statement_period(const StatementSpec& spec,
                                         std::string_view name,
                                         const TimeZone& zone,
                                         std::int64_t now_ms) {
  CEEMS_TRY(period, parse_period(name, zone));
  constexpr std::size_t kYear = 4;
  const bool year = period.name.size() == kYear;
  if (!(year ? is_of_years(spec) : is_of_months(spec))) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is not a {}", period.name, spec.name);
  }
  if (period.from_ms >= now_ms) {
    return fail(ErrorCode::kInvalidArgument, "'{}' has not begun", period.name);
  }
  return period;
}

Result<statement::Document> make_statement(const StatementSpec& spec,
                                           const StatementContext& context,
                                           const StatementPeriod& period) {
  CEEMS_TRY(inputs, read_statement_inputs(context, period));
  statement::Document document{.kind = std::string(spec.name),
                               .title = std::string(spec.title),
                               .site = context.site,
                               .period = period.name,
                               .from = context.zone.local_with_offset(period.from_ms),
                               .to = context.zone.local_with_offset(period.to_ms),
                               .written = context.zone.local_with_offset(context.now_ms),
                               .by = context.by};
  if (!context.cluster.empty()) {
    document.notes.push_back("Only of the cluster " + context.cluster + ".");
  }
  if (period.to_ms > context.now_ms) {
    document.notes.emplace_back("The period has not ended: numbers and coverage are until now.");
  }
  if (!inputs.of_site() && !inputs.sources.empty()) {
    document.notes.emplace_back("Meters of facility.yml are of the whole site.");
  }
  document.notes.emplace_back("A line without a value is not known; it is never 0.");
  document.notes.insert(document.notes.end(), inputs.problems.begin(), inputs.problems.end());
  document.sources = inputs.sources;
  spec.fill(inputs, document);
  return document;
}

}  // namespace ceems::api
