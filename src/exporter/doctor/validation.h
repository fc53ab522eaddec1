#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::exporter {

/// The text of data/energy-errors.csv, compiled in.
extern const std::string_view kEnergyErrorsCsv;

/// The column of the table for the meters of this node. Columns are named in its first line.
enum class MeterSet {
  kPackagesAndWall,  ///< a wall meter that follows within a second
  kPackagesAndBmc,   ///< a wall meter that averages over a minute
  kBmc,              ///< no meter of the packages
  kPackages,         ///< no wall meter
};

/// The errors of one column as one line: "long jobs 8.5 % (compute 11, ...), 10 s 12, ...". kParse
/// names the line of a table that is not as the file describes it.
Result<std::string> expected_error(std::string_view table, MeterSet meters);

/// The text of data/validation/results.csv, compiled in.
extern const std::string_view kResultsCsv;

/// The row of a CPU family as one sentence: "2 real nodes with AMD EPYC Milan were validated: mean
/// error of loads 4.1 % (compute 3.2, ...), of the idle node 1 %". Empty if the family has no row.
/// kParse names the line of a table that is not as the file describes it.
Result<std::string> validated_error(std::string_view table, std::string_view family);

}  // namespace ceems::exporter
