#include "api/mail/report_source.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "access/digests.h"
#include "access/policy.h"
#include "api/report/final_report.h"
#include "api/request/months.h"
#include "store/advice_rules.h"
#include "store/facts.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

using store::Fact;

constexpr std::size_t kIdsAtOnce = 200;
constexpr std::size_t kMaxTasks = 100'000;  // of an array, with their runs
constexpr std::size_t kMaxMailFindings = 10'000;

store::UnitQuery query_for(const std::string& cluster_id,
                           const std::string& user,
                           std::vector<std::string> jobs) {
  store::UnitQuery query;
  query.owners = access::rows_of_owner(user);
  query.clusters = {cluster_id};
  query.uuids = std::move(jobs);
  return query;
}

store::FactFilter filter_for(const std::string& cluster_id, const std::string& user) {
  store::FactFilter filter;
  filter.owners = access::rows_of_owner(user);
  filter.clusters = {cluster_id};
  return filter;
}

/// Energy in kWh; nothing if it is not known.
report::Number unit_kwh(const StoredUnit& unit) {
  const auto cpus = unit.metric(model::Metric::kTotalCpuEnergyUsageKwh, "total");
  const auto gpus = unit.metric(model::Metric::kTotalGpuEnergyUsageKwh, "total");
  return cpus || gpus ? report::Number(cpus.value_or(0) + gpus.value_or(0)) : std::nullopt;
}

mail::PassedBudget::Unit unit_of(BudgetUnit unit) {
  switch (unit) {
    case BudgetUnit::kKwh:
      return mail::PassedBudget::Unit::kKwh;
    case BudgetUnit::kKgCo2:
      return mail::PassedBudget::Unit::kKgCo2;
    case BudgetUnit::kCost:
      break;
  }
  return mail::PassedBudget::Unit::kCost;
}

}  // namespace

Result<std::optional<mail::KnownReport>> MailReports::report(const std::string& cluster_id,
                                                             const std::string& user,
                                                             const std::string& job,
                                                             std::int64_t ended_after_ms) {
  CEEMS_TRY(units, read_stored_units(reader_, query_for(cluster_id, user, {job})));
  const auto last = std::ranges::max_element(
      units, {}, [](const StoredUnit& unit) { return unit.unit.started_at_ts; });
  // An earlier run of the same job is not the one that has ended now.
  if (last == units.end() || last->unit.ended_at_ts < ended_after_ms ||
      last->unit.ended_at_ts <= 0) {
    return std::nullopt;
  }
  const access::Identity identity{.user = user, .role = access::Role::kUser};
  const store::Scope members = access::own_projects(identity);
  CEEMS_TRY(stored, read_final_report(reader_,
                                      {.cluster_id = last->unit.cluster_id,
                                       .uuid = last->unit.uuid,
                                       .started_at_ts = last->unit.started_at_ts},
                                      last->unit.project, members));
  if (auto& known = stored) {
    maker_.add_cost(*last, clock_.now_ms(), known->report);
    return mail::KnownReport{.report = std::move(known->report), .final = true};
  }
  CEEMS_TRY(report, maker_.make(*last, members, clock_.now_ms()));
  const bool final =
      !setup_.stored && (report.state == report::State::kFinal || !setup_.measured(cluster_id));
  return mail::KnownReport{.report = std::move(report), .final = final};
}

Result<> MailReports::add_energy(const std::string& cluster_id,
                                 const std::string& user,
                                 const std::vector<std::string>& jobs,
                                 mail::ArraySums& sums) {
  for (std::size_t begin = 0; begin < jobs.size(); begin += kIdsAtOnce) {
    const auto part = std::span(jobs).subspan(begin, std::min(kIdsAtOnce, jobs.size() - begin));
    CEEMS_TRY(units,
              read_stored_units(reader_, query_for(cluster_id, user, {part.begin(), part.end()})));
    std::map<std::string, const StoredUnit*> last;
    for (const StoredUnit& unit : units) {
      const StoredUnit*& kept = last[unit.unit.uuid];
      if (kept == nullptr || kept->unit.started_at_ts < unit.unit.started_at_ts) {
        kept = &unit;
      }
    }
    for (const auto& [uuid, unit] : last) {
      if (const auto kwh = unit_kwh(*unit)) {
        sums.known += 1;
        sums.kwh = sums.kwh.value_or(0) + *kwh;
      }
    }
  }
  return {};
}

