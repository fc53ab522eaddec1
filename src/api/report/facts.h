#pragma once

#include <cstddef>
#include <vector>

#include "advice/rule.h"
#include "advice/value.h"
#include "api/report/maker.h"
#include "api/report/measurements.h"
#include "report/report.h"
#include "store/reports.h"

namespace ceems::api {

/// All that is known of a run and its family.
struct Evidence {
  const StoredUnit& unit;
  const UnitRun& run;
  const UnitMeasurements* measured = nullptr;    ///< null: no TSDB, or it has no data of the unit
  const std::vector<store::FamilyRun>& earlier;  ///< newest first
  std::size_t out_of_memory = 0;                 ///< runs of the family with this state
  report::Number longest_limit = {};             ///< that the partition seems to allow, in seconds
  report::Number not_used_kwh = {};              ///< of the whole run, up to the last update
};

/// The numbers of the report, not rounded, without findings.
report::Report report_of(const Evidence& evidence);

/// The facts by which these rules judge the run (docs/report.md). `report` is report_of() the
/// evidence.
advice::Facts facts_of(const Evidence& evidence,
                       const report::Report& report,
                       const advice::RuleSet& rules);

/// What rules compare of an earlier run: the facts of the present one with what differs.
advice::Facts earlier_facts(const advice::Facts& present, const store::FamilyRun& earlier);

}  // namespace ceems::api
