#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/endpoints/usage_series.h"

namespace ceems::api {

/// How many groups a table has one by one.
inline constexpr std::size_t kMaxTableGroups = 5000;
/// How many rows, because a table and its workbook are made in memory.
inline constexpr std::size_t kMaxTableRows = 50'000;

/// Usage as it is answered, for a table with a row for each time and group.
struct UsageTable {
  std::string_view step = {}, by = {};
  std::vector<UsageField> fields = {};
  std::vector<std::int64_t> times = {};  ///< the beginnings, in milliseconds since 1970
  std::vector<std::string> groups = {};
  /// By field, group and time.
  std::vector<std::vector<std::vector<std::optional<double>>>> values = {};
  std::int64_t first_ms = 0;  ///< the first day of which anything is known; 0: not known
  /// The share of the core-hours whose energy is known.
  std::optional<double> energy_coverage = {};
  std::map<std::size_t, double> market_kwh = {};  ///< as in UsageSums
};

/// The parameter `format`: nothing for JSON. kInvalidArgument with a text for clients.
Result<std::optional<TableFormat>> parse_table_format(const Params& params);

/// Answers with the table as a file. It has the same numbers as the JSON.
void answer_usage_table(const Services& services,
                        Call& call,
                        const UsageTable& usage,
                        TableFormat format);

}  // namespace ceems::api
