// How wrong the shares of jobs are, and whether that is good enough.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "energy/node.h"
#include "energy/wall_meter.h"

namespace ceems::bench::energy {

/// Errors of one rule over many jobs, in percent.
class Errors {
 public:
  void add(double charged, double due);
  [[nodiscard]] bool empty() const { return truth_ <= 0; }
  [[nodiscard]] double bias() const { return empty() ? 0 : 100 * (charged_ / truth_ - 1); }
  /// Of all energy.
  [[nodiscard]] double mean_error() const { return empty() ? 0 : 100 * absolute_ / truth_; }
  /// Of jobs, whatever their energy.
  [[nodiscard]] double mape() const { return jobs_ > 0 ? 100 * relative_ / jobs_ : 0; }

 private:
  double charged_ = 0;
  double truth_ = 0;
  double relative_ = 0;  // sum of |charged - truth| / truth
  double absolute_ = 0;  // sum of |charged - truth|
  double jobs_ = 0;
};

/// The rules that are compared.
enum class Rule : std::uint8_t { kOurs, kReference, kKepler };
inline constexpr std::size_t kRuleCount = 3;

/// What came of one set of meters.
struct Result {
  std::array<std::array<Errors, kClassCount>, kRuleCount> classes;
  std::array<Errors, kRuleCount> long_jobs;
  std::vector<double> idle_first;  ///< after 30 minutes in which use varied, by node, in percent
  std::vector<double> idle_last;   ///< of the same nodes at the end
  /// What would remain of idle_last if only what the first busy core wakes were unknown where no
  /// meter can show it.
  std::vector<double> idle_unseen;

  void add(Rule rule, JobClass what, double charged, double due);
};

/// The goals that hold for a set of meters.
struct Verdict {
  double mape_goal = 0;
  bool mape = false;
  double worst = 0;  ///< largest mean error of a class above the reference's
  JobClass worst_class = JobClass::kCompute;
  bool classes = false;
  double idle = 0;  ///< largest error of the idle power
  bool idle_power = false;
  [[nodiscard]] bool pass() const { return mape && classes && idle_power; }
};
Verdict judge(const MeterSet& meters, const Result& result);

/// A table of the errors by class and meters, with the goals.
void print(std::string_view name,
           const std::vector<MeterSet>& meters,
           const std::vector<Result>& results);

/// One row for each set of meters.
void print_summary_head();
void print_summary(std::string_view name,
                   const std::vector<MeterSet>& meters,
                   const std::vector<Result>& results);

}  // namespace ceems::bench::energy
