#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/nodes.h"

namespace ceems::api {

/// The energy behind a series of watts, in a period.
struct SeriesEnergy {
  double kwh = 0;
  double covered = 0;  ///< share of the period that has values; the rest counts as their mean
};

/// A half-open period, without its end.
struct BillPeriod {
  std::int64_t from_ms = 0, to_ms = 0;
};
/// Milliseconds that both have; 0 if there are none.
std::int64_t overlap(const BillPeriod& a, const BillPeriod& b);
/// The part of a day of the zone, which begins at `day_ms`, that is in the period.
double part_of_day(std::int64_t day_ms, const BillPeriod& period, const TimeZone& zone);

/// The sum of a query's series at each step, by the TSDB of a cluster (empty: the first that has
/// one).
using AskSeries =
    std::function<Result<std::vector<std::pair<std::int64_t, double>>>(const std::string& cluster,
                                                                       const std::string& query,
                                                                       std::int64_t from_ms,
                                                                       std::int64_t to_ms,
                                                                       std::chrono::milliseconds)>;

/// The energy behind a query for watts. Nothing without a query, or if nothing is known of it.
std::optional<SeriesEnergy> energy_of(const AskSeries& ask,
                                      const std::string& cluster,
                                      const std::string& query,
                                      const BillPeriod& period,
                                      std::int64_t now_ms);

/// The bills of a cluster, or of the site if `cluster` is empty. Where there is one cluster
/// (`only_cluster`), the bills of the site are its own.
std::vector<store::Bill> bills_of(std::vector<store::Bill> bills,
                                  const std::string& cluster,
                                  bool only_cluster);

/// What the meter of the utility says of a month.
struct MeterReading {
  BillPeriod period = {};  ///< that of the bills; the month where they are of other times
  std::optional<double> kwh = {};
  bool in_proportion = false;  ///< a part of longer bills
  std::vector<store::Bill> bills = {};
};
/// The bills with more than half of their period in the month; otherwise the parts of bills that
/// together cover it.
MeterReading read_meter(const std::vector<store::Bill>& bills, const BillPeriod& month);

/// A row of the table. What is not known is absent.
struct BillPart {
  std::string part = {};
  std::optional<double> kwh = {}, share = {}, billed_kwh = {};
  std::string how = {};  ///< "measured", "derived", "modelled", "configured"; empty: not known
};

/// What may explain the difference, by what it is estimated to be.
struct BillHint {
  std::string kind = {};  ///< "uncovered_nodes", "modelled_nodes", "psu_losses", "bill_clock"
  double kwh = 0;
  double hours = 0;  ///< of nodes without readings
};

struct DayOfBill {
  std::int64_t day_ms = 0;
  double active = 0, reserved_idle = 0, system = 0, unallocated = 0;
};

struct BillInput {
  MeterReading meter = {};
  std::int64_t now_ms = 0;
  TimeZone zone = {};
  std::vector<store::NodeDay> days = {};
  std::vector<store::KnownNode> nodes = {};
  std::optional<SeriesEnergy> other = {}, cooling = {};
  std::optional<double> pue = {};
  bool billed = false;  ///< also scale the parts to the meter
};

struct BillTable {
  static constexpr double kComparable = 0.8;
  BillPeriod period = {};
  /// active, reserved_idle, system, unallocated, nodes (their sum), other, cooling, unexplained,
  /// meter.
  std::vector<BillPart> parts = {};
  std::optional<double> coverage = {};  ///< node-hours with readings, of all
  /// Part of the hours of the period in which nodes were read. Below kComparable the meter, which
  /// counts all hours, is not set against them: shares are parts of what is known, and there is
  /// neither a factor nor anything unexplained.
  std::optional<double> hours = {};
  std::optional<double> measured = {};  ///< share of the energy of nodes that a meter measured
  std::size_t nodes = 0;                ///< that were seen in the period
  std::optional<double> factor = {};    ///< meter by all that is known
  std::vector<BillHint> hints = {};
  std::vector<DayOfBill> days = {};

  /// The energy of a part; nothing if it is not known.
  [[nodiscard]] std::optional<double> kwh(std::string_view part) const;
};

/// Adds up the table. Days at the ends of the period count in proportion to their time in it.
BillTable make_bill(const BillInput& input);

}  // namespace ceems::api
