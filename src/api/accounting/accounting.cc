#include "api/accounting/accounting.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "store/facts.h"

namespace ceems::api {
namespace {

/// What a day counts for a budget.
std::optional<double> amount_of(const store::UsageOfDay& day,
                                BudgetUnit unit,
                                Costs& costs,
                                const TimeZone& zone,
                                std::int64_t now_ms) {
  constexpr double kGramsOfKg = 1000;
  // A budget counts what is known.
  switch (unit) {
    case BudgetUnit::kKwh:
      return day.kwh().value_or(0);
    case BudgetUnit::kKgCo2:
      return day.grams().value_or(0) / kGramsOfKg;
    case BudgetUnit::kCost:
      break;
  }
  return costs.of_energy() && !day.kwh() ? 0 : cost_of(costs, day, zone, now_ms);
}

}  // namespace

std::optional<double> cost_of(Costs& costs,
                              const store::UsageOfDay& day,
                              const TimeZone& zone,
                              std::int64_t now_ms) {
  const bool energy = costs.of_energy();
  return costs.of(day.cluster, day.day_ms, std::min(next_day(zone, day.day_ms), now_ms), day.kwh(),
                  energy ? day.core_hours_with_energy() : day.core_hours(),
                  energy ? day.gpu_hours_with_energy() : day.gpu_hours());
}

Accounting::Accounting(AccountingOptions options,
                       const SiteOptions& site,
                       Fleet* fleet,
                       store::Reader& reader,
                       metrics::Registry& registry)
    : options_(std::move(options)),
      currency_(site.currency),
      fleet_(fleet),
      reader_(&reader),
      registry_(&registry) {
  if (!options_.prices.any()) {
    options_.prices = prices_of(site);
  }
  const auto more = budgets_of(site);
  options_.budgets.insert(options_.budgets.end(), more.begin(), more.end());
}

Costs Accounting::costs() const {
  return {options_.prices,
          [fleet = fleet_](const PriceRule& rule, std::int64_t from_ms, std::int64_t to_ms,
                           std::chrono::milliseconds step) -> Result<PriceSeries> {
            if (fleet == nullptr) {
              return fail(ErrorCode::kNotFound, "no cluster has a TSDB");
            }
            return fleet->values(rule.series_cluster, rule.query, from_ms, to_ms, step);
          }};
}

Result<std::vector<UsedBudget>> Accounting::used(const std::vector<const ProjectBudget*>& budgets,
                                                 const store::Scope& members,
                                                 const TimeZone& zone,
                                                 std::int64_t now_ms) const {
  std::vector<UsedBudget> all;
  if (budgets.empty()) {
    return all;
  }
  std::set<std::string> projects;
  bool all_projects = false;
  std::int64_t from_ms = burn_start(zone, now_ms);
  for (const ProjectBudget* budget : budgets) {
    projects.insert(budget->project);
    all_projects = all_projects || budget->of_all_projects();
    all.push_back({.budget = budget, .period = period_of(*budget, zone, now_ms)});
    from_ms = std::min(from_ms, all.back().period.from_ms);
  }
  if (all_projects) {
    projects.clear();  // no restriction
  }
  CEEMS_TRY(days, reader_->usage_by_day({.members = members,
                                         .projects = {projects.begin(), projects.end()},
                                         .days = {.from_ms = from_ms, .to_ms = now_ms},
                                         .by = store::UsageBy::kProject}));
  Costs prices = costs();
  for (UsedBudget& one : all) {
    const ProjectBudget& budget = *one.budget;
    std::vector<UsedOfDay> used;
    for (const store::UsageOfDay& day : days) {
      if ((budget.of_all_projects() || day.group == budget.project) &&
          (budget.cluster.empty() || day.cluster == budget.cluster)) {
        used.push_back(
            {.day_ms = day.day_ms, .amount = amount_of(day, budget.unit, prices, zone, now_ms)});
      }
    }
    one.state = state_of(budget, one.period, used, zone, now_ms);
  }
  return all;
}

void Accounting::set_gauges(const TimeZone& zone, const Clock& clock) {
  constexpr auto kEvery = std::chrono::minutes(5);
  if (options_.budgets.empty()) {
    return;
  }
  const std::int64_t now_ms = clock.now_ms();
  {
    const MutexLock lock(mutex_);
    const auto now = clock.steady_now();
    if (now < next_gauges_ || measuring_) {
      return;
    }
    next_gauges_ = now + kEvery;
    if (options_.prices.in_tsdb()) {
      measuring_ = true;
      measurer_ = std::jthread([this, zone, now_ms] {  // the one before has ended
        measure_budgets(zone, now_ms);
        const MutexLock ended(mutex_);
        measuring_ = false;
      });
      return;
    }
  }
  measure_budgets(zone, now_ms);
}

void Accounting::measure_budgets(const TimeZone& zone, std::int64_t now_ms) {
  std::vector<const ProjectBudget*> budgets;
  budgets.reserve(options_.budgets.size());
  for (const ProjectBudget& budget : options_.budgets) {
    budgets.push_back(&budget);
  }
  const auto all = used(budgets, {.everybody = true}, zone, now_ms);
  if (!all) {
    log::warn("cannot read the use of budgets", {{"err", all.error().message}});
    return;
  }
  auto& gauges = registry_->gauges(
      "ceems_project_budget_used_ratio",
      "What a project used of its budget since the period began, as a share of the amount.",
      {"cluster", "project", "unit"});
  for (const UsedBudget& one : *all) {
    gauges.with({one.budget->cluster, one.budget->project, name_of(one.budget->unit)})
        .set(one.state.used / one.budget->amount);
  }
}

}  // namespace ceems::api
