#include "api/statements/inputs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "api/accounting/market.h"
#include "api/request/months.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "crypto/digest.h"
#include "os/file.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxMeterBytes = 64UL * 1024 * 1024;
constexpr std::int64_t kDaysOfQuery = 31;  // a year by minutes is more than a TSDB answers

std::int64_t length_of(const BillPeriod& period) {
  return period.to_ms - period.from_ms;
}

/// Hours of a file or of a series.
Result<facility::Hours> read_hours(const StatementContext& context,
                                   const facility::Meter& meter,
                                   const facility::HourSpan& span,
                                   std::string& hash) {
  if (!meter.file.empty()) {
    CEEMS_TRY(text, os::read_regular_file(meter.file, kMaxMeterBytes));
    hash = crypto::hex(crypto::sha256(text));
    return facility::parse_meter_file(text, meter.file, meter.every_ms, context.zone);
  }
  if (!context.ask) {
    return fail(ErrorCode::kUnavailable, "no TSDB was asked");
  }
  facility::Hours hours;
  std::string text = "time,value\n";
  for (std::int64_t from = span.from_ms; from < span.to_ms; from += kDaysOfQuery * kDayMs) {
    const std::int64_t to = std::min(span.to_ms, from + kDaysOfQuery * kDayMs);
    CEEMS_TRY(points, context.ask(meter.cluster, meter.hourly_query(), from + kHourMs, to,
                                  std::chrono::hours(1)));
    for (const auto& [end_ms, value] : points) {
      if (std::isfinite(value) && value >= 0) {
        hours[end_ms - kHourMs] = value;
        text += fmt::format("{},{}\n", end_ms - kHourMs, value);
      }
    }
  }
  hash = crypto::hex(crypto::sha256(text));
  return hours;
}

void read_meters(StatementInputs& inputs) {
  for (const facility::Meter& meter : inputs.context.accounting->facility.meters) {
    const auto kind = static_cast<std::size_t>(meter.kind);
    statement::Source source{
        .what = fmt::format("meter {} ({})", meter.name, facility::name_of(meter.kind)),
        .detail = meter.file.empty() ? meter.hourly_query() : meter.file};
    auto hours = read_hours(inputs.context, meter, inputs.hours, source.sha256);
    if (!hours) {
      inputs.problems.push_back(fmt::format("{}: {}", source.what, hours.error().message));
      hours = facility::Hours();  // so that the sum has no hour without this meter
    }
    inputs.meters.at(kind) = inputs.has_meter.at(kind)
                                 ? facility::sum_of(inputs.meters.at(kind), *hours)
                                 : std::move(*hours);
    inputs.has_meter.at(kind) = true;
    inputs.sources.push_back(std::move(source));
  }
}

/// Sums of a month, by usage: for its factors.
struct FactorSums {
  double grams = 0, of_kwh = 0, market_grams = 0, market_kwh = 0;
};

class Reading {
 public:
  explicit Reading(StatementInputs& inputs) : inputs_(inputs) {}

  Result<> read() {
    const StatementContext& context = inputs_.context;
    if (!context.cluster.empty()) {
      clusters_.push_back(context.cluster);
    }
    inputs_.hours = {.from_ms = (inputs_.period.from_ms + kHourMs - 1) / kHourMs * kHourMs,
                     .to_ms = std::min(inputs_.period.to_ms, context.now_ms) / kHourMs * kHourMs};
    inputs_.hours.to_ms = std::max(inputs_.hours.from_ms, inputs_.hours.to_ms);
    CEEMS_TRY(bills, context.reader->bills(
                         {.from_ms = inputs_.period.from_ms, .to_ms = inputs_.period.to_ms}));
    all_bills_ = bills;
    inputs_.bills = bills_of(std::move(bills), context.cluster, context.one_cluster);
    CEEMS_TRY(node_days, context.reader->node_days(clusters_, days()));
    inputs_.node_days = std::move(node_days);
    CEEMS_TRY(nodes, context.reader->known_nodes(clusters_));
    nodes_ = std::move(nodes);
    read_meters(inputs_);
    CEEMS_TRY(read_usage());
    read_months();
    CEEMS_TRY(read_projects());
    return {};
  }

