#include "gate/unit_filters.h"

#include <string_view>
#include <utility>

#include "gate/request.h"
#include "net/http.h"
#include "promql/ast.h"
#include "promql/matcher/matcher.h"
#include "promql/printer.h"

namespace ceems::gate {
namespace {

void append_filter(std::string& form,
                   std::string_view label,
                   promql::MatchOperator op,
                   std::string value) {
  promql::VectorSelector filter;
  filter.matchers.push_back(
      {.label = std::string(label), .op = op, .value = std::move(value), .offset = 0});
  append_name(form, "extra_filters[]");
  net::append_url_encoded(form, promql::print(filter));
}

}  // namespace

void append_unit_filters(std::string& form,
                         const Selection& selection,
                         const std::set<std::string, std::less<>>& units) {
  const SelectionRules& rules = selection.rules();
  std::string words;
  std::size_t count = 0;
  for (const std::string& unit : units) {
    words += words.empty() ? "" : "|";
    words += promql::quote_pattern(unit);
    ++count;
    if (count % kUnitsInPattern == 0 || count == units.size()) {
      append_filter(form, rules.unit_label, promql::MatchOperator::kMatches,
                    std::exchange(words, {}));
    }
  }
  if (selection.has_shared()) {
    for (const std::string& metric : rules.shared_metrics) {
      append_filter(form, "__name__", promql::MatchOperator::kEqual, metric);
    }
  }
}

}  // namespace ceems::gate
