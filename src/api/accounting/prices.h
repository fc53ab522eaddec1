#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/site.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "config/yaml.h"

namespace ceems::api {

/// The hours of a time-of-use price: on these days, local time, from one minute of the day to
/// another. If they do not follow each other, the hours reach over midnight.
struct PriceHours {
  std::array<bool, 7> days = {true, true, true, true, true, true, true};  ///< from Monday
  int from_minute = 0, to_minute = 0;
  double kwh = 0;
};

/// What a kWh costs from a moment on.
struct PriceRule {
  std::int64_t from_ms = std::numeric_limits<std::int64_t>::min();
  std::vector<std::string> clusters = {};  ///< empty: all
  /// The price outside `hours`, or where the series has no value.
  std::optional<double> otherwise = {};
  std::vector<PriceHours> hours = {};  ///< the first that holds counts
  TimeZone zone = {};                  ///< of `hours`
  std::string query = {};              ///< PromQL for the price; empty: not a series
  std::string series_cluster = {};     ///< whose TSDB has the series; empty: the first
};

/// What energy and time cost, in the currency of the site.
struct PriceOptions {
  std::vector<PriceRule> rules = {};  ///< of those that hold at a moment, the last one counts
  std::optional<double> core_hour = {}, gpu_hour = {};
  double pue = 1;  ///< energy is multiplied by it

  [[nodiscard]] bool any() const { return !rules.empty() || core_hour || gpu_hour; }
  /// Whether a price is a series of a TSDB.
  [[nodiscard]] bool in_tsdb() const;
  /// Whether a kWh costs the same at all times and everywhere, or nothing.
  [[nodiscard]] bool constant() const;
};

/// Reads prices.yml (docs/budgets-and-bills.md). Dates and hours are of `zone` where the file names
/// no other. kInvalidArgument with file, line and key.
Result<PriceOptions> read_prices(const config::Node& document, const TimeZone& zone);
/// The prices of the block `ui` of the configuration file, which are constant.
PriceOptions prices_of(const SiteOptions& site);

/// Values of a series: the moment from which each holds, in ascending order.
using PriceSeries = std::vector<std::pair<std::int64_t, double>>;
/// Asks for a series: the rule, from, to and step. A value holds for a step.
using AskPrices = std::function<Result<PriceSeries>(const PriceRule& rule,
                                                    std::int64_t from_ms,
                                                    std::int64_t to_ms,
                                                    std::chrono::milliseconds step)>;

/// The price of a kWh of one cluster over time. Not thread-safe.
class PriceCurve {
 public:
  /// `options` must outlive it.
  PriceCurve(const PriceOptions& options, std::string cluster, AskPrices ask)
      : options_(&options), cluster_(std::move(cluster)), ask_(std::move(ask)) {}

  /// The mean price from one moment to another, by time: what falls on both sides of a change of
  /// the price is divided there. Nothing if the price of a part is not known.
  std::optional<double> mean(std::int64_t from_ms, std::int64_t to_ms);

 private:
  /// A price that holds until the next piece.
  struct Piece {
    std::int64_t from_ms = 0;
    std::optional<double> kwh = {};
    double sum_before = 0;            ///< price times ms of the pieces before
    std::int64_t unknown_before = 0;  ///< ms without a price before
  };

  [[nodiscard]] const PriceRule* rule_at(std::int64_t ms) const;
  void build(std::int64_t from_ms, std::int64_t to_ms);
  void add_rule(const PriceRule& rule, std::int64_t from_ms, std::int64_t to_ms);
  void add_hours(const PriceRule& rule, std::int64_t from_ms, std::int64_t to_ms);
  void add_series(const PriceRule& rule, std::int64_t from_ms, std::int64_t to_ms);
  void add(std::int64_t from_ms, std::optional<double> kwh);
  /// Price times ms up to a moment, and ms without a price.
  [[nodiscard]] std::pair<double, std::int64_t> sum_to(std::int64_t ms) const;

  const PriceOptions* options_;
  std::string cluster_;
  AskPrices ask_;
  int asked_ = 0;
  std::int64_t from_ms_ = 0, to_ms_ = 0;  ///< what `pieces_` covers
  std::vector<Piece> pieces_;
};

/// What units and days cost, for one answer. Not thread-safe.
class Costs {
 public:
  /// `options` must outlive it.
  Costs(const PriceOptions& options, AskPrices ask) : options_(&options), ask_(std::move(ask)) {}

  [[nodiscard]] bool any() const { return options_->any(); }
  [[nodiscard]] bool constant() const { return options_->constant(); }
  /// Whether energy has a price.
  [[nodiscard]] bool of_energy() const { return !options_->rules.empty(); }
  /// The cost of the use between two moments, as if at constant power. Nothing if there is no
  /// price, or if energy has a price and either of them is unknown.
  std::optional<double> of(const std::string& cluster,
                           std::int64_t from_ms,
                           std::int64_t to_ms,
                           std::optional<double> kwh,
                           double core_hours,
                           double gpu_hours);
  /// The mean price of a kWh without PUE.
  std::optional<double> price(const std::string& cluster, std::int64_t from_ms, std::int64_t to_ms);

 private:
  const PriceOptions* options_;
  AskPrices ask_;
  std::map<std::string, PriceCurve> curves_;
};

}  // namespace ceems::api
