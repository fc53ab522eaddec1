#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/endpoints/endpoint.h"
#include "api/endpoints/missing_clusters.h"

namespace ceems::api {

// What usage by day or month (usage_days.cc), usage by hour (usage_hours.cc) and their answers
// (usage_series.cc, usage_compared.cc, usage_table.cc) share.

enum class UsageField : std::uint8_t {
  kKwh,
  kGrams,
  kCost,
  kCoreHours,
  kGpuHours,
  kIdleKwh,
  kUnits,
  kIdleOfKwh,     ///< all energy of the units of kIdleKwh
  kNotUsedKwh,    ///< the part of kIdleKwh of what was not used at that time
  kNotUsedOfKwh,  ///< all energy of the units of kNotUsedKwh
  kCoreHoursWithEnergy,
  kGpuHoursWithEnergy,
  kGramsOfKwh,   ///< the energy that kGrams is of
  kMarketGrams,  ///< by what suppliers say (accounting/market.h)
  kMarketOfKwh,  ///< the energy that kMarketGrams is of
};
inline constexpr std::size_t kUsageFields = 15;
std::string_view name_of(UsageField field);
/// Whether it is known only of units that ended, on the day of their end.
bool is_of_ended(UsageField field);
/// Whether use without a value was not measured, or has no price or factor: it is a gap and not 0.
bool is_measured(UsageField field);

enum class UsageGroups : std::uint8_t { kNone, kProject, kUser, kCluster, kComponent };
enum class UsageStep : std::uint8_t { kHour, kDay, kMonth };

/// A form of tables for other programs.
enum class TableFormat : std::uint8_t { kCsv, kXlsx };

/// The only group where there are none.
inline constexpr std::string_view kAllUsage = "(all)";

struct UsageRequest {
  std::int64_t from_ms = 0, to_ms = 0;  ///< both included
  UsageStep step = UsageStep::kDay;
  UsageGroups by = UsageGroups::kNone;
  std::size_t top = 5;
  std::vector<UsageField> fields;
  bool previous = false;
  std::optional<TableFormat> table = {};  ///< nothing: JSON

  [[nodiscard]] bool wants(UsageField field) const;
};

/// Adds a value, if it is known, to a sum that is not known before the first one.
inline void add_known(std::optional<double>& sum, std::optional<double> value) {
  if (value) {
    sum = sum.value_or(0) + *value;
  }
}

/// Sums by group and time.
struct UsageSums {
  using Values = std::array<std::optional<double>, kUsageFields>;
  std::vector<std::int64_t> times;
  std::map<std::string, std::vector<Values>> groups;
  // Of days and months: the first day of which anything is known, of anybody (0: none), and how
  // many of the hours of all CPUs have an energy.
  std::int64_t first_ms = 0, end_ms = 0;  ///< the end is not included
  double hours = 0, hours_with_energy = 0;
  /// The energy that has a market-based factor, by MarketFactor::source.
  std::map<std::size_t, double> market_kwh = {};
  // Of hours:
  std::vector<MissingCluster> missing = {};
  bool partial = false;  ///< the database does not know all units yet

  std::optional<double>& at(const std::string& group, std::size_t time, UsageField field);
  /// Adds a value that is known.
  void add_to(const std::string& group,
              std::size_t time,
              UsageField field,
              std::optional<double> value);
  [[nodiscard]] std::optional<double> total(const std::string& group, UsageField field) const;
  /// Whether the day or month ends after the first known day. True for hours.
  [[nodiscard]] bool knows(std::size_t time) const;
  /// The share of the hours of all CPUs whose energy is known. Nothing without hours.
  [[nodiscard]] std::optional<double> energy_coverage() const;
  /// The values of a field: of the shown groups, then of all others together.
  [[nodiscard]] std::vector<std::vector<std::optional<double>>> rows(
      const std::vector<std::string>& shown, bool others, UsageField field) const;
};

/// The sums of the days or months that overlap the period. Passes on errors of the reader.
Result<UsageSums> read_usage_days(const Services& services,
                                  const Call& call,
                                  const UsageRequest& request);

/// The beginning of the day or month before the one that begins then.
std::int64_t time_before(std::int64_t time_ms, bool monthly, const TimeZone& zone);

/// The sums of these hours, which come from hours_of() or are as many before them. kInvalidArgument
/// with a text for clients if too many units would be read; otherwise the errors of the reader.
Result<UsageSums> read_usage_hours(const Services& services,
                                   const Call& call,
                                   const UsageRequest& request,
                                   const std::vector<std::int64_t>& hours);

}  // namespace ceems::api