 private:
  [[nodiscard]] store::TimeRange days() const {
    return {.from_ms = inputs_.context.zone.day_start(inputs_.period.from_ms),
            .to_ms = inputs_.period.to_ms - 1};
  }

  [[nodiscard]] Result<std::vector<store::UsageOfDay>> usage_by(store::UsageBy by) const {
    return inputs_.context.reader->usage_by_day({.members = {.everybody = true},
                                                 .clusters = clusters_,
                                                 .days = days(),
                                                 .ended = days(),
                                                 .by = by});
  }

  Result<> read_usage() {
    CEEMS_TRY(days, usage_by(store::UsageBy::kCluster));
    const auto& rules = inputs_.context.accounting->market;
    MarketFactors market(all_bills_, rules);
    for (store::UsageOfDay& usage : days) {
      StatementDay day{.usage = std::move(usage)};
      const auto factor = market.at(day.usage.cluster, day.usage.day_ms + kDayMs / 2);
      if (factor) {
        day.market = factor->grams;
        day.market_source =
            factor->source < rules.size() ? rules[factor->source].source : "imported bills";
      }
      inputs_.days.push_back(std::move(day));
    }
    return {};
  }

  [[nodiscard]] BillInput bill_input(const BillPeriod& period, std::optional<double> meter) const {
    const StatementContext& context = inputs_.context;
    const AccountingOptions& options = *context.accounting;
    BillInput input{.meter = {.period = period, .kwh = meter},
                    .now_ms = context.now_ms,
                    .zone = context.zone,
                    .nodes = nodes_,
                    .pue = context.pue};
    for (const store::NodeDay& day : inputs_.node_days) {
      // A day before the period would make what is not known 0.
      if (day.day_ms > period.from_ms - 2 * kDayMs && day.day_ms < period.to_ms &&
          context.zone.day_start(day.day_ms + kDayMs * 3 / 2) > period.from_ms) {
        input.days.push_back(day);
      }
    }
    input.other =
        energy_of(context.ask, options.series_cluster, options.other_power, period, context.now_ms);
    input.cooling = energy_of(context.ask, options.series_cluster, options.cooling_power, period,
                              context.now_ms);
    return input;
  }

  void read_months() {
    const StatementContext& context = inputs_.context;
    const std::int64_t end = std::min(inputs_.period.to_ms, context.now_ms);
    for (std::int64_t at = inputs_.period.from_ms; at < end;) {
      const Month month = month_at(at, context.zone);
      StatementMonth one{.name = month.name,
                         .period = {.from_ms = month.from_ms, .to_ms = std::min(month.to_ms, end)}};
      const BillInput input = bill_input(one.period, std::nullopt);
      one.table = make_bill(input);
      for (const std::string_view part : {"nodes", "other", "cooling"}) {
        if (const auto kwh = one.table.kwh(part)) {
          one.known += *kwh;
          one.any_known = true;
        }
      }
      read_coverage(input, one);
      read_meter_of(one);
      choose_energy(one);
      read_factors(one);
      inputs_.months.push_back(std::move(one));
      at = month.to_ms;
    }
  }

  static void read_coverage(const BillInput& input, StatementMonth& month) {
    const bool nodes = month.table.kwh("nodes").has_value();
    month.node_coverage = nodes ? month.table.coverage.value_or(0) : 0;
    month.other_coverage = input.other ? input.other->covered : 0;
    month.cooling_coverage = input.cooling ? input.cooling->covered
                             : input.pue   ? month.node_coverage
                                           : 0;
    month.known_coverage =
        nodes ? month.node_coverage : std::max(month.other_coverage, month.cooling_coverage);
  }

