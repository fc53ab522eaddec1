#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/reader.h"

namespace ceems::api {

/// All query parameters of the API. Each endpoint lists those it accepts and ignores the others.
enum class Param : std::uint8_t {
  kClusterId,
  kProject,
  kUser,
  kUuid,
  kFrom,
  kTo,
  kRunning,
  kField,
  kTimeZone,
  kGroupBy,
  kExperimental,
  kTerminated,
  kRole,
  kLimit,
  kCursor,
  kScope,
  kSort,
  kOrder,
  kAnonymous,
  kMatch,
  kPartition,
  kQos,
  kQueue,
  // Of lists and sums over units. Their values are read by Params::text() and list().
  kWords,
  kState,
  kPartitionName,
  kAdvice,
  kCpu,
  kMem,
  kGpu,
  kGpuMem,
  kKwh,
  kUnused,
  kNotUsed,
  kGrams,
  kWall,
  kColumns,
  kFormat,
  kFacets,
  kHeat,
  kBins,
  kStep,
  kBy,
  kTop,
  kPrevious,
  kHost,
  kMetric,
  kStart,
  kSoFar,
  kLanguage,
  kWidth,
  kAllFindings,
  kRule,
  kSeverity,
  kMonth,
  kAggregation,
  kPoints,
  kTokenId,
  kKind,
  kPeriod,
};

class ParamSet {
 public:
  constexpr ParamSet() = default;
  constexpr ParamSet(std::initializer_list<Param> params) {
    for (const Param param : params) {
      bits_ |= bit(param);
    }
  }
  static constexpr ParamSet all() {
    ParamSet set;
    set.bits_ = ~std::uint64_t{0};
    return set;
  }
  [[nodiscard]] constexpr ParamSet with(ParamSet more) const {
    more.bits_ |= bits_;
    return more;
  }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr bool contains(Param param) const { return (bits_ & bit(param)) != 0; }

 private:
  static constexpr std::uint64_t bit(Param param) {
    return std::uint64_t{1} << static_cast<unsigned>(param);
  }
  std::uint64_t bits_ = 0;
};

enum class ParamType : std::uint8_t {
  kTexts,    ///< any number of texts
  kText,     ///< one text: the first that is not empty
  kSeconds,  ///< one whole number of seconds since 1970
  kFlag,     ///< set if present in any form, even "running=false"
  kFields,   ///< any number of the endpoint's fields
  kGroups,   ///< any number of group_columns()
  kCount,    ///< one whole number from 1 to kMaxLimit
  kCursor,   ///< one text from the previous answer
};

/// Describes a parameter, for parsing and for the OpenAPI document.
struct ParamInfo {
  Param param;
  std::string_view name;
  ParamType type;
  std::string_view help;
  std::string_view example;
};
std::span<const ParamInfo> all_params();
const ParamInfo& info_of(Param param);

/// Maximum number of rows per page. A greater limit is answered with 400.
inline constexpr std::int64_t kMaxLimit = 5000;
/// Number of rows per page if only a cursor is given.
inline constexpr std::int64_t kDefaultLimit = 1000;

/// The columns that `groupby` accepts. Usage is always grouped by cluster, user and project.
std::span<const std::string_view> group_columns();

/// Query parameters as sent. Lists keep their order, without duplicates. Empty values are ignored,
/// because a client that leaves a field of a form empty means "all".
struct Params {
  std::vector<std::string> clusters, projects, users, uuids, fields, group_by;
  std::vector<std::string> match;
  std::vector<store::TagFilter> tags;
  std::string from, to, time_zone, role, limit, cursor, scope, sort, order;
  std::string start, language, width;
  bool running = false;
  bool experimental = false;
  bool terminated = false;
  bool anonymous = false;
  bool so_far = false;
  bool all_findings = false;
  bool found_ids = false;  ///< `uuids` holds what find_shown_ids() found
  std::vector<std::pair<Param, std::string>> others = {};  ///< of lists and sums over units

  /// The first of them that is not empty; empty if there is none.
  [[nodiscard]] std::string_view text(Param param) const;
  /// All of them, each with several values separated by commas; without duplicates and blanks.
  [[nodiscard]] std::vector<std::string> list(Param param) const;
  [[nodiscard]] bool has(Param param) const;
};

/// The error of a parameter: `message` begins with its name, "'by': expected ...".
std::unexpected<Error> wrong_parameter(std::string_view message);

/// The values, each of which may be several that are separated by commas.
std::vector<std::string> split_lists(const std::vector<std::string>& values);

/// Reads the parameters in `accepted`, by default all, from a raw query string. Never fails;
/// unknown keys are ignored.
Params parse_params(std::string_view query);
Params parse_params(std::string_view query, ParamSet accepted);

/// Parses whole seconds since the epoch between the years -9999 and 9999. kInvalidArgument with a
/// text for clients: "query parameter 'from': malformed timestamp".
Result<std::optional<std::int64_t>> parse_seconds(std::string_view name, std::string_view text);

/// The number of rows per page; nothing if neither `limit` nor `cursor` is present.
/// kInvalidArgument with a text for clients.
Result<std::optional<std::size_t>> parse_limit(const Params& params);

/// How the units of a listing are ordered.
struct Sorting {
  store::UnitOrder by = store::UnitOrder::kById;
  bool descending = false;
};
/// What `sort` and `order` ask for: by default by cluster, id and start; with `sort=ended_at` by
/// end, newest first. kInvalidArgument with a text for clients.
Result<Sorting> parse_sorting(const Params& params);

/// The window from `from` to `to`. If one is missing, it is 24 hours from the other; if both are
/// missing, the window is the last 24 hours. kInvalidArgument for malformed times, and with the
/// text "maximum query window exceeded" for a window longer than `max_period_ms` (0: no limit).
Result<store::TimeRange> parse_window(const Params& params,
                                      std::int64_t now_ms,
                                      std::int64_t max_period_ms);

/// The window of usage/current. `from` defaults to 24 hours ago and `to` to now, independently of
/// each other. `from` is rounded down and `to` up to a multiple of 900 s. The limit is checked
/// before rounding.
Result<store::TimeRange> parse_rounded_window(const Params& params,
                                              std::int64_t now_ms,
                                              std::int64_t max_period_ms);

/// The indexes of the selected fields in the order of `all`; all fields if `names` is empty.
/// Unknown names are ignored. kInvalidArgument "invalid query fields" if no known name is left.
Result<std::vector<std::size_t>> select_fields(std::span<const store::Field> all,
                                               const std::vector<std::string>& names);

}  // namespace ceems::api
