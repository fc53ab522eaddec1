#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/report/marks.h"
#include "api/report/measurements.h"
#include "api/tsdb/series_tsdb.h"
#include "base/result.h"

namespace ceems::api {

/// A regular expression of the names of all series of marks.
std::string_view names_of_marks();

/// Reads the marks of units of one cluster, in their order, by two queries for each group of units,
/// and one more for each unit on a node of which the exporter was restarted. No ID may be there
/// twice. A unit with more than 50,000 series has no marks, and says so in the log. Passes on
/// errors of tsdb::Client.
Result<std::vector<UnitMarks>> read_marks(const ClusterTsdb& tsdb,
                                          std::string_view cluster_id,
                                          const std::vector<UnitRun>& runs);

}  // namespace ceems::api
