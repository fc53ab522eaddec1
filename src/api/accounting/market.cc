#include "api/accounting/market.h"

#include <algorithm>

#include "base/strings.h"

namespace ceems::api {

MarketFactors::MarketFactors(const std::vector<store::Bill>& bills) {
  constexpr double kKwh = 1e-9;
  constexpr double kGramsOfKg = 1000;
  for (const store::Bill& bill : bills) {
    const auto kg = parse_double(bill.kgco2);
    supplies_.push_back({.cluster_id = bill.cluster_id,
                         .start_ms = bill.start_ms,
                         .end_ms = bill.end_ms,
                         .kwh = static_cast<double>(bill.energy) * kKwh,
                         .grams = kg ? std::optional(*kg * kGramsOfKg) : std::nullopt});
  }
}

std::optional<double> MarketFactors::factor_of(const std::string& cluster_id,
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

std::optional<double> MarketFactors::at(const std::string& cluster_id, std::int64_t ms) {
  const auto [found, fresh] = known_.try_emplace({cluster_id, ms});
  if (fresh) {
    found->second = factor_of(cluster_id, ms);
  }
  return found->second;
}

}  // namespace ceems::api
