#include "api/accounting/bill.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

/// A node is missed for so long after its last reading; then it may have been taken away.
constexpr std::int64_t kMissedMs = 7 * kDayMs;
/// Most published power models err by a quarter or more (docs/energy.md).
constexpr double kModelError = 0.25;
/// What power supplies lose of what the CPUs draw, the middle of 7 to 12 %.
constexpr double kSupplyLoss = 0.095;
constexpr double kExplained = 0.05;

double kwh_of(const store::Bill& bill) {
  return static_cast<double>(bill.energy) * store::kKwhOfEnergy;
}

/// Time with readings and without, and energy, of the nodes of a class.
struct ClassTime {
  double expected_ms = 0, covered_ms = 0, kwh = 0;
};
using Classes = std::map<std::string, ClassTime>;

struct Totals {
  DayOfBill sum = {};
  double energy = 0, modelled = 0;
  std::size_t nodes = 0, rapl_nodes = 0;
  std::map<std::int64_t, double> read_ms = {};  ///< by day: time with readings of the best class
  Classes classes = {};
};

void add_days(const BillInput& input, const BillPeriod& period, BillTable& table, Totals& totals) {
  for (const store::NodeDay& day : input.days) {
    const double part = part_of_day(day.day_ms, period, input.zone);
    if (part <= 0) {
      continue;
    }
    const auto kwh = [part](std::int64_t energy) {
      return static_cast<double>(energy) * store::kKwhOfEnergy * part;
    };
    const store::NodeEnergy& sum = day.sum;
    if (table.days.empty() || table.days.back().day_ms != day.day_ms) {
      table.days.push_back({.day_ms = day.day_ms});
    }
    for (DayOfBill* target : {&table.days.back(), &totals.sum}) {
      target->active += kwh(sum.energy - sum.idle - sum.system - sum.unallocated);
      target->reserved_idle += kwh(sum.idle);
      target->system += kwh(sum.system);
      target->unallocated += kwh(sum.unallocated);
    }
    totals.energy += kwh(sum.energy);
    totals.modelled += kwh(sum.modelled);
    if (day.nodes > 0) {
      const double read = std::min(
          static_cast<double>(sum.covered_ms) / static_cast<double>(day.nodes),
          static_cast<double>(input.zone.day_start(day.day_ms + kDayMs * 3 / 2) - day.day_ms));
      double& best = totals.read_ms[day.day_ms];
      best = std::max(best, read * part);
    }
    ClassTime& time = totals.classes[day.node_class];
    time.covered_ms += static_cast<double>(sum.covered_ms) * part;
    time.kwh += kwh(sum.energy);
  }
}

void add_nodes(const BillInput& input, const BillPeriod& period, Totals& totals) {
  for (const store::KnownNode& node : input.nodes) {
    const std::int64_t seen = overlap({.from_ms = node.first_ms, .to_ms = node.last_ms}, period);
    const std::int64_t expected =
        overlap({.from_ms = node.first_ms, .to_ms = node.last_ms + kMissedMs}, period);
    totals.nodes += seen > 0 ? 1 : 0;
    totals.rapl_nodes += seen > 0 && node.facts.source.starts_with("rapl") ? 1 : 0;
    totals.classes[node.facts.node_class].expected_ms += static_cast<double>(expected);
  }
}

void add_hints(const BillInput& input, const Totals& totals, double meter, BillTable& table) {
  double covered = 0;
  for (const auto& [name, time] : totals.classes) {
    covered += time.covered_ms;
  }
  BillHint missing{.kind = "uncovered_nodes"};
  for (const auto& [name, time] : totals.classes) {
    const double lacks = std::max(0.0, time.expected_ms - time.covered_ms);
    const double mean = time.covered_ms > 0 ? time.kwh / time.covered_ms
                        : covered > 0       ? totals.energy / covered
                                            : 0;
    missing.kwh += lacks * mean;
    missing.hours += lacks / kHourMs;
  }
  table.hints.push_back(missing);
  table.hints.push_back({.kind = "modelled_nodes", .kwh = totals.modelled * kModelError});
  if (totals.nodes > 0) {
    table.hints.push_back(
        {.kind = "psu_losses",
         .kwh = totals.energy * kSupplyLoss * static_cast<double>(totals.rapl_nodes) /
                static_cast<double>(totals.nodes)});
  }
  // An hour at each end, as between summer time and the clock of a meter.
  const auto at_midnight = [&input](std::int64_t ms) { return input.zone.day_start(ms) == ms; };
  const BillPeriod& period = input.meter.period;
  if (!at_midnight(period.from_ms) || !at_midnight(period.to_ms) || input.meter.in_proportion) {
    table.hints.push_back(
        {.kind = "bill_clock",
         .kwh = meter * kHourMs / static_cast<double>(period.to_ms - period.from_ms)});
  }
  std::erase_if(table.hints, [](const BillHint& hint) { return hint.kwh <= 0; });
  std::ranges::stable_sort(table.hints, std::ranges::greater(), &BillHint::kwh);
}

