#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/site.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "config/yaml.h"

namespace ceems::api {

/// What a budget counts.
enum class BudgetUnit : std::uint8_t { kKwh, kKgCo2, kCost };

/// What a project, or all projects together, may use in a year, a month or a fixed period.
struct ProjectBudget {
  /// The project of a budget of all projects: a target of the site.
  static constexpr std::string_view kAllProjects = "*";

  std::string cluster = {};  ///< empty: all clusters together
  std::string project = {};
  BudgetUnit unit = BudgetUnit::kKwh;
  double amount = 0;
  enum class Period : std::uint8_t { kYear, kMonth, kFixed } period = Period::kYear;
  std::int64_t from_ms = 0, to_ms = 0;         ///< of a fixed period; the end does not count
  std::vector<double> warn = {0.5, 0.8, 1.0};  ///< ascending shares of the amount

  [[nodiscard]] bool of_all_projects() const { return project == kAllProjects; }
};

/// Reads budgets.yml (docs/budgets-and-bills.md). kInvalidArgument with file, line and key.
Result<std::vector<ProjectBudget>> read_budgets(const config::Node& document,
                                                const SiteOptions& site,
                                                const TimeZone& zone);
/// The budgets in the block `ui` of the configuration file: energy by month.
std::vector<ProjectBudget> budgets_of(const SiteOptions& site);

/// A half-open period, without its end.
struct BudgetPeriod {
  std::int64_t from_ms = 0, to_ms = 0;
  std::string name = {};  ///< "2026", "2026-11", "2026-10-01/2026-12-31"
};
BudgetPeriod period_of(const ProjectBudget& budget, const TimeZone& zone, std::int64_t now_ms);

/// How much was used on a day.
struct UsedOfDay {
  std::int64_t day_ms = 0;
  std::optional<double> amount = {};  ///< nothing: not known
};

/// What a project used of its budget, and will have used at the end.
struct BudgetState {
  double used = 0;
  double burn = 0;  ///< a day: the median of the last 28 days
  double forecast_low = 0, forecast_high = 0;
  std::optional<double> passed = {};  ///< the highest of the budget's `warn` that was reached
  std::string state = {};             ///< "ok", "warn_0.8", "over"; "ended" after a fixed period
  bool complete = true;               ///< false: the amount of a day is not known
};
/// `days` are those from the beginning of the period, or from 28 days ago if that is earlier, to
/// now; those without usage may be left out.
BudgetState state_of(const ProjectBudget& budget,
                     const BudgetPeriod& period,
                     const std::vector<UsedOfDay>& days,
                     const TimeZone& zone,
                     std::int64_t now_ms);

/// The beginning of the day after the one that begins then.
std::int64_t next_day(const TimeZone& zone, std::int64_t day);

/// The days that the forecast looks at.
inline constexpr std::int64_t kBurnDays = 28;
/// The beginning of the first of them.
std::int64_t burn_start(const TimeZone& zone, std::int64_t now_ms);

/// The name of the unit in answers: "kwh", "kgco2", "cost".
std::string_view name_of(BudgetUnit unit);

/// A line for the shell that sets the rest of a budget of energy as a limit of SLURM's account
/// (GrpTRESMins, in joules × minutes ÷ minutes as SLURM counts energy), or a comment that says why
/// not.
std::string sacctmgr_line(const ProjectBudget& budget, const BudgetState& state);

}  // namespace ceems::api
