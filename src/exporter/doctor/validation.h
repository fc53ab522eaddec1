#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::exporter {

/// The text of data/validation/results.csv, compiled in.
extern const std::string_view kResultsCsv;

/// The row of a CPU family as one sentence: "2 real nodes with AMD EPYC Milan were validated: mean
/// error of loads 4.1 % (compute 3.2, ...), of the idle node 1 %". Empty if the family has no row.
/// kParse names the line of a table that is not as the file describes it.
Result<std::string> validated_error(std::string_view table, std::string_view family);

}  // namespace ceems::exporter
