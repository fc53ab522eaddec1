#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/unit.h"

namespace ceems::store {

// Texts of the JSON columns (docs/api/database.md, "Values"). All functions take text of any kind,
// never fail on hostile input other than by their result, and are safe for concurrent use.

/// A number of a metric map: as an integer where it equals its 64-bit integer truncation, else with
/// 8 decimals. NaN and infinities are 0.
void append_metric_number(std::string& out, double value);

/// {"name":number,...} with sorted names, numbers as above.
void append_metric_map(std::string& out, const model::MetricMap& map);
/// The same for the data base, with all digits of the numbers: windows are added up there, and 8
/// decimals a window would make a unit's sum depend on how many windows it spans.
std::string metric_map_text(const model::MetricMap& map);

/// Reads a metric map. "" and "null" are empty; null values, and NaN and infinities in any of the
/// usual spellings, bare or quoted, are 0. kParse for anything else that is no object of numbers.
Result<model::MetricMap> parse_metric_map(std::string_view text);

/// ["a","b"]
std::string string_list_text(const std::vector<std::string>& list);
/// Elements of an array of strings; "" and "null" are empty. Elements of other types are left out.
Result<std::vector<std::string>> parse_string_list(std::string_view text);

}  // namespace ceems::store
