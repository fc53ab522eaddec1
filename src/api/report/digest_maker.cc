#include "api/report/digest_maker.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/report/evidence_numbers.h"
#include "api/report/final_report.h"
#include "base/log.h"
#include "store/advice_rules.h"
#include "store/nodes.h"
#include "store/reports.h"
#include "store/unit_name.h"

namespace ceems::api {
namespace {

using report::Digest;
using report::MonthOfUse;
using report::Number;

constexpr std::size_t kMonths = 4;  // the month and those before it
/// A kind of job that ran less often may have changed by chance.
constexpr std::int64_t kLeastRuns = 5;
constexpr double kLeastDrop = 0.05;  // of the energy
constexpr double kLeastSavedKwh = 0.1;
/// Energy of months is compared if it is known for this part of the core-hours (docs/numbers.md).
constexpr double kLeastCoverage = 0.8;
constexpr std::size_t kMaxDigestFindings = 2000;
constexpr std::int64_t kBandKeptMs = 3'600'000;
constexpr std::size_t kMaxBands = 100;
/// No project of a band may stand for more of its energy.
constexpr double kMaxShareOfBand = 0.5;

/// What was used in a month on one cluster.
struct Sum {
  double core_hours = 0, core_hours_with_energy = 0, gpu_hours = 0;
  Number kwh = {}, grams = {};
};

/// The units of the question that ended in a month.
store::FactFilter ended_in(const DigestQuestion& question, const Month& month) {
  store::FactFilter filter = question.rows.units;
  filter.clusters = question.clusters;
  filter.ended = store::TimeRange{.from_ms = month.from_ms, .to_ms = month.to_ms - 1};
  return filter;
}

Number change_from(double before, double now) {
  return before > 0 ? Number(now / before - 1) : std::nullopt;
}

Number share_of(double part, double of) {
  return of > 0 ? Number(part / of) : std::nullopt;
}

/// What the sums over the units of a month say, by kind.
struct Kinds {
  struct Kind {
    std::int64_t units = 0;
    double of_kwh = 0, not_used_kwh = 0;  ///< of units for which it is known
  };
  std::map<std::string, Kind> by_name = {};
  Number idle_share = {}, not_used_share = {};

  explicit Kinds(const store::UnitSummary& summary) {
    for (const store::FacetValue& value : summary.facets.at(0)) {
      Kind& kind = by_name[store::normal_name(value.value)];
      kind.units += value.units;
      kind.of_kwh += value.not_used_of_kwh;
      kind.not_used_kwh += value.not_used_kwh;
    }
    idle_share = share_of(summary.idle_kwh, summary.idle_of_kwh);
    not_used_share = share_of(summary.not_used_kwh, summary.not_used_of_kwh);
  }
};

std::optional<report::Improvement> best_of(const Kinds& now, const Kinds& before) {
  std::optional<report::Improvement> best;
  for (const auto& [name, kind] : now.by_name) {
    const auto earlier = before.by_name.find(name);
    if (earlier == before.by_name.end() || kind.units < kLeastRuns ||
        earlier->second.units < kLeastRuns) {
      continue;
    }
    const Number share = share_of(kind.not_used_kwh, kind.of_kwh);
    const Number was = share_of(earlier->second.not_used_kwh, earlier->second.of_kwh);
    if (!share || !was) {
      continue;
    }
    const double saved = (*was - *share) * kind.of_kwh;
    if (*was - *share >= kLeastDrop && saved >= kLeastSavedKwh &&
        (!best || saved > best->saved_kwh)) {
      best = report::Improvement{
          .name = name, .runs = kind.units, .before = *was, .now = *share, .saved_kwh = saved};
    }
  }
  return best;
}

/// The value below which this part of the sorted values lies.
double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - std::floor(place));
}

/// Findings of one rule.
struct Rule {
  store::UnitFinding newest = {};
  std::int64_t units = 0;
};

}  // namespace

