#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/result.h"
#include "model/unit.h"
#include "report/report.h"
#include "store/reader.h"

namespace ceems::api {

/// The days of the month in which a moment lies, as rows of daily usage have them: local midnights.
/// `local` is a time such as "2026-11-17T09:12:00+0100", which gives the offset of the zone.
/// Nothing for another text.
std::optional<store::TimeRange> month_days(std::string_view local, std::int64_t at_ms);

/// Whether `members` has a member or a lead of the project. Owners of units need not be. Passes on
/// errors of the reader.
Result<bool> sees_project(store::Reader& reader,
                          const store::Scope& members,
                          const std::string& cluster_id,
                          const std::string& project);

/// The energy of the unit's project in the month in which the unit ended. Nothing if it is unknown,
/// or if `members` does not see the project. Passes on errors of the reader.
Result<report::Number> project_month_kwh(store::Reader& reader,
                                         const model::Unit& unit,
                                         const store::Scope& members);

/// Shares in those sums, for many units: reads each sum once. Not thread-safe.
class MonthShares {
 public:
  /// `reader` outlives it.
  MonthShares(store::Reader& reader, store::Scope members)
      : reader_(reader), members_(std::move(members)) {}

  /// The share of `kwh` in the energy of the unit's project in the month in which the unit ended.
  /// Nothing if one of them is unknown. Passes on errors of the reader.
  Result<report::Number> share_of(const model::Unit& unit, const report::Number& kwh);

 private:
  store::Reader& reader_;
  const store::Scope members_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, report::Number> sums_;
};

}  // namespace ceems::api
