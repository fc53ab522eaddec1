#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace date {
class time_zone;  // NOLINT(readability-identifier-naming): the library's
}

namespace ceems {

/// Wall-clock texts of a zone of the IANA data base. Cheap to copy; the data base lives as long as
/// the program. Times are epoch milliseconds. Safe for concurrent use.
class TimeZone {
 public:
  TimeZone() = default;  ///< UTC

  /// "" and "UTC" are UTC, "Local" the machine's zone, else an IANA name. kInvalidArgument
  /// "unknown time zone x".
  static Result<TimeZone> find(std::string_view name);

  /// LOCAL: 2031-04-05T06:07:08
  [[nodiscard]] std::string local(std::int64_t ms) const;
  /// LOCALZ: 2031-04-05T06:07:08+0200
  [[nodiscard]] std::string local_with_offset(std::int64_t ms) const;
  /// Reads LOCAL. Of a wall clock that stood twice the later moment, so that nothing is fetched
  /// again; of one that was skipped the moment of the change.
  [[nodiscard]] std::optional<std::int64_t> parse_local(std::string_view text) const;
  /// First moment of the local day that holds `ms`.
  [[nodiscard]] std::int64_t day_start(std::int64_t ms) const;
  /// Name of that day as LOCAL: 2031-04-05T00:00:00, also where midnight was skipped.
  [[nodiscard]] std::string day(std::int64_t ms) const;

 private:
  const date::time_zone* zone_ = nullptr;  // null: UTC
};

}  // namespace ceems