Result<> DigestMaker::add_usage(const DigestQuestion& question, Digest& digest) const {
  std::vector<Month> months{question.month};
  while (months.size() < kMonths) {
    months.push_back(month_before(months.back(), zone_));
  }
  store::UsageSeriesQuery query{
      .members = question.rows.members,
      .clusters = question.clusters,
      .days = {.from_ms = months.back().from_ms, .to_ms = question.month.to_ms - 1},
      .by = store::UsageBy::kCluster};
  if (question.project.empty()) {
    query.users = {question.user};
  } else {
    query.projects = {question.project};
  }
  CEEMS_TRY(days, reader_.usage_by_day(query));
  std::vector<std::map<std::string, Sum>> sums(kMonths);
  for (const store::UsageOfDay& day : days) {
    const auto month = std::ranges::find_if(
        months, [&day](const Month& one) { return day.day_ms >= one.from_ms; });
    if (month == months.end()) {
      continue;
    }
    Sum& sum = sums[static_cast<std::size_t>(month - months.begin())][day.cluster];
    sum.core_hours += day.core_hours();
    sum.core_hours_with_energy += day.core_hours_with_energy();
    sum.gpu_hours += day.gpu_hours();
    add_to(sum.kwh, day.kwh());
    add_to(sum.grams, day.grams());
  }
  std::vector<std::set<std::string>> unmeasured(kMonths);
  std::vector<double> with_energy(kMonths);
  for (std::size_t i = 0; i < kMonths; ++i) {
    if (i > 0 && sums[i].empty()) {
      break;  // before the first day in the database, or a month without use
    }
    MonthOfUse& month = digest.months.emplace_back(MonthOfUse{.month = months[i].name});
    for (const auto& [cluster, sum] : sums[i]) {
      month.core_hours += sum.core_hours;
      with_energy[i] += sum.core_hours_with_energy;
      month.gpu_hours += sum.gpu_hours;
      add_to(month.kwh, sum.kwh);
      add_to(month.grams, sum.grams);
      if (!sum.kwh) {
        unmeasured[i].insert(cluster);
      }
    }
  }
  digest.unmeasured.assign(unmeasured[0].begin(), unmeasured[0].end());
  if (digest.months.size() > 1 && !digest.so_far) {
    const MonthOfUse& now = digest.months[0];
    const MonthOfUse& before = digest.months[1];
    digest.hours_change = change_from(before.core_hours, now.core_hours);
    const bool known = with_energy[0] >= kLeastCoverage * now.core_hours &&
                       with_energy[1] >= kLeastCoverage * before.core_hours;
    if (known && now.kwh && before.kwh && unmeasured[0] == unmeasured[1]) {
      digest.kwh_change = change_from(*before.kwh, *now.kwh);
    }
  }
  return {};
}

void DigestMaker::add_method(const DigestQuestion& question, Digest& digest) const {
  const auto days = reader_.node_days(
      question.clusters, {.from_ms = question.month.from_ms, .to_ms = question.month.to_ms - 1});
  if (!days || !digest.months.front().kwh) {
    return;
  }
  double energy = 0;
  double modelled = 0;
  for (const store::NodeDay& day : *days) {
    energy += static_cast<double>(day.sum.energy);
    modelled += static_cast<double>(day.sum.modelled);
  }
  if (energy <= 0) {
    return;
  }
  constexpr double kNone = 0.005;  // shown as 0 %
  const double share = modelled / energy;
  digest.modelled_share = share;
  digest.method = share < kNone ? "measured" : share > 1 - kNone ? "modelled" : "partly_modelled";
}

void DigestMaker::add_units(const DigestQuestion& question, Digest& digest) const {
  store::SummaryQuery query{.filter = ended_in(question, question.month),
                            .facets = {store::Fact::kName}};
  const auto now = reader_.unit_summary(query);
  if (!now) {
    log::debug("the units of a month are not added up", {{"err", now.error().message}});
    return;
  }
  const Kinds kinds(*now);
  digest.months.front().units = static_cast<double>(now->units);
  digest.months.front().idle_share = kinds.idle_share;
  digest.months.front().not_used_share = kinds.not_used_share;
  if (digest.months.size() < 2) {
    return;
  }
  query.filter = ended_in(question, month_before(question.month, zone_));
  const auto before = reader_.unit_summary(query);
  if (!before) {
    log::debug("the units of a month are not added up", {{"err", before.error().message}});
    return;
  }
  const Kinds earlier(*before);
  digest.months[1].units = static_cast<double>(before->units);
  digest.months[1].idle_share = earlier.idle_share;
  digest.months[1].not_used_share = earlier.not_used_share;
  digest.improvement = best_of(kinds, earlier);
  if (auto& best = digest.improvement; best && !question.rows.written) {
    best->name.clear();
  }
}