  /// The bills of a month, in proportion where they are longer.
  void read_meter_of(StatementMonth& month) const {
    std::vector<BillPeriod> spans;
    double kwh = 0;
    std::int64_t billed = 0;
    for (const store::Bill& bill : inputs_.bills) {  // in the order of their starts
      const BillPeriod whole{.from_ms = bill.start_ms, .to_ms = bill.end_ms};
      if (overlap(whole, month.period) == 0) {
        continue;
      }
      const BillPeriod part{.from_ms = std::max(whole.from_ms, month.period.from_ms),
                            .to_ms = std::min(whole.to_ms, month.period.to_ms)};
      billed += length_of(part);
      kwh += static_cast<double>(bill.energy) * store::kKwhOfEnergy *
             static_cast<double>(length_of(part)) / static_cast<double>(length_of(whole));
      if (!spans.empty() && spans.back().to_ms == part.from_ms) {
        spans.back().to_ms = part.to_ms;
      } else {
        spans.push_back(part);
      }
    }
    if (billed == 0) {
      return;
    }
    month.meter = kwh;
    month.billed_share = static_cast<double>(billed) / static_cast<double>(length_of(month.period));
    double known = 0;
    for (const BillPeriod& span : spans) {
      // One bill of the span, so that hours without readings count as on the page of the bill.
      const BillTable table = spans.size() == 1 && length_of(span) == length_of(month.period)
                                  ? month.table
                                  : make_bill(bill_input(span, std::nullopt));
      if (table.hours.value_or(0) < BillTable::kComparable) {
        return;
      }
      for (const std::string_view part : {"nodes", "other", "cooling"}) {
        known += table.kwh(part).value_or(0);
      }
    }
    month.known_billed = known;
    month.unexplained = kwh - known;
  }

  void choose_energy(StatementMonth& month) const {
    const auto& total = inputs_.meter(facility::MeterKind::kTotal);
    const bool of_site = inputs_.of_site();  // its meter is not one of a cluster
    double metered = 0;
    double hours = 0;
    for (auto hour = total.lower_bound(month.period.from_ms);
         of_site && hour != total.end() && hour->first < month.period.to_ms; ++hour) {
      metered += hour->second;
      hours += 1;
    }
    const std::int64_t whole_hours = length_of(month.period) / kHourMs;  // of the present month
    const auto expected = static_cast<double>(whole_hours);
    if (month.billed_share >= 1) {
      month.energy = month.meter;
      month.basis = "bill";
      month.energy_coverage = 1;
    } else if (hours > 0 && hours >= expected) {
      month.energy = metered;
      month.basis = "meter";
      month.energy_coverage = 1;
    } else if (month.any_known) {
      month.energy = month.known;
      month.basis = "parts";
      month.energy_coverage = month.known_coverage;
    } else if (hours > 0) {
      month.energy = metered;
      month.basis = "partial meter";
      month.energy_coverage = hours / expected;
    }
  }

  void read_factors(StatementMonth& month) const {
    FactorSums sums;
    for (const StatementDay& day : inputs_.days) {
      const auto kwh = day.usage.kwh();
      if (day.usage.day_ms < month.period.from_ms || day.usage.day_ms >= month.period.to_ms ||
          !kwh) {
        continue;
      }
      if (const auto grams = day.usage.grams()) {
        sums.grams += *grams;
        sums.of_kwh += *kwh;
      }
      if (day.market) {
        sums.market_grams += *day.market * *kwh;
        sums.market_kwh += *kwh;
      }
    }
    if (sums.of_kwh > 0) {
      month.location = sums.grams / sums.of_kwh;
    }
    if (sums.market_kwh > 0) {
      month.market = sums.market_grams / sums.market_kwh;
    }
    const std::int64_t middle = month.period.from_ms + length_of(month.period) / 2;
    for (const facility::LossFactor& factor : inputs_.context.accounting->facility.losses) {
      if (factor.from_ms <= middle && middle < factor.to_ms) {
        month.losses = factor.grams;
        month.losses_source = factor.source;
        month.losses_date = factor.date;
      }
    }
  }

