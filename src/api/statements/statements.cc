#include <algorithm>

#include "api/statements/all.h"

namespace ceems::api {

const StatementSpec* find_statement(std::string_view name) {
  const auto all = statements();
  const auto found = std::ranges::find(all, name, &StatementSpec::name);
  return found == all.end() ? nullptr : &*found;
}

Result<statement::Document> make_statement(const StatementSpec& spec,
                                           const StatementContext& context,
                                           std::string_view period_name) {
  CEEMS_TRY(period, parse_period(period_name, context.zone));
  constexpr std::size_t kYear = 4;
  if ((spec.name == "month") == (period.name.size() == kYear) &&
      (spec.name == "month" || spec.name == "year")) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is not a {}", period.name, spec.name);
  }
  if (period.from_ms >= context.now_ms) {
    return fail(ErrorCode::kInvalidArgument, "'{}' has not begun", period.name);
  }
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
