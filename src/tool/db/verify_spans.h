#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "tool/db/progress.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// Compares the sums of every span that ceems_unit_spans lists (store/sums/unit_sums.h) with the
/// rows that they are the sums of: spans of the first level with units or daily_usage, others with
/// the spans one level below. Calls `fault` with a line for each difference. Both tables and those
/// two must have all columns. Memory holds one span.
Result<> check_spans(Tables& tables,
                     Progress& progress,
                     const std::function<void(std::string)>& fault);

}  // namespace ceems::tool::db
