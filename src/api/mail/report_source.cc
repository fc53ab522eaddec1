#include "api/mail/report_source.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <utility>

#include "access/policy.h"
#include "api/report/final_report.h"

namespace ceems::api {
namespace {

constexpr std::size_t kIdsAtOnce = 200;

store::UnitQuery query_for(const std::string& cluster_id,
                           const std::string& user,
                           std::vector<std::string> jobs) {
  store::UnitQuery query;
  query.owners = access::rows_of_owner(user);
  query.clusters = {cluster_id};
  query.uuids = std::move(jobs);
  return query;
}

/// Energy in kWh; nothing if it is not known.
report::Number kwh_of(const StoredUnit& unit) {
  const auto cpus = unit.metric(model::Metric::kTotalCpuEnergyUsageKwh, "total");
  const auto gpus = unit.metric(model::Metric::kTotalGpuEnergyUsageKwh, "total");
  return cpus || gpus ? report::Number(cpus.value_or(0) + gpus.value_or(0)) : std::nullopt;
}

}  // namespace

Result<std::optional<mail::KnownReport>> MailReports::report(const std::string& cluster_id,
                                                             const std::string& user,
                                                             const std::string& job,
                                                             std::int64_t ended_after_ms) {
  auto units = read_stored_units(reader_, query_for(cluster_id, user, {job}));
  if (!units) {
    return fail(std::move(units).error());
  }
  const auto last = std::ranges::max_element(
      *units, {}, [](const StoredUnit& unit) { return unit.unit.started_at_ts; });
  // An earlier run of the same job is not the one that has ended now.
  if (last == units->end() || last->unit.ended_at_ts < ended_after_ms ||
      last->unit.ended_at_ts <= 0) {
    return std::nullopt;
  }
  const access::Identity identity{.user = user, .role = access::Role::kUser};
  const store::Scope members = access::own_projects(identity);
  auto stored = read_final_report(reader_,
                                  {.cluster_id = last->unit.cluster_id,
                                   .uuid = last->unit.uuid,
                                   .started_at_ts = last->unit.started_at_ts},
                                  members);
  if (!stored) {
    return fail(std::move(stored).error());
  }
  if (auto& known = *stored) {
    return mail::KnownReport{.report = std::move(known->report), .final = true};
  }
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now().time_since_epoch());
  auto report = maker_.make(*last, members, now.count());
  if (!report) {
    return fail(std::move(report).error());
  }
  const bool final =
      !setup_.stored && (report->state == report::State::kFinal || !setup_.measured(cluster_id));
  return mail::KnownReport{.report = std::move(*report), .final = final};
}

Result<> MailReports::add_energy(const std::string& cluster_id,
                                 const std::string& user,
                                 const std::vector<std::string>& jobs,
                                 mail::ArraySums& sums) {
  for (std::size_t begin = 0; begin < jobs.size(); begin += kIdsAtOnce) {
    const auto part = std::span(jobs).subspan(begin, std::min(kIdsAtOnce, jobs.size() - begin));
    const auto units =
        read_stored_units(reader_, query_for(cluster_id, user, {part.begin(), part.end()}));
    if (!units) {
      return fail(units.error());
    }
    std::map<std::string, const StoredUnit*> last;
    for (const StoredUnit& unit : *units) {
      const StoredUnit*& kept = last[unit.unit.uuid];
      if (kept == nullptr || kept->unit.started_at_ts < unit.unit.started_at_ts) {
        kept = &unit;
      }
    }
    for (const auto& [uuid, unit] : last) {
      if (const auto kwh = kwh_of(*unit)) {
        sums.known += 1;
        sums.kwh = sums.kwh.value_or(0) + *kwh;
      }
    }
  }
  return {};
}

}  // namespace ceems::api