void DigestMaker::add_suggestions(const DigestQuestion& question, Digest& digest) const {
  store::FindingQuery query{.filter = ended_in(question, question.month),
                            .least_severity = static_cast<int>(advice::Severity::kSuggest),
                            .limit = kMaxDigestFindings};
  query.filter.advice = store::any_advice();
  const auto found = reader_.findings(query);
  if (!found) {
    log::debug("the findings of a month are not known", {{"err", found.error().message}});
    return;
  }
  std::map<std::string, Rule> rules;
  for (const store::UnitFinding& one : *found) {
    const bool said =
        one.finding.confidence >= static_cast<int>(advice::Confidence::kLikely) &&
        std::ranges::find(question.not_said, one.finding.rule) == question.not_said.end();
    if (said) {
      Rule& rule = rules.try_emplace(one.finding.rule, Rule{.newest = one}).first->second;
      rule.units += 1;
    }
  }
  for (const auto& [name, rule] : rules) {
    auto stored =
        read_final_report(reader_, rule.newest.key, rule.newest.project, question.rows.members);
    const FinalReport known = stored ? std::move(*stored).value_or(FinalReport{}) : FinalReport{};
    for (advice::Finding finding : known.report.findings) {
      if (finding.rule != name) {
        continue;
      }
      if (!question.rows.written) {
        finding.lines.clear();
      }
      digest.suggestions.push_back({.finding = std::move(finding),
                                    .cluster_id = rule.newest.key.cluster_id,
                                    .uuid = rule.newest.key.uuid,
                                    .units = rule.units});
      break;
    }
  }
  const auto order = [](const report::RepeatedFinding& one) {
    return std::tuple(-static_cast<int>(one.finding.severity),
                      -static_cast<int>(one.finding.confidence), -one.finding.saves_kwh.value_or(0),
                      -one.units, one.finding.rule);
  };
  std::ranges::sort(digest.suggestions, {}, order);
}

DigestMaker::Projects DigestMaker::add_up(const DigestQuestion& question) const {
  Projects projects{.until_ms = question.now_ms + kBandKeptMs};
  store::SummaryQuery query{.filter = access::all_rows_for_bands(),
                            .facets = {store::Fact::kProject}};
  query.filter.clusters = question.clusters;
  query.filter.ended =
      store::TimeRange{.from_ms = question.month.from_ms, .to_ms = question.month.to_ms - 1};
  const auto summary = reader_.unit_summary(query);
  if (!summary) {
    log::debug("the projects of a month are not compared", {{"err", summary.error().message}});
    return projects;
  }
  for (const store::FacetValue& value : summary->facets.at(0)) {
    if (value.not_used_of_kwh > 0) {
      projects.sums[value.value] = {.of_kwh = value.not_used_of_kwh,
                                    .not_used_kwh = value.not_used_kwh};
    }
  }
  return projects;
}

std::optional<report::Band> DigestMaker::band_of(const DigestQuestion& question) const {
  const std::string key =
      fmt::format("{}\n{}", question.month.name, fmt::join(question.clusters, "\n"));
  const MutexLock lock(mutex_);
  auto found = projects_.find(key);
  if (found == projects_.end() || found->second.until_ms < question.now_ms) {
    if (projects_.size() >= kMaxBands) {
      projects_.clear();
    }
    found = projects_.insert_or_assign(key, add_up(question)).first;
  }
  const auto& sums = found->second.sums;
  const auto own = sums.find(question.project);
  if (own == sums.end() || sums.size() < report::kLeastProjects) {
    return std::nullopt;
  }
  double all = 0;
  double most = 0;
  std::vector<double> shares;
  shares.reserve(sums.size());
  for (const auto& [project, sum] : sums) {
    all += sum.of_kwh;
    most = std::max(most, sum.of_kwh);
    shares.push_back(sum.not_used_kwh / sum.of_kwh);
  }
  if (most > kMaxShareOfBand * all) {
    return std::nullopt;
  }
  std::ranges::sort(shares);
  constexpr double kQuarter = 0.25;
  report::Band band{.low = quantile(shares, kQuarter),
                    .high = quantile(shares, 1 - kQuarter),
                    .projects = sums.size()};
  const double share = own->second.not_used_kwh / own->second.of_kwh;
  band.place = share < band.low ? "below" : (share > band.high ? "above" : "within");
  return band;
}

Result<Digest> DigestMaker::make(const DigestQuestion& question) const {
  Digest digest{.user = question.user,
                .project = question.project,
                .clusters = question.clusters,
                .so_far = question.now_ms < question.month.to_ms};
  const bool whole = question.rows.seen == access::DigestRows::Seen::kWhole;
  if (whole) {
    CEEMS_TRY(add_usage(question, digest));
    add_method(question, digest);
    add_units(question, digest);
    add_suggestions(question, digest);
  } else {
    digest.months.push_back({.month = question.month.name});
  }
  if (!question.project.empty()) {
    digest.band = band_of(question);
  }
  if (!whole) {
    report::keep_band(digest);
  }
  report::round_digest(digest);
  return digest;
}

}  // namespace ceems::api
