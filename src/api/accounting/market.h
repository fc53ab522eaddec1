#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "config/yaml.h"
#include "store/nodes.h"

namespace ceems::api {

/// A factor that the site configures, such as that of certificates it has bought.
struct MarketRule {
  std::int64_t from_ms = std::numeric_limits<std::int64_t>::min();
  std::int64_t to_ms = std::numeric_limits<std::int64_t>::max();  ///< not included
  std::vector<std::string> clusters = {};                         ///< empty: all
  double grams = 0;                                               ///< per kWh
  std::string source = {};  ///< what proves it, for readers of the figures
};

/// Reads one item of the list `accounting.market` (docs/budgets-and-bills.md). Dates are of `zone`.
/// kInvalidArgument with file, line and key.
Result<MarketRule> read_market_rule(const config::Node& node, const TimeZone& zone);

/// A market-based emission factor, and where it comes from.
struct MarketFactor {
  static constexpr std::size_t kBills = std::numeric_limits<std::size_t>::max();
  double grams = 0;             ///< per kWh
  std::size_t source = kBills;  ///< or the index of a rule
  bool operator==(const MarketFactor&) const = default;
};

/// Market-based emission factors: what suppliers say of the electricity that they sold (GHG
/// Protocol Scope 2 Guidance, chapter 4.1), from the column `kgco2_market` of imported bills; where
/// no bill says it, what the site has configured. Not thread-safe.
class MarketFactors {
 public:
  /// `rules` must outlive it.
  MarketFactors(const std::vector<store::Bill>& bills, const std::vector<MarketRule>& rules);

  /// The factor at a moment: of the cluster's bills for that time, else of the site's. If there is
  /// none, or if one of them does not say its emissions, that of the last rule that holds.
  std::optional<MarketFactor> at(const std::string& cluster_id, std::int64_t ms);

 private:
  struct Supply {
    std::string cluster_id;
    std::int64_t start_ms, end_ms;
    double kwh;
    std::optional<double> grams;
  };
  [[nodiscard]] std::optional<double> billed_factor(const std::string& cluster_id,
                                                    std::int64_t ms) const;
  [[nodiscard]] std::optional<MarketFactor> factor_of(const std::string& cluster_id,
                                                      std::int64_t ms) const;

  std::vector<Supply> supplies_;
  const std::vector<MarketRule>* rules_;
  /// Rows of usage are of few days and clusters, but of many users.
  std::map<std::pair<std::string, std::int64_t>, std::optional<MarketFactor>> known_;
};

}  // namespace ceems::api
