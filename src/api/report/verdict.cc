#include "api/report/verdict.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "advice/rule.h"
#include "api/request/list_params.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

using advice::Severity;
using store::Verdict;

/// Rules that the program carries whose suggestions are of another kind; version 17 of the database
/// names them, too (store/schema/fact_columns.cc).
constexpr std::array<std::string_view, 2> kNotSmaller{"idle", "mem-tight"};

Verdict verdict_of(const advice::Finding& finding) {
  if (finding.severity < Severity::kSuggest) {
    return Verdict::kUnknown;
  }
  const bool smaller = finding.severity == Severity::kSuggest &&
                       advice::core_rules().find(finding.rule) != nullptr &&
                       std::ranges::find(kNotSmaller, finding.rule) == kNotSmaller.end();
  return smaller ? Verdict::kSmaller : Verdict::kLook;
}

bool failed(std::string_view state) {
  const std::string word = to_lower(state.substr(0, state.find(' ')));
  return std::ranges::any_of(failed_states(),
                             [&](const std::string& one) { return to_lower(one) == word; });
}

bool fits(const report::Report& report) {
  return report.coverage.value_or(0) >= advice::kCoverage &&
         report.job.elapsed.value_or(0) >= advice::kShortestRun && !failed(report.job.state);
}

}  // namespace

Verdict verdict_of(const report::Report& report) {
  Verdict worst = Verdict::kUnknown;
  for (const advice::Finding& finding : report.findings) {
    worst = std::max(worst, verdict_of(finding));
  }
  return worst == Verdict::kUnknown && fits(report) ? Verdict::kFits : worst;
}

}  // namespace ceems::api
