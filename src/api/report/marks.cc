#include "api/report/marks.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/statistics.h"
#include "base/time/durations.h"
#include "report/stored.h"

namespace ceems::api {
namespace {

constexpr std::string_view kWholeNode = "node";

void add_joules(report::Number& sum, const report::Number& joules) {
  if (joules) {
    sum = sum.value_or(0) + *joules;
  }
}

}  // namespace

report::Number all_joules(const std::map<std::string, double, std::less<>>& domains) {
  if (const auto whole = domains.find(kWholeNode); whole != domains.end()) {
    return whole->second;
  }
  report::Number sum;
  for (const auto& [domain, joules] : domains) {
    add_joules(sum, joules);
  }
  return sum;
}

report::Number joules_of_unit(const UnitMarks& marks) {
  report::Number sum;
  for (const UnitMarks::Node& node : marks.nodes) {
    add_joules(sum, all_joules(node.joules));
  }
  return sum;
}

report::Number RegionSum::longer() const {
  return nodes.size() > 1 && mean_seconds > 0 ? report::Number(seconds / mean_seconds - 1)
                                              : std::nullopt;
}

std::vector<RegionSum> regions_of(const UnitMarks& marks) {
  std::map<std::string_view, RegionSum> sums;
  struct Powered {
    double joules = 0, seconds = 0;
  };
  std::map<std::string_view, Powered> powered;  // on nodes that know the energy
  for (std::size_t place = 0; place < marks.nodes.size(); ++place) {
    for (const auto& [name, region] : marks.nodes[place].regions) {
      RegionSum& sum = sums[name];
      sum.count = std::max(sum.count, region.count);
      sum.seconds = std::max(sum.seconds, region.seconds);
      sum.mean_seconds += region.seconds;
      add_joules(sum.self_joules, region.self_joules);
      for (const auto& [domain, joules] : region.joules) {
        if (domain != kWholeNode) {
          sum.domains[domain] += joules;
        }
      }
      if (const auto joules = all_joules(region.joules)) {
        add_joules(sum.joules, joules);
        powered[name].joules += *joules;
        powered[name].seconds += region.seconds;
      }
      sum.nodes.push_back(place);
    }
  }
  std::vector<RegionSum> all;
  for (auto& [name, sum] : sums) {
    sum.name = name;
    sum.mean_seconds /= static_cast<double>(sum.nodes.size());
    if (const Powered& of = powered[name]; of.seconds > 0) {
      sum.watts = of.joules / of.seconds;
    }
    std::ranges::stable_sort(sum.nodes, std::ranges::greater(), [&, key = name](std::size_t place) {
      return marks.nodes[place].regions.find(key)->second.seconds;
    });
    all.push_back(std::move(sum));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &RegionSum::seconds);
  return all;
}

void add_marks(const UnitMarks& marks, report::Report& report) {
  for (const RegionSum& region : regions_of(marks)) {
    if (report.phases.size() == kMaxShownMarks) {
      break;
    }
    report::Phase& phase = report.phases.emplace_back();
    phase.region = region.name;
    phase.count = region.count;
    phase.nodes = static_cast<double>(region.nodes.size());
    phase.seconds = region.seconds;
    if (report.job.elapsed && *report.job.elapsed > 0) {
      phase.share = std::min(region.seconds / *report.job.elapsed, 1.0);
    }
    if (region.joules) {
      phase.kwh = *region.joules / kJoulesPerKwh;
    }
    if (region.self_joules) {
      phase.self_kwh = *region.self_joules / kJoulesPerKwh;
    }
    phase.watts = region.watts;
    if (const auto longer = region.longer()) {
      phase.slowest = marks.nodes[region.nodes.front()].name;
      phase.longer = longer;
    }
  }
  for (const UnitMarks::Result& result : marks.results) {
    if (report.results.size() == kMaxShownMarks) {
      break;
    }
    report::JobResult& made = report.results.emplace_back();
    made.result = result.name;
    made.unit = result.unit;
    made.n = result.n;
    if (report.energy.kwh && result.n > 0) {
      made.joules = *report.energy.kwh * kJoulesPerKwh / result.n;
    }
  }
  for (const UnitMarks::Merit& merit : marks.merits) {
    if (report.merits.size() == kMaxShownMarks) {
      break;
    }
    report.merits.push_back(
        {.fom = merit.name, .unit = merit.unit, .last = merit.last, .mean = merit.mean});
  }
}

void compare_results(store::Reader& reader,
                     const std::vector<store::FamilyRun>& earlier,
                     report::Report& report) {
  if (report.results.empty()) {
    return;
  }
  for (const store::FamilyRun& run : earlier) {
    const auto found = reader.stored_report(run.key);
    const store::StoredReport known =
        found ? found->value_or(store::StoredReport{}) : store::StoredReport{};
    if (!known.final || known.version != report::kStoredVersion) {
      continue;
    }
    const auto before = report::from_stored(known.body);
    if (!before) {
      continue;
    }
    for (report::JobResult& now : report.results) {
      const auto same_result = [&now](const report::JobResult& result) {
        return result.result == now.result && result.unit == now.unit && result.joules;
      };
      if (const auto same = std::ranges::find_if(before->results, same_result);
          same != before->results.end()) {
        now.family.push_back(
            {.uuid = run.key.uuid, .started_ms = run.key.started_at_ts, .joules = same->joules});
      }
    }
  }
  for (report::JobResult& result : report.results) {
    std::vector<double> joules;
    joules.reserve(result.family.size());
    for (const report::EarlierResult& one : result.family) {
      joules.push_back(one.joules.value_or(0));
    }
    if (const auto statistics = statistics_of(joules)) {
      result.family_joules = statistics->median;
    }
  }
}

}  // namespace ceems::api
