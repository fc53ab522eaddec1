#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/report.h"
#include "store/reader.h"
#include "store/reports.h"

namespace ceems::api {

/// A report that the finisher has made for the last time.
struct FinalReport {
  report::Report report = {};
  std::int64_t made_ms = 0;
  bool member = false;  ///< `members` see the usage of the project; otherwise its share is left out
};

/// The stored final report of a run of the project, the same for the page, `cacct report` and
/// mails. Nothing if there is none, or if it is malformed, which is logged. Passes on errors of the
/// reader.
Result<std::optional<FinalReport>> read_final_report(store::Reader& reader,
                                                     const store::ReportKey& key,
                                                     const std::string& project,
                                                     const store::Scope& members);

}  // namespace ceems::api
