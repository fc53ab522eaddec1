#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "advice/rule.h"

namespace ceems::report {

// What followed suggestions brought (docs/report.md, "What helped"). Runs of one kind have the
// same user, project and cluster, and names that differ in numbers only. A run follows a suggestion
// if an earlier run of its kind had the finding, this one was judged and has not, and its request
// differs from that of the last run with the finding in the way that the rule suggests. If the
// finding comes back, the runs since then did not follow: kinds of two sizes change between them.

/// For how long a suggestion counts after the last run that had it or followed it.
inline constexpr std::int64_t kHelpedMs = std::int64_t{30} * 86'400'000;

/// A rule whose effect can be seen in later requests.
struct HelpingRule {
  std::string_view id;
  std::int64_t mask = 0;  ///< its bits in `advice`
  advice::Suggests suggests = advice::Suggests::kNothing;
};

/// What a run had reserved on all its nodes. Unknown values are absent.
struct HelpedRequest {
  std::optional<double> cpus = {}, gpus = {}, nodes = {};
  std::optional<double> memory = {};      ///< bytes
  std::optional<double> time_limit = {};  ///< seconds
};

/// A run that has ended.
struct HelpedRun {
  std::string cluster = {}, user = {}, project = {};
  std::string name = {};  ///< of the kind: numbers are '#'
  std::int64_t ended_ms = 0;
  HelpedRequest request = {};
  std::optional<double> hours = {};         ///< of wall time
  std::optional<double> not_used_kwh = {};  ///< idle power of what was reserved and not used
  std::int64_t advice = 0;
  bool judged = false;  ///< it has a report from which advice could come
};

/// What runs that followed had reserved less than the last run with the finding: that run's request
/// for as long as they took, but no longer than the runs with the finding took on average, less
/// what they had reserved themselves. Negative where less of it made them take too much longer.
struct HelpedSum {
  std::int64_t kinds = 0, runs = 0;
  double core_hours = 0, gpu_hours = 0, gib_hours = 0;
  /// Energy that was not used of what was reserved: in that time at the rate of the runs with the
  /// finding, less that of the following runs themselves. A run that follows several rules counts
  /// for each with an equal part. Of `kwh_runs` it is known.
  double kwh = 0;
  std::int64_t kwh_runs = 0;

  HelpedSum& operator+=(const HelpedSum& other);
};

/// A cluster, a project of it, and the rule.
using HelpedKey = std::tuple<std::string, std::string, std::string_view>;

/// Adds up runs. The rules outlive it. Not thread-safe.
class HelpedCounter {
 public:
  /// Only following runs that end from `from_ms` on count.
  HelpedCounter(std::span<const HelpingRule> rules, std::int64_t from_ms)
      : rules_(rules), from_ms_(from_ms) {}

  /// Runs come in the order of their ends and begin with those kHelpedMs before `from_ms`.
  void add(const HelpedRun& run);

  [[nodiscard]] std::map<HelpedKey, HelpedSum> sums() const;

 private:
  /// A suggestion that was made for runs of a kind.
  struct Suggestion {
    std::int64_t last_ms = 0;          ///< the end of the last run with the finding, or following
    HelpedRequest request = {};        ///< of the last run with the finding
    double hours = 0, timed_runs = 0;  ///< of such runs
    double not_used_kwh = 0, its_hours = 0;  ///< of such runs, where both are known
    bool followed = false;                   ///< by a run since then
    HelpedSum since = {};                    ///< of the runs that followed
  };
  struct Kind {
    std::string cluster = {}, user = {}, project = {}, name = {};
    auto operator<=>(const Kind&) const = default;
  };

  static void note(Suggestion& suggestion, const HelpedRun& run);
  void count(const HelpedRun& run, advice::Suggests suggests, Suggestion& made, double part) const;

  std::span<const HelpingRule> rules_;
  std::int64_t from_ms_;
  /// Of kinds with findings, by the place of the rule.
  std::map<Kind, std::map<std::size_t, Suggestion>> kinds_;
};

}  // namespace ceems::report