void set_coverage(const Totals& totals, BillTable& table) {
  double read = 0;
  for (const auto& [day, ms] : totals.read_ms) {
    read += ms;
  }
  const std::int64_t length = table.period.to_ms - table.period.from_ms;
  if (length > 0) {
    table.hours = std::min(1.0, read / static_cast<double>(length));
  }
  double expected = 0;
  double covered = 0;
  for (const auto& [name, time] : totals.classes) {
    expected += time.expected_ms;
    covered += time.covered_ms;
  }
  if (expected > 0) {
    table.coverage = std::min(1.0, covered / expected);
  }
  if (totals.energy > 0) {
    table.measured = 1 - totals.modelled / totals.energy;
  }
  table.nodes = totals.nodes;
}

}  // namespace

std::int64_t overlap(const BillPeriod& a, const BillPeriod& b) {
  return std::max<std::int64_t>(0, std::min(a.to_ms, b.to_ms) - std::max(a.from_ms, b.from_ms));
}

double part_of_day(std::int64_t day_ms, const BillPeriod& period, const TimeZone& zone) {
  const BillPeriod whole{.from_ms = day_ms, .to_ms = zone.day_start(day_ms + kDayMs * 3 / 2)};
  return static_cast<double>(overlap(whole, period)) /
         static_cast<double>(whole.to_ms - whole.from_ms);
}

std::optional<double> BillTable::kwh(std::string_view part) const {
  const auto found = std::ranges::find(parts, part, &BillPart::part);
  return found == parts.end() ? std::nullopt : found->kwh;
}

std::optional<SeriesEnergy> energy_of(const AskSeries& ask,
                                      const std::string& cluster,
                                      const std::string& query,
                                      const BillPeriod& period,
                                      std::int64_t now_ms) {
  const std::int64_t end = std::min(period.to_ms, now_ms);
  const std::int64_t hours = (end - period.from_ms) / kHourMs;
  if (query.empty() || !ask || hours < 1) {
    return std::nullopt;
  }
  const auto points =
      ask(cluster, fmt::format("avg_over_time(({})[1h:1m])", query), period.from_ms + kHourMs,
          period.from_ms + hours * kHourMs, std::chrono::hours(1));
  if (!points || points->empty()) {
    if (!points) {
      log::warn("cannot read the power of the site", {{"err", points.error().message}});
    }
    return std::nullopt;
  }
  double watts = 0;
  for (const auto& [ms, value] : *points) {
    watts += value;
  }
  const auto known = static_cast<double>(points->size());
  constexpr double kWattsOfKw = 1000;
  return SeriesEnergy{.kwh = watts / known / kWattsOfKw *
                             static_cast<double>(end - period.from_ms) /
                             static_cast<double>(kHourMs),
                      .covered = std::min(1.0, known / static_cast<double>(hours))};
}

std::vector<store::Bill> bills_of(std::vector<store::Bill> bills,
                                  const std::string& cluster,
                                  bool only_cluster) {
  const bool only = cluster.empty() || only_cluster;
  const bool own = std::ranges::any_of(
      bills, [&](const store::Bill& bill) { return bill.cluster_id == cluster; });
  std::erase_if(bills, [&](const store::Bill& bill) {
    return own ? bill.cluster_id != cluster : !only || !bill.cluster_id.empty();
  });
  return bills;
}

