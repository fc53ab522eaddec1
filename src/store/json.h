#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/unit.h"

namespace ceems::store {

// The texts of JSON columns (docs/api/database.md, "Values"). All functions accept any text, report
// malformed input only by their result, and are safe for concurrent use.

/// Appends a number of a metric map as answers show it: as an integer if it is one that fits 64
/// bits, otherwise with 8 decimals. NaN and infinities become 0.
void append_metric_number(std::string& out, double value);

/// Appends {"name":number,...} with sorted names and numbers as above.
void append_metric_map(std::string& out, const model::MetricMap& map);
/// The same for the database, with all digits of the numbers. Values of windows are added up there:
/// with 8 decimals the sum of a unit would depend on the number of its windows.
std::string metric_map_text(const model::MetricMap& map);

/// Parses a metric map. "" and "null" are empty maps. Null values, and NaN and infinities in any of
/// their usual spellings, bare or quoted, become 0. kParse for anything else that is not an object
/// of numbers.
Result<model::MetricMap> parse_metric_map(std::string_view text);

/// ["a","b"]
std::string string_list_text(const std::vector<std::string>& list);
/// Parses an array of strings; "" and "null" are empty. Elements of other types are left out.
Result<std::vector<std::string>> parse_string_list(std::string_view text);

}  // namespace ceems::store
