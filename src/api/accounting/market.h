#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/nodes.h"

namespace ceems::api {

/// Market-based emission factors: what suppliers say of the electricity that they sold (GHG
/// Protocol Scope 2 Guidance, chapter 4.1), from the column `kgco2_market` of imported bills. Not
/// thread-safe.
class MarketFactors {
 public:
  explicit MarketFactors(const std::vector<store::Bill>& bills);

  /// g CO2e per kWh at a moment: of the cluster's bills for that time, else of the site's. Nothing
  /// where there is no bill, or where one of them does not say its emissions.
  std::optional<double> at(const std::string& cluster_id, std::int64_t ms);

 private:
  struct Supply {
    std::string cluster_id;
    std::int64_t start_ms, end_ms;
    double kwh;
    std::optional<double> grams;
  };
  [[nodiscard]] std::optional<double> factor_of(const std::string& cluster_id,
                                                std::int64_t ms) const;

  std::vector<Supply> supplies_;
  /// Rows of usage are of few days and clusters, but of many users.
  std::map<std::pair<std::string, std::int64_t>, std::optional<double>> known_;
};

}  // namespace ceems::api
