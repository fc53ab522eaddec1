#include "api/accounting/budgets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"
#include "config/section.h"

namespace ceems::api {
namespace {

constexpr std::array<std::string_view, 3> kUnits{"kwh", "kgco2", "cost"};

Result<> read_period(const config::Node& node, const TimeZone& zone, ProjectBudget& budget) {
  using Period = ProjectBudget::Period;
  if (!node.is_map()) {
    const auto text = node.as_string();
    if (!text || (*text != "year" && *text != "month")) {
      return fail(node.error("expected year, month, or from and to"));
    }
    budget.period = *text == "year" ? Period::kYear : Period::kMonth;
    return {};
  }
  std::string from;
  std::string to;
  config::Section section(node);
  section.only({"from", "to"}).text("from", from).text("to", to);
  const auto first = zone.parse_local(from + "T00:00:00");
  const auto last = zone.parse_local(to + "T00:00:00");
  section.refuse(from.size() != 10 || !first, "from", "expected a date such as 2026-01-01")
      .refuse(to.size() != 10 || !last, "to", "expected a date such as 2026-12-31");
  if (section.ok()) {
    budget.period = Period::kFixed;
    budget.from_ms = first.value_or(0);
    budget.to_ms = next_day(zone, last.value_or(0));  // the last day counts
    section.refuse(budget.to_ms <= budget.from_ms, "to", "expected a date after 'from'");
  }
  return section.done();
}

Result<> read_warn(const config::Node& list, ProjectBudget& budget) {
  if (!list.present()) {
    return {};
  }
  if (!list.is_list()) {
    return fail(list.error("expected a list of shares, such as [0.5, 0.8, 1.0]"));
  }
  budget.warn.clear();
  for (const config::Node& item : list.items()) {
    const auto share = item.as_double();
    if (!share || !std::isfinite(*share) || *share <= 0) {
      return fail(item.error("expected a share above 0, such as 0.8"));
    }
    budget.warn.push_back(*share);
  }
  std::ranges::sort(budget.warn);
  return {};
}

Result<> read_budget(const config::Node& node,
                     const SiteOptions& site,
                     const TimeZone& zone,
                     std::vector<ProjectBudget>& budgets) {
  ProjectBudget budget;
  std::string unit = "kwh";
  config::Section section(node);
  section.only({"project", "cluster", "unit", "amount", "period", "warn"})
      .text("project", budget.project)
      .text("cluster", budget.cluster)
      .text("unit", unit)
      .number("amount", budget.amount)
      .refuse(budget.project.empty(), "project",
              "expected the name of a project, or \"*\" for all together")
      .refuse(!std::isfinite(budget.amount) || budget.amount <= 0, "amount",
              "expected a number above 0");
  const std::string name = to_lower(unit);
  const auto known = std::ranges::find(kUnits, std::string_view(name));
  const bool currency = !site.currency.empty() && name == to_lower(site.currency);
  section.refuse(known == kUnits.end() && !currency, "unit",
                 "expected kwh, kgco2, cost, or the currency of the site (ui.currency)");
  budget.unit =
      known == kUnits.end() ? BudgetUnit::kCost : static_cast<BudgetUnit>(known - kUnits.begin());
  if (section.ok() && node["period"].present()) {
    section.also(read_period(node["period"], zone, budget));
  }
  if (section.ok()) {
    section.also(read_warn(node["warn"], budget));
  }
  if (section.ok()) {
    budgets.push_back(std::move(budget));
  }
  return section.done();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::string_view name_of(BudgetUnit unit) {
  return kUnits.at(static_cast<std::size_t>(unit));
}

Result<std::vector<ProjectBudget>> read_budgets(const config::Node& document,
                                                const SiteOptions& site,
                                                const TimeZone& zone) {
  std::vector<ProjectBudget> budgets;
  config::Section section(document);
  section.only({"budgets"}).each("budgets", [&](const config::Node& budget) {
    return read_budget(budget, site, zone, budgets);
  });
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return budgets;
}

std::vector<ProjectBudget> budgets_of(const SiteOptions& site) {
  std::vector<ProjectBudget> budgets;
  budgets.reserve(site.budgets.size());
  for (const Budget& budget : site.budgets) {
    budgets.push_back({.cluster = budget.cluster,
                       .project = budget.project,
                       .amount = budget.kwh_per_month,
                       .period = ProjectBudget::Period::kMonth});
  }
  return budgets;
}

BudgetPeriod period_of(const ProjectBudget& budget, const TimeZone& zone, std::int64_t now_ms) {
  if (budget.period == ProjectBudget::Period::kFixed) {
    return {.from_ms = budget.from_ms,
            .to_ms = budget.to_ms,
            .name = fmt::format("{}/{}", zone.day(budget.from_ms).substr(0, 10),
                                zone.day(budget.to_ms - 1).substr(0, 10))};
  }
  const bool yearly = budget.period == ProjectBudget::Period::kYear;
  const std::string today = zone.day(now_ms);
  const int year = parse_int<int>(std::string_view(today).substr(0, 4)).value_or(0);
  const int month = parse_int<int>(std::string_view(today).substr(5, 2)).value_or(1);
  const auto first_of = [&zone](int y, int m) {
    return zone.parse_local(fmt::format("{:04}-{:02}-01T00:00:00", y, m)).value_or(0);
  };
  if (yearly) {
    return {
        .from_ms = first_of(year, 1), .to_ms = first_of(year + 1, 1), .name = today.substr(0, 4)};
  }
  return {.from_ms = first_of(year, month),
          .to_ms = month == 12 ? first_of(year + 1, 1) : first_of(year, month + 1),
          .name = today.substr(0, 7)};
}

std::int64_t next_day(const TimeZone& zone, std::int64_t day) {
  return zone.day_start(day + kDayMs * 3 / 2);
}

std::int64_t burn_start(const TimeZone& zone, std::int64_t now_ms) {
  const std::int64_t today = zone.day_start(now_ms);
  return zone.day_start(today - kBurnDays * kDayMs + kDayMs / 2);
}

BudgetState state_of(const ProjectBudget& budget,
                     const BudgetPeriod& period,
                     const std::vector<UsedOfDay>& days,
                     const TimeZone& zone,
                     std::int64_t now_ms) {
  BudgetState state;
  std::map<std::int64_t, double> recent;
  const std::int64_t today = zone.day_start(now_ms);
  for (std::int64_t day = burn_start(zone, now_ms); day < today; day = next_day(zone, day)) {
    recent.emplace(day, 0);
  }
  for (const UsedOfDay& day : days) {
    state.complete = state.complete && day.amount.has_value();
    if (day.day_ms >= period.from_ms && day.day_ms < period.to_ms) {
      state.used += day.amount.value_or(0);
    }
    if (const auto found = recent.find(zone.day_start(day.day_ms)); found != recent.end()) {
      found->second += day.amount.value_or(0);
    }
  }
  std::vector<double> amounts;
  amounts.reserve(recent.size());
  for (const auto& [day, amount] : recent) {
    amounts.push_back(amount);
  }
  state.burn = median(amounts);
  for (double& amount : amounts) {
    amount = std::abs(amount - state.burn);
  }
  const double deviation = median(amounts);
  const double left = std::max(0.0, static_cast<double>(period.to_ms - now_ms) / kDayMs);
  state.forecast_low = state.used + std::max(0.0, state.burn - deviation) * left;
  state.forecast_high = state.used + (state.burn + deviation) * left;
  state.state = "ok";
  for (const double share : budget.warn) {
    if (state.used >= share * budget.amount) {
      state.passed = share;
      state.state = share < 1 ? fmt::format("warn_{}", share) : state.state;
    }
  }
  if (state.used >= budget.amount) {
    state.state = "over";
  }
  if (now_ms >= period.to_ms) {
    state.state = "ended";
  }
  return state;
}

std::string sacctmgr_line(const ProjectBudget& budget, const BudgetState& state) {
  if (budget.of_all_projects()) {
    return "# left out: a budget of all projects together\n";
  }
  const auto plain = [](std::string_view name) { return has_only_words(name, "_-."); };
  if (!plain(budget.project) || !plain(budget.cluster) || budget.project.starts_with('-')) {
    return "# left out: a project whose name has characters that the shell or sacctmgr would not"
           " take as they are\n";
  }
  if (budget.unit != BudgetUnit::kKwh) {
    return fmt::format("# {}: left out, its budget is not in kWh\n", budget.project);
  }
  const double rest = std::max(0.0, budget.amount - state.used) * kJoulesPerKwh;
  return fmt::format(
      "sacctmgr -i modify account name={}{} set GrpTRESMins=energy={:.0f}\n", budget.project,
      budget.cluster.empty() ? "" : fmt::format(" cluster={}", budget.cluster), rest);
}

}  // namespace ceems::api