  /// The hours that nodes of a class were there and had to give.
  [[nodiscard]] std::vector<facility::ClassHours> class_hours() const {
    std::map<std::pair<std::string, std::string>, facility::ClassHours> classes;
    const BillPeriod period{.from_ms = inputs_.period.from_ms,
                            .to_ms = std::min(inputs_.period.to_ms, inputs_.context.now_ms)};
    for (const store::KnownNode& node : nodes_) {
      const std::int64_t there = overlap({.from_ms = node.first_ms, .to_ms = node.last_ms}, period);
      if (there == 0) {
        continue;
      }
      const double hours = static_cast<double>(there) / static_cast<double>(kHourMs);
      auto& one = classes[{node.cluster_id, node.facts.node_class}];
      one.cluster = node.cluster_id;
      one.node_class = node.facts.node_class;
      one.nodes += 1;
      one.node_hours += hours;
      one.core_hours += hours * static_cast<double>(node.facts.cpus);
      one.gpu_hours += hours * static_cast<double>(node.facts.gpus);
    }
    std::vector<facility::ClassHours> all;
    all.reserve(classes.size());
    for (auto& [key, one] : classes) {
      all.push_back(std::move(one));
    }
    return all;
  }

  Result<> read_projects() {
    CEEMS_TRY(days, usage_by(store::UsageBy::kProject));
    std::map<std::string, StatementProject> projects;
    std::map<std::pair<std::string, std::string>, facility::Reserved> reserved;
    const auto add = [](std::optional<double>& sum, std::optional<double> value) {
      if (value) {
        sum = sum.value_or(0) + *value;
      }
    };
    for (const store::UsageOfDay& day : days) {
      StatementProject& project = projects[day.group];
      project.name = day.group;
      project.units += static_cast<double>(day.units);
      project.core_hours += day.core_hours();
      project.gpu_hours += day.gpu_hours();
      add(project.kwh, day.kwh());
      add(project.grams, day.grams());
      add(project.grams_of_kwh, day.grams() ? day.kwh() : std::nullopt);
      facility::Reserved& one = reserved[{day.group, day.cluster}];
      one.group = day.group;
      one.cluster = day.cluster;
      one.core_hours += day.core_hours();
      one.gpu_hours += day.gpu_hours();
    }
    const facility::EmbodiedOptions& options = inputs_.context.accounting->embodied;
    inputs_.has_embodied = !options.classes.empty();
    std::vector<facility::Reserved> groups;
    groups.reserve(reserved.size());
    for (auto& [key, one] : reserved) {
      groups.push_back(std::move(one));
    }
    inputs_.embodied = facility::embodied_of(options, class_hours(), groups);
    if (inputs_.has_embodied) {
      for (const auto& group : inputs_.embodied.groups) {
        add(projects[group.reserved.group].embodied, group.kg);
      }
    }
    for (auto& [name, project] : projects) {
      inputs_.projects.push_back(std::move(project));
    }
    return {};
  }

  StatementInputs& inputs_;
  std::vector<std::string> clusters_;
  std::vector<store::Bill> all_bills_;
  std::vector<store::KnownNode> nodes_;
};

}  // namespace

Result<StatementPeriod> parse_period(std::string_view name, const TimeZone& zone) {
  constexpr std::size_t kYear = 4;
  const bool year = name.size() == kYear;
  const auto first = month_named(year ? std::string(name) + "-01" : std::string(name), zone);
  const auto last = month_named(year ? std::string(name) + "-12" : std::string(name), zone);
  if (!first || !last) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}': expected a year or month such as 2026 or 2026-11", printable(name, 20));
  }
  return StatementPeriod{
      .name = std::string(name), .from_ms = first->from_ms, .to_ms = last->to_ms};
}

bool StatementInputs::of_site() const {
  return context.cluster.empty() || context.one_cluster;
}

double StatementInputs::part_of(std::int64_t day_ms) const {
  return part_of_day(day_ms,
                     {.from_ms = period.from_ms, .to_ms = std::min(period.to_ms, context.now_ms)},
                     context.zone);
}

Result<StatementInputs> read_statement_inputs(const StatementContext& context,
                                              const StatementPeriod& period) {
  StatementInputs inputs{.context = context, .period = period};
  CEEMS_TRY(Reading(inputs).read());
  return inputs;
}

}  // namespace ceems::api