Result<std::vector<mail::ArrayTask>> MailReports::tasks_of(const std::string& cluster_id,
                                                           const std::string& user,
                                                           const std::string& prefix) {
  store::FactListQuery query{
      .filter = filter_for(cluster_id, user),
      .columns = {Fact::kUuid, Fact::kState, Fact::kStarted, Fact::kEnded, Fact::kWall},
      .limit = kMaxTasks};
  query.filter.array_prefix = prefix;
  CEEMS_TRY(rows, reader_.unit_facts(query));
  struct Run {
    std::int64_t started_ms = 0;
    mail::ArrayTask task = {};
  };
  std::map<std::string, Run> last;
  while (true) {
    CEEMS_TRY(row, rows->next());
    if (!row) {
      break;
    }
    const std::string job(rows->text(0));
    const std::int64_t started = rows->integer(2);
    const auto [run, added] = last.try_emplace(job);
    if (added || run->second.started_ms < started) {
      run->second = {.started_ms = started,
                     .task = {.job = job,
                              .state = std::string(rows->text(1)),
                              .ran = started > 0 && rows->integer(4) > 0,
                              .ended = rows->integer(3) > 0}};
    }
  }
  std::vector<mail::ArrayTask> tasks;
  tasks.reserve(last.size());
  for (auto& [job, run] : last) {
    tasks.push_back(std::move(run.task));
  }
  return tasks;
}

Result<std::string> MailReports::worst_of(const std::string& cluster_id,
                                          const std::string& user,
                                          const std::vector<std::string>& jobs) {
  std::string worst;
  std::pair<int, double> most{static_cast<int>(advice::Severity::kGood), 0};
  for (std::size_t begin = 0; begin < jobs.size(); begin += kIdsAtOnce) {
    const auto part = std::span(jobs).subspan(begin, std::min(kIdsAtOnce, jobs.size() - begin));
    store::FindingQuery query{.filter = filter_for(cluster_id, user), .limit = kMaxMailFindings};
    query.filter.uuids = {part.begin(), part.end()};
    query.filter.advice = store::any_advice();
    CEEMS_TRY(findings, reader_.findings(query));
    for (const store::UnitFinding& one : findings) {
      const std::pair value{one.finding.severity, one.finding.saves_kwh.value_or(0)};
      if (value > most) {
        most = value;
        worst = one.key.uuid;
      }
    }
  }
  return worst;
}

mail::EndedMonth MailReports::last_month() const {
  const Month month = month_before(month_at(clock_.now_ms(), setup_.zone), setup_.zone);
  return {.name = month.name, .ended_ms = month.to_ms};
}

Result<std::vector<std::string>> MailReports::users_of(const std::string& month) {
  CEEMS_TRY(named, month_named(month, setup_.zone));
  CEEMS_TRY(days,
            reader_.usage_by_day({.members = access::all_rows_for_reports(),
                                  .days = {.from_ms = named.from_ms, .to_ms = named.to_ms - 1},
                                  .by = store::UsageBy::kUser}));
  std::set<std::string> users;
  for (const store::UsageOfDay& day : days) {
    if (!day.group.empty() && (day.cpu_seconds > 0 || day.gpu_seconds > 0)) {
      users.insert(day.group);
    }
  }
  return std::vector<std::string>(users.begin(), users.end());
}

Result<std::optional<report::Digest>> MailReports::digest(const std::string& user,
                                                          const std::string& month,
                                                          const std::vector<std::string>& without) {
  auto named = month_named(month, setup_.zone);
  if (!named) {
    return std::nullopt;
  }
  CEEMS_TRY(digest,
            digests_.make({.month = std::move(*named),
                           .user = user,
                           .rows = access::own_digest({.user = user, .role = access::Role::kUser}),
                           .not_said = without,
                           .now_ms = clock_.now_ms()}));
  const report::MonthOfUse& used = digest.months.front();
  if (used.core_hours <= 0 && used.gpu_hours <= 0) {
    return std::nullopt;
  }
  return std::optional(std::move(digest));
}

Result<std::vector<mail::PassedBudget>> MailReports::passed_budgets() {
  std::vector<mail::PassedBudget> passed;
  if (setup_.accounting == nullptr) {
    return passed;
  }
  const std::int64_t now = clock_.now_ms();
  std::vector<const ProjectBudget*> budgets;
  for (const ProjectBudget& budget : setup_.accounting->options().budgets) {
    const BudgetPeriod period = period_of(budget, setup_.zone, now);
    // The target of the site has no leads to write to.
    if (!budget.of_all_projects() && period.from_ms <= now && now < period.to_ms) {
      budgets.push_back(&budget);
    }
  }
  CEEMS_TRY(used,
            setup_.accounting->used(budgets, access::all_rows_for_reports(), setup_.zone, now));
  for (const UsedBudget& one : used) {
    const ProjectBudget& budget = *one.budget;
    const auto& share = one.state.passed;
    if (!one.state.complete || !share) {
      continue;
    }
    CEEMS_TRY(leads, access::leads_of(reader_, setup_.roles, budget.cluster, budget.project));
    passed.push_back(
        {.id = fmt::format("{} {} {} {} {} {}", budget.project, budget.cluster,
                           name_of(budget.unit), budget.amount, one.period.name, *share),
         .project = budget.project,
         .cluster = budget.cluster,
         .period = one.period.name,
         .share = *share,
         .unit = unit_of(budget.unit),
         .currency = setup_.accounting->currency(),
         .amount = budget.amount,
         .used = one.state.used,
         .forecast_low = one.state.forecast_low,
         .forecast_high = one.state.forecast_high,
         .leads = std::move(leads)});
  }
  return passed;
}

}  // namespace ceems::api
