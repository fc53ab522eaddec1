#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/reader.h"

namespace ceems::store {

// The table ceems_unit_facts: one short row for each unit, for lists, filters and sums over units
// (docs/api/database.md, "Facts of units"). All numbers are integers, so that they are compared and
// added up exactly; a number that is not known is -1, a moment 0, a text empty.

/// The table. Its columns are in store/facts/rows.cc.
inline constexpr std::string_view kFactsTable = "ceems_unit_facts";

/// What the number in a column means.
enum class FactKind : std::uint8_t {
  kText,
  kMoment,    ///< epoch milliseconds
  kCount,     ///< bytes or seconds that were allocated or counted
  kMilli,     ///< thousandths
  kPercent,   ///< hundredths of a percent
  kMeasured,  ///< bytes that were measured
  kEnergy,    ///< 1e-9 kWh
  kGrams,     ///< 1e-6 g
  kAdvice,    ///< bits (store/advice_rules.h)
  kVerdict,
  kStrip,  ///< a text (store/strip.h)
};

/// What the report of a unit comes to; stored as its number.
enum class Verdict : std::int8_t {
  kUnknown = -1,  ///< no report yet, or too little was measured
  kFits,
  kSmaller,  ///< a smaller reservation would do
  kLook,     ///< something went wrong, or much went unused
};

/// What a list can show of a unit, in the order of answers.
enum class Fact : std::uint8_t {
  kClusterId,
  kUuid,
  kStarted,
  kName,
  kUser,
  kProject,
  kState,
  kCreated,
  kEnded,
  kWall,
  kCpus,
  kMemory,
  kGpus,
  kNodes,
  kTimeLimit,
  kArray,
  kPartition,
  kCpu,
  kMem,
  kGpu,
  kGpuMem,
  kPeak,
  kGpuIdle,
  kKwh,
  kCpuKwh,
  kGpuKwh,
  kGrams,
  kUnused,  ///< the idle power of what was reserved
  kNotUsed,
  kAdvice,
  kCpuSeconds,  ///< allocated
  kGpuSeconds,
  kVerdict,
  kStrip,  ///< seen by those who see the name
};
inline constexpr std::size_t kFactCount = 34;

struct FactColumn {
  Fact fact;
  std::string_view name;  ///< in answers and parameters
  FactKind kind = FactKind::kText;
  std::string_view sql = {};  ///< over the columns of the table
  bool sorts = true;
  bool shown = true;  ///< false: only for computing others
  bool usual = true;  ///< false: only in lists that ask for it
  std::string_view help = {};
};
/// All columns, each at the index of its Fact.
std::span<const FactColumn> fact_columns();
const FactColumn& column_of(Fact fact);
/// The column that is shown by this name; nothing if there is none.
std::optional<Fact> find_fact(std::string_view name);

/// Whose names a query may show, search and sort by; none by default. Only access/ builds it.
struct NameRule {
  bool everybody = false;
  std::string user = {};                 ///< units of this user
  std::vector<ClusterProject> led = {};  ///< units of these projects
};

/// Both ends included.
struct FactRange {
  Fact fact;
  std::int64_t low = 0, high = 0;
};

/// Which units. Empty lists do not restrict.
struct FactFilter {
  Scope owners = {};
  /// Also a condition: the scope has a member of the unit's project, or leads it.
  std::optional<Scope> members = {};
  NameRule names = {};
  std::vector<std::string> clusters = {}, projects = {}, users = {}, uuids = {}, partitions = {};
  std::vector<std::string> states = {};  ///< as stored: one word in upper case
  bool state_running = false;            ///< as one more state: started, and not ended
  std::int64_t advice = 0;               ///< units with one of these bits
  std::vector<FactRange> ranges = {};    ///< all must hold
  /// In lower case; each begins the id or the array's, or is in the name, user or project.
  std::vector<std::string> words = {};
  /// The ids begin with this text, which an index finds. Empty: any.
  std::string id_prefix = {};
  /// The ids that SLURM shows of tasks of arrays and of parts of heterogeneous jobs (`7100_4`,
  /// `8200+1`) begin with this text, which an index finds. Empty: any unit.
  std::string array_prefix = {};
  std::optional<TimeRange> ended = {};  ///< nothing: whenever they ended, if ever
  bool running = false;                 ///< with `ended`: also those that have not ended
};

/// A place in the order of a list: the value that rows are sorted by, and the number of the row.
struct FactPlace {
  std::string value = {};
  std::int64_t id = 0;
};

struct FactListQuery {
  FactFilter filter = {};
  std::vector<Fact> columns = {};  ///< of the cursor, which has the place of the row after them
  Fact sort = Fact::kEnded;
  bool descending = true;
  std::size_t limit = 0;                ///< 0: all
  std::optional<FactPlace> after = {};  ///< the rows behind it
  bool backwards = false;               ///< in the other direction, nearest first
};

/// One value of a facet. Energy is in kWh.
struct FacetValue {
  std::string value = {};
  std::int64_t units = 0;
  double kwh = 0;
  /// Over the units for which each is known: all their energy, and the part of it that is the idle
  /// power of what they had reserved, or of what they did not use of that.
  double idle_of_kwh = 0, idle_kwh = 0;
  double not_used_of_kwh = 0, not_used_kwh = 0;
};

struct SummaryQuery {
  FactFilter filter = {};
  std::vector<Fact> facets = {};                 ///< texts, or kAdvice
  std::optional<std::array<Fact, 2>> heat = {};  ///< of kind kPercent
  std::size_t bins = 20;
};

struct UnitSummary {
  std::int64_t units = 0, running = 0, idle_units = 0, not_used_units = 0;
  /// Units of which the energy, its parts and the emissions are known: without any, the sums mean
  /// nothing.
  std::int64_t measured = 0, cpu_measured = 0, gpu_measured = 0, grams_known = 0;
  double kwh = 0, cpu_kwh = 0, gpu_kwh = 0, grams = 0;
  double idle_of_kwh = 0, idle_kwh = 0, not_used_of_kwh = 0,
         not_used_kwh = 0;  ///< as in FacetValue
  double cpu_seconds = 0, cpu_seconds_measured = 0, cpu_seconds_used = 0;
  double gpu_seconds = 0, gpu_seconds_measured = 0, gpu_seconds_used = 0;
  /// Of units whose energy is known.
  double cpu_seconds_with_energy = 0, gpu_seconds_with_energy = 0;
  std::vector<std::vector<FacetValue>> facets = {};  ///< as asked for; most units first
  struct Cell {
    std::size_t x = 0, y = 0;
    std::int64_t units = 0;
    double kwh = 0;
  };
  std::vector<Cell> heat = {};  ///< those that are not empty
};

/// Runs of one kind: units of a user and a project on a cluster whose names differ in numbers only.
struct UnitKind {
  std::string cluster_id = {}, user = {}, project = {};
  std::string name = {};  ///< with '#' for numbers (unit_name.h); empty where it may not be seen
  std::int64_t units = 0, running = 0, failed = 0;
  /// For which the energy, its parts and the emissions are known.
  std::int64_t measured = 0, idle_units = 0, not_used_units = 0, grams_known = 0;
  double kwh = 0, idle_kwh = 0, grams = 0;
  double idle_of_kwh = 0, not_used_of_kwh = 0, not_used_kwh = 0;  ///< as in FacetValue
  std::optional<double> cpu = {}, mem = {}, gpu = {};  ///< percent, means over reserved time
  std::int64_t last_ended_ms = 0;                      ///< 0: none has ended
  std::int64_t last_advised_ms = 0;  ///< the end of the last run with advice; 0: none
  /// Mean energy in kWh of the runs that ended in the first and in the second half of the period.
  std::optional<double> kwh_before = {}, kwh_since = {};
};

struct KindQuery {
  FactFilter filter = {};
  std::vector<std::string> failed = {};  ///< the states that count as failed, not empty
  enum class Sort : std::uint8_t { kUnused, kNotUsed, kEnergy, kUnits, kEnded };
  Sort sort = Sort::kNotUsed;  ///< the most first
  std::size_t limit = 20;
};

/// What usage over time is grouped by.
enum class UsageBy : std::uint8_t { kNothing, kProject, kUser, kCluster };

struct UsageSeriesQuery {
  Scope members = {};  ///< as UsageQuery::members
  std::vector<std::string> projects = {}, clusters = {}, users = {};
  TimeRange days = {};   ///< by the beginning of the day
  TimeRange ended = {};  ///< of the units whose idle energy counts
  UsageBy by = UsageBy::kNothing;
  bool idle = false;  ///< also read the idle energy, and what was not used of it
};

/// What a group used on a day, or the idle energy of its units that ended at a moment.
struct UsageOfDay {
  std::int64_t day_ms = 0;  ///< its beginning, or the moment
  std::string group = {};
  std::string cluster = {};  ///< of a day, not of idle energy
  std::int64_t units = 0;
  double cpu_kwh = 0, gpu_kwh = 0, cpu_grams = 0, gpu_grams = 0;
  double cpu_seconds = 0, gpu_seconds = 0;
  /// The part of them in which energy was measured.
  double cpu_seconds_with_energy = 0, gpu_seconds_with_energy = 0;
  /// Of units that ended, with all energy of those for which each is known, as in FacetValue.
  std::optional<double> idle_kwh = {}, idle_of_kwh = {}, not_used_kwh = {}, not_used_of_kwh = {};

  // The definitions of docs/numbers.md: whatever adds up days adds these.
  [[nodiscard]] double core_hours() const { return cpu_seconds / 3600; }
  [[nodiscard]] double gpu_hours() const { return gpu_seconds / 3600; }
  /// What energy is set against, per hour.
  [[nodiscard]] double core_hours_with_energy() const { return cpu_seconds_with_energy / 3600; }
  [[nodiscard]] double gpu_hours_with_energy() const { return gpu_seconds_with_energy / 3600; }
  /// What ran used energy, so that none was not measured.
  [[nodiscard]] std::optional<double> kwh() const;
  /// Energy that has no emissions has no factor.
  [[nodiscard]] std::optional<double> grams() const;
};

}  // namespace ceems::store
