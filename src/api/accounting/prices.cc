#include "api/accounting/prices.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "api/answer/numbers.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "config/section.h"

namespace ceems::api {
namespace {

constexpr int kMinutesOfDay = 24 * 60;
constexpr std::int64_t kMaxMs = 4000 * kDayMs;
constexpr std::array<std::string_view, 7> kDays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

std::size_t weekday(std::string_view day) {
  const int year = parse_int<int>(day.substr(0, 4)).value_or(0);
  const auto month = parse_int<unsigned>(day.substr(5, 2)).value_or(1);
  const auto number = parse_int<unsigned>(day.substr(8, 2)).value_or(1);
  const std::chrono::weekday found{std::chrono::sys_days{
      std::chrono::year{year} / std::chrono::month{month} / std::chrono::day{number}}};
  return found.iso_encoding() - 1;
}

/// The day of the week and the minute of the day of a moment.
std::pair<std::size_t, int> local_time(const TimeZone& zone, std::int64_t ms) {
  const std::string text = zone.local(ms);
  const int hours = parse_int<int>(std::string_view(text).substr(11, 2)).value_or(0);
  const int minutes = parse_int<int>(std::string_view(text).substr(14, 2)).value_or(0);
  return {weekday(text), hours * 60 + minutes};
}

bool holds(const PriceHours& hours, std::size_t day, int minute) {
  if (!hours.days.at(day)) {
    return false;
  }
  return hours.from_minute < hours.to_minute
             ? minute >= hours.from_minute && minute < hours.to_minute
             : minute >= hours.from_minute || minute < hours.to_minute;
}

std::optional<double> price_at(const PriceRule& rule, std::int64_t ms) {
  const auto [day, minute] = local_time(rule.zone, ms);
  for (const PriceHours& hours : rule.hours) {
    if (holds(hours, day, minute)) {
      return hours.kwh;
    }
  }
  return rule.otherwise;
}

std::optional<int> minute_of(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') {
    return std::nullopt;
  }
  const auto hours = parse_int<int>(text.substr(0, 2));
  const auto minutes = parse_int<int>(text.substr(3, 2));
  if (!hours || !minutes || *hours < 0 || *minutes < 0 || *minutes > 59 ||
      *hours * 60 + *minutes > kMinutesOfDay) {
    return std::nullopt;
  }
  return *hours * 60 + *minutes;
}

/// "mon" or "mon-fri".
bool add_days(std::string_view text, std::array<bool, 7>& days) {
  const std::size_t dash = text.find('-');
  const auto first = std::ranges::find(kDays, text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : std::ranges::find(kDays, text.substr(dash + 1));
  if (first == kDays.end() || last == kDays.end()) {
    return false;
  }
  const auto end = static_cast<std::size_t>(last - kDays.begin());
  for (auto day = static_cast<std::size_t>(first - kDays.begin());; day = (day + 1) % 7) {
    days.at(day) = true;
    if (day == end) {
      return true;
    }
  }
}

/// Prices may be negative, as exchange prices are at times.
void read_price(config::Section& section, std::string_view key, std::optional<double>& target) {
  if (!section.node()[key].present()) {
    return;
  }
  double number = 0;
  section.number(key, number).refuse(!std::isfinite(number), key, "expected a number");
  target = number;
}

Result<> read_hours(const config::Node& node, PriceRule& rule) {
  PriceHours hours;
  std::vector<std::string> days;
  std::string from;
  std::string to;
  std::optional<double> kwh;
  config::Section section(node);
  section.only({"days", "from", "to", "kwh"}).list("days", days).text("from", from).text("to", to);
  if (!days.empty()) {
    hours.days = {};
  }
  for (const std::string& day : days) {
    section.refuse(!add_days(day, hours.days), "days", "expected days such as mon, or mon-fri");
  }
  const auto first = minute_of(from);
  const auto last = minute_of(to);
  section.refuse(!first, "from", "expected a time such as \"07:00\"");
  section.refuse(!last, "to", "expected a time such as \"23:00\"");
  section.refuse(first == last, "to", "expected another time than 'from'");
  read_price(section, "kwh", kwh);
  section.refuse(!kwh, "kwh", "expected the price of a kWh");
  if (section.ok()) {
    hours.from_minute = first.value_or(0);
    hours.to_minute = last.value_or(0);
    hours.kwh = kwh.value_or(0);
    rule.hours.push_back(hours);
  }
  return section.done();
}

Result<> read_time_of_use(const config::Node& node, PriceRule& rule) {
  config::Section section(node);
  std::string zone;
  section.only({"zone", "otherwise", "hours"}).text("zone", zone);
  if (!zone.empty()) {
    const auto found = TimeZone::find(zone);
    section.refuse(!found, "zone", found ? "" : found.error().message);
    rule.zone = found.value_or(TimeZone());
  }
  read_price(section, "otherwise", rule.otherwise);
  section.refuse(!rule.otherwise, "otherwise", "expected the price at all other times")
      .each("hours", [&rule](const config::Node& hours) { return read_hours(hours, rule); })
      .refuse(rule.hours.empty(), "hours", "expected a list of hours with a price");
  return section.done();
}

Result<> read_series(const config::Node& node, PriceRule& rule) {
  config::Section section(node);
  section.only({"query", "cluster", "otherwise"})
      .text("query", rule.query)
      .text("cluster", rule.series_cluster)
      .refuse(rule.query.empty(), "query", "expected a query in PromQL for the price of a kWh");
  read_price(section, "otherwise", rule.otherwise);
  return section.done();
}

Result<> read_rule(const config::Node& node, const TimeZone& zone, PriceOptions& options) {
  PriceRule rule{.zone = zone};
  config::Section section(node);
  std::string from;
  section.only({"from", "clusters", "kwh", "time_of_use", "series"})
      .text("from", from)
      .list("clusters", rule.clusters);
  if (!from.empty()) {
    const auto start = zone.parse_local(from + "T00:00:00");
    section.refuse(from.size() != 10 || !start, "from", "expected a date such as 2026-01-01");
    rule.from_ms = start.value_or(0);
  }
  const int kinds = static_cast<int>(node["kwh"].present()) +
                    static_cast<int>(node["time_of_use"].present()) +
                    static_cast<int>(node["series"].present());
  section.refuse(kinds != 1, "kwh", "expected one of kwh, time_of_use and series");
  read_price(section, "kwh", rule.otherwise);
  if (section.ok() && node["time_of_use"].present()) {
    section.also(read_time_of_use(node["time_of_use"], rule));
  }
  if (section.ok() && node["series"].present()) {
    section.also(read_series(node["series"], rule));
  }
  if (section.ok()) {
    options.rules.push_back(std::move(rule));
  }
  return section.done();
}

}  // namespace

bool PriceOptions::in_tsdb() const {
  return std::ranges::any_of(rules, [](const PriceRule& rule) { return !rule.query.empty(); });
}

bool PriceOptions::constant() const {
  return rules.empty() || (rules.size() == 1 && rules.front().clusters.empty() &&
                           rules.front().hours.empty() && rules.front().query.empty() &&
                           rules.front().from_ms == std::numeric_limits<std::int64_t>::min());
}

Result<PriceOptions> read_prices(const config::Node& document, const TimeZone& zone) {
  PriceOptions options;
  config::Section section(document);
  section.only({"energy", "core_hour", "gpu_hour"}).each("energy", [&](const config::Node& rule) {
    return read_rule(rule, zone, options);
  });
  read_price(section, "core_hour", options.core_hour);
  read_price(section, "gpu_hour", options.gpu_hour);
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return options;
}

PriceOptions prices_of(const SiteOptions& site) {
  PriceOptions options{
      .rules = {}, .core_hour = site.prices.core_hour, .gpu_hour = site.prices.gpu_hour};
  if (site.prices.kwh) {
    options.rules.push_back({.otherwise = site.prices.kwh});
  }
  return options;
}

const PriceRule* PriceCurve::rule_at(std::int64_t ms) const {
  const PriceRule* found = nullptr;
  for (const PriceRule& rule : options_->rules) {
    if (rule.from_ms <= ms && (rule.clusters.empty() ||
                               std::ranges::find(rule.clusters, cluster_) != rule.clusters.end())) {
      found = &rule;
    }
  }
  return found;
}

void PriceCurve::add(std::int64_t from_ms, std::optional<double> kwh) {
  if (!pieces_.empty() && pieces_.back().kwh == kwh) {
    return;
  }
  if (!pieces_.empty() && pieces_.back().from_ms >= from_ms) {
    pieces_.back().kwh = kwh;
    return;
  }
  Piece piece{.from_ms = from_ms, .kwh = kwh};
  if (!pieces_.empty()) {
    const auto [sum, unknown] = sum_to(from_ms);
    piece.sum_before = sum;
    piece.unknown_before = unknown;
  }
  pieces_.push_back(piece);
}

void PriceCurve::add_hours(const PriceRule& rule, std::int64_t from_ms, std::int64_t to_ms) {
  std::set<int> minutes{0};
  for (const PriceHours& hours : rule.hours) {
    minutes.insert({hours.from_minute % kMinutesOfDay, hours.to_minute % kMinutesOfDay});
  }
  add(from_ms, price_at(rule, from_ms));
  for (std::int64_t day = rule.zone.day_start(from_ms); day < to_ms;) {
    const std::int64_t next = rule.zone.day_start(day + kDayMs * 3 / 2);
    const bool usual = next - day == kDayMs;
    // A day on which the clock changes is looked at minute by minute.
    for (std::int64_t at = day; !usual && at < next; at += kMinuteMs) {
      if (at > from_ms && at < to_ms) {
        add(at, price_at(rule, at));
      }
    }
    for (const int minute : minutes) {
      const std::int64_t at = day + minute * kMinuteMs;
      if (usual && at > from_ms && at < to_ms) {
        add(at, price_at(rule, at));
      }
    }
    day = next;
  }
}

void PriceCurve::add_series(const PriceRule& rule, std::int64_t from_ms, std::int64_t to_ms) {
  constexpr std::int64_t kFineMs = 100 * kDayMs;  // as much as one answer of a TSDB holds
  const auto step = std::chrono::milliseconds(
      to_ms - from_ms > kFineMs ? std::max(kHourMs, (to_ms - from_ms) / 10'000) : kHourMs / 4);
  add(from_ms, rule.otherwise);
  if (!ask_) {
    return;
  }
  ++asked_;
  const std::int64_t first = from_ms - from_ms % step.count();
  const auto series = ask_(rule, first, to_ms, step);
  if (!series) {
    log::warn("cannot read the price of energy", {{"err", series.error().message}});
    return;
  }
  std::int64_t known_until = from_ms;
  for (const auto& [at, value] : *series) {
    if (!std::isfinite(value) || at + step.count() <= from_ms || at >= to_ms) {
      continue;
    }
    if (at > known_until) {
      add(known_until, rule.otherwise);
    }
    add(std::max(at, from_ms), value);
    known_until = at + step.count();
  }
  if (known_until < to_ms) {
    add(std::max(known_until, from_ms), rule.otherwise);
  }
}

void PriceCurve::add_rule(const PriceRule& rule, std::int64_t from_ms, std::int64_t to_ms) {
  if (!rule.query.empty()) {
    add_series(rule, from_ms, to_ms);
  } else if (!rule.hours.empty()) {
    add_hours(rule, from_ms, to_ms);
  } else {
    add(from_ms, rule.otherwise);
  }
}

void PriceCurve::build(std::int64_t from_ms, std::int64_t to_ms) {
  pieces_.clear();
  std::set<std::int64_t> changes{from_ms, to_ms};
  for (const PriceRule& rule : options_->rules) {
    if (rule.from_ms > from_ms && rule.from_ms < to_ms) {
      changes.insert(rule.from_ms);
    }
  }
  for (auto at = changes.begin(); std::next(at) != changes.end(); ++at) {
    const PriceRule* rule = rule_at(*at);
    if (rule == nullptr) {
      add(*at, std::nullopt);
    } else {
      add_rule(*rule, *at, *std::next(at));
    }
  }
  from_ms_ = from_ms;
  to_ms_ = to_ms;
}

std::pair<double, std::int64_t> PriceCurve::sum_to(std::int64_t ms) const {
  const auto after = std::ranges::upper_bound(pieces_, ms, {}, &Piece::from_ms);
  if (after == pieces_.begin()) {
    return {0, 0};
  }
  const Piece& piece = *std::prev(after);
  const std::int64_t time = ms - piece.from_ms;
  return {piece.sum_before + piece.kwh.value_or(0) * static_cast<double>(time),
          piece.unknown_before + (piece.kwh ? 0 : time)};
}

std::optional<double> PriceCurve::mean(std::int64_t from_ms, std::int64_t to_ms) {
  constexpr std::int64_t kMoreBeforeMs = 31 * kDayMs;
  constexpr int kMaxQueries = 3;
  if (options_->constant()) {
    return options_->rules.empty() ? std::nullopt : options_->rules.front().otherwise;
  }
  to_ms = std::max(to_ms, from_ms + 1);
  if (to_ms - from_ms > kMaxMs) {
    return std::nullopt;
  }
  if (pieces_.empty()) {
    build(from_ms, to_ms);
  } else if (from_ms < from_ms_ || to_ms > to_ms_) {
    if (asked_ >= kMaxQueries) {
      return std::nullopt;
    }
    const std::int64_t more = std::max(kMoreBeforeMs, to_ms_ - from_ms_);
    const std::int64_t first = from_ms < from_ms_ ? from_ms - more : from_ms_;
    const std::int64_t last = std::max(to_ms, to_ms_);
    if (last - first > kMaxMs) {
      build(from_ms, to_ms);
    } else {
      build(first, last);
    }
  }
  const auto [before, unknown_before] = sum_to(from_ms);
  const auto [sum, unknown] = sum_to(to_ms);
  if (unknown > unknown_before) {
    return std::nullopt;
  }
  return (sum - before) / static_cast<double>(to_ms - from_ms);
}

std::optional<double> Costs::price(const std::string& cluster,
                                   std::int64_t from_ms,
                                   std::int64_t to_ms) {
  const auto found = curves_.try_emplace(cluster, *options_, cluster, ask_).first;
  return found->second.mean(from_ms, to_ms);
}

std::optional<double> Costs::of(const std::string& cluster,
                                std::int64_t from_ms,
                                std::int64_t to_ms,
                                std::optional<double> kwh,
                                double core_hours,
                                double gpu_hours) {
  constexpr int kDigits = 6;
  if (!any()) {
    return std::nullopt;
  }
  double energy = 0;
  if (of_energy()) {
    const auto mean = kwh ? price(cluster, from_ms, to_ms) : std::nullopt;
    if (!mean) {
      return std::nullopt;
    }
    energy = *kwh * options_->pue * *mean;
  }
  return rounded(energy + options_->core_hour.value_or(0) * core_hours +
                     options_->gpu_hour.value_or(0) * gpu_hours,
                 kDigits);
}

}  // namespace ceems::api
