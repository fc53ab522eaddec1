#include "api/accounting/market.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"
#include "base/time/durations.h"
#include "config/section.h"

namespace ceems::api {

Result<MarketRule> read_market_rule(const config::Node& node, const TimeZone& zone) {
  constexpr std::size_t kMaxSource = 200;
  constexpr double kMaxGrams = 5000;  // lignite is below 1500
  MarketRule rule{.grams = -1};
  config::Section section(node);
  std::string from;
  std::string to;
  section.only({"from", "to", "clusters", "g_kwh", "source"})
      .text("from", from)
      .text("to", to)
      .list("clusters", rule.clusters)
      .number("g_kwh", rule.grams)
      .text("source", rule.source)
      .refuse(!(rule.grams >= 0 && rule.grams <= kMaxGrams), "g_kwh",
              "expected the emissions of a kWh in g CO2e, from 0 to 5000")
      .refuse(rule.source.empty() || rule.source.size() > kMaxSource ||
                  printable(rule.source, kMaxSource) != rule.source,
              "source", "expected one line of at most 200 bytes on what proves the factor");
  const auto day = [&](std::string_view key, const std::string& text) {
    const auto start = zone.parse_local(text + "T00:00:00");
    section.refuse(text.size() != 10 || !start, key, "expected a date such as 2026-01-01");
    return start.value_or(0);
  };
  if (!from.empty()) {
    rule.from_ms = day("from", from);
  }
  if (!to.empty()) {
    rule.to_ms = zone.day_start(day("to", to) + kDayMs * 3 / 2);
  }
  section.refuse(rule.from_ms >= rule.to_ms, "to", "expected the last day, not before 'from'");
  CEEMS_TRY(section.done());
  return rule;
}

MarketFactors::MarketFactors(const std::vector<store::Bill>& bills,
                             const std::vector<MarketRule>& rules)
    : rules_(&rules) {
  constexpr double kGramsOfKg = 1000;
  for (const store::Bill& bill : bills) {
    const auto kg = parse_double(bill.kgco2);
    supplies_.push_back({.cluster_id = bill.cluster_id,
                         .start_ms = bill.start_ms,
                         .end_ms = bill.end_ms,
                         .kwh = static_cast<double>(bill.energy) * store::kKwhOfEnergy,
                         .grams = kg ? std::optional(*kg * kGramsOfKg) : std::nullopt});
  }
}

std::optional<double> MarketFactors::billed_factor(const std::string& cluster_id,
                                                   std::int64_t ms) const {
  const auto covers = [ms](const Supply& supply) {
    return supply.start_ms <= ms && ms < supply.end_ms;
  };
  const bool own = std::ranges::any_of(supplies_, [&](const Supply& supply) {
    return covers(supply) && supply.cluster_id == cluster_id;
  });
  double kwh = 0;
  double grams = 0;
  for (const Supply& supply : supplies_) {
    if (!covers(supply) || supply.cluster_id != (own ? cluster_id : std::string())) {
      continue;
    }
    if (!supply.grams) {
      return std::nullopt;
    }
    kwh += supply.kwh;
    grams += *supply.grams;
  }
  return kwh > 0 ? std::optional(grams / kwh) : std::nullopt;
}

std::optional<MarketFactor> MarketFactors::factor_of(const std::string& cluster_id,
                                                     std::int64_t ms) const {
  if (const auto billed = billed_factor(cluster_id, ms)) {
    return MarketFactor{.grams = *billed};
  }
  for (std::size_t i = rules_->size(); i-- > 0;) {
    const MarketRule& rule = (*rules_)[i];
    if (rule.from_ms <= ms && ms < rule.to_ms &&
        (rule.clusters.empty() ||
         std::ranges::find(rule.clusters, cluster_id) != rule.clusters.end())) {
      return MarketFactor{.grams = rule.grams, .source = i};
    }
  }
  return std::nullopt;
}

std::optional<MarketFactor> MarketFactors::at(const std::string& cluster_id, std::int64_t ms) {
  const auto [found, fresh] = known_.try_emplace({cluster_id, ms});
  if (fresh) {
    found->second = factor_of(cluster_id, ms);
  }
  return found->second;
}

}  // namespace ceems::api
