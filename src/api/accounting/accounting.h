#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "api/accounting/options.h"
#include "api/accounting/prices.h"
#include "api/tsdb/fleet.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/time/time_zone.h"
#include "metrics/registry.h"
#include "store/reader.h"

namespace ceems::api {

/// A budget and its use.
struct UsedBudget {
  const ProjectBudget* budget = nullptr;
  BudgetPeriod period = {};
  BudgetState state = {};
};

/// The known cost of a day. Where energy has a price, units without energy are left out, because
/// their cost is unknown in lists, too.
std::optional<double> cost_of(Costs& costs,
                              const store::UsageOfDay& day,
                              const TimeZone& zone,
                              std::int64_t now_ms);

/// Prices, budgets and what belongs to the bill. Safe for concurrent use.
class Accounting {
 public:
  /// The prices and budgets of `site` count as well: the prices where `options` has none. `fleet`
  /// may be null; it, `reader` and `registry` must outlive this object.
  Accounting(AccountingOptions options,
             const SiteOptions& site,
             Fleet* fleet,
             store::Reader& reader,
             metrics::Registry& registry);

  [[nodiscard]] const AccountingOptions& options() const { return options_; }
  [[nodiscard]] bool priced() const { return options_.prices.any(); }
  /// Of the prices; empty if the site names none.
  [[nodiscard]] const std::string& currency() const { return currency_; }
  /// For one answer.
  [[nodiscard]] Costs costs() const;

  /// The use so far of these budgets, which are some of options().budgets. `members` as in
  /// store::UsageSeriesQuery. Passes on errors of the reader.
  [[nodiscard]] Result<std::vector<UsedBudget>> used(
      const std::vector<const ProjectBudget*>& budgets,
      const store::Scope& members,
      const TimeZone& zone,
      std::int64_t now_ms) const;

  /// Sets ceems_project_budget_used_ratio, at most every 5 min. If prices have to be read from a
  /// TSDB, which may take long, a thread sets it later. `clock` must outlive this object.
  void set_gauges(const TimeZone& zone, const Clock& clock) CEEMS_EXCLUDES(mutex_);

 private:
  void measure_budgets(const TimeZone& zone, std::int64_t now_ms);

  AccountingOptions options_;
  std::string currency_;
  Fleet* fleet_;
  store::Reader* reader_;
  metrics::Registry* registry_;
  Mutex mutex_;
  Clock::SteadyTime next_gauges_ CEEMS_GUARDED_BY(mutex_);
  bool measuring_ CEEMS_GUARDED_BY(mutex_) = false;
  std::jthread measurer_ CEEMS_GUARDED_BY(mutex_);  // last, so that it ends before the others
};

}  // namespace ceems::api