MeterReading read_meter(const std::vector<store::Bill>& bills, const BillPeriod& month) {
  MeterReading reading{.period = month};
  double kwh = 0;
  for (const store::Bill& bill : bills) {
    const std::int64_t middle = bill.start_ms + (bill.end_ms - bill.start_ms) / 2;
    if (middle < month.from_ms || middle >= month.to_ms) {
      continue;
    }
    if (reading.bills.empty()) {
      reading.period = {.from_ms = bill.start_ms, .to_ms = bill.end_ms};
    }
    reading.period.from_ms = std::min(reading.period.from_ms, bill.start_ms);
    reading.period.to_ms = std::max(reading.period.to_ms, bill.end_ms);
    kwh += kwh_of(bill);
    reading.bills.push_back(bill);
  }
  if (!reading.bills.empty()) {
    reading.kwh = kwh;
    return reading;
  }
  std::int64_t covered = 0;
  for (const store::Bill& bill : bills) {
    const std::int64_t part = overlap({.from_ms = bill.start_ms, .to_ms = bill.end_ms}, month);
    if (part > 0) {
      covered += part;
      kwh += kwh_of(bill) * static_cast<double>(part) /
             static_cast<double>(bill.end_ms - bill.start_ms);
      reading.bills.push_back(bill);
    }
  }
  if (covered == month.to_ms - month.from_ms) {
    reading.kwh = kwh;
    reading.in_proportion = true;
  } else {
    reading.bills.clear();
  }
  return reading;
}

BillTable make_bill(const BillInput& input) {
  BillTable table{.period = input.meter.period};
  const BillPeriod so_far{.from_ms = table.period.from_ms,
                          .to_ms = std::min(table.period.to_ms, input.now_ms)};
  Totals totals;
  add_days(input, so_far, table, totals);
  add_nodes(input, so_far, totals);
  set_coverage(totals, table);

  const bool known = !input.days.empty();
  const std::string how = totals.modelled > totals.energy / 2 ? "modelled" : "measured";
  const auto add = [&table](std::string part, std::optional<double> kwh, std::string how_known) {
    table.parts.push_back(
        {.part = std::move(part), .kwh = kwh, .how = kwh ? std::move(how_known) : std::string()});
  };
  const auto of_nodes = [known](double kwh) { return known ? std::optional(kwh) : std::nullopt; };
  add("active", of_nodes(totals.sum.active), how);
  add("reserved_idle", of_nodes(totals.sum.reserved_idle), how);
  add("system", of_nodes(totals.sum.system), how);
  add("unallocated", of_nodes(totals.sum.unallocated), how);
  add("nodes", of_nodes(totals.energy), how);
  add("other", input.other ? std::optional(input.other->kwh) : std::nullopt, "measured");
  const double inside = totals.energy + (input.other ? input.other->kwh : 0);
  if (input.cooling) {
    add("cooling", input.cooling->kwh, "measured");
  } else if (input.pue && known) {
    add("cooling", inside * (*input.pue - 1), "configured");
  } else {
    add("cooling", std::nullopt, "");
  }
  const double all = inside + table.parts.back().kwh.value_or(0);
  const std::optional<double> meter = input.meter.kwh;
  const std::string metered = input.meter.in_proportion ? "derived" : "measured";
  const bool comparable = meter && table.hours.value_or(0) >= BillTable::kComparable;
  add("unexplained", comparable ? std::optional(*meter - all) : std::nullopt, "derived");
  add("meter", meter, metered);
  if (comparable && all > 0) {
    table.factor = *meter / all;
  }
  const double whole = comparable ? *meter : all;
  for (BillPart& part : table.parts) {
    if (part.kwh && whole > 0 && (comparable || part.part != "meter")) {
      part.share = *part.kwh / whole;
    }
    if (input.billed && part.kwh && table.factor) {
      const double scaled = part.part == "unexplained" ? 0.0 : *part.kwh * *table.factor;
      part.billed_kwh = part.part == "meter" ? *part.kwh : scaled;
    }
  }
  if (comparable && *meter > 0 && std::abs(*meter - all) > kExplained * *meter) {
    add_hints(input, totals, *meter, table);
  }
  return table;
}

}  // namespace ceems::api
