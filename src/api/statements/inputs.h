#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/accounting/bill.h"
#include "api/accounting/options.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "facility/embodied.h"
#include "facility/indicators.h"
#include "facility/meters.h"
#include "statement/document.h"
#include "store/facts.h"
#include "store/nodes.h"
#include "store/reader.h"

namespace ceems::api {

/// What statements are made of, and for which site. The pointers are not null.
struct StatementContext {
  store::Reader* reader = nullptr;
  const AccountingOptions* accounting = nullptr;
  std::optional<double> pue = {};
  std::string site = {};     ///< its name
  std::string cluster = {};  ///< empty: all
  bool one_cluster = false;  ///< the site has no other
  TimeZone zone = {};
  std::int64_t now_ms = 0;
  AskSeries ask = {};   ///< empty: no TSDB is asked
  std::string by = {};  ///< the program with its version
};

/// A year or a month.
struct StatementPeriod {
  std::string name = {};  ///< "2026", "2026-11"
  std::int64_t from_ms = 0, to_ms = 0;
};
/// kInvalidArgument if the text is neither a year nor a month from 1971 to 9998.
Result<StatementPeriod> parse_period(std::string_view name, const TimeZone& zone);

/// A month of the period, until now at most.
struct StatementMonth {
  std::string name = {};
  BillPeriod period = {};
  BillTable table = {};    ///< its parts, without the meter
  double known = 0;        ///< nodes, others and cooling
  bool any_known = false;  ///< any of them
  /// Of the parts: of nodes, of their node-hours.
  double node_coverage = 0, other_coverage = 0, cooling_coverage = 0, known_coverage = 0;
  double billed_share = 0;           ///< of its time
  std::optional<double> meter = {};  ///< of that time
  /// Of that time, if nodes were read in most of it (BillTable::kComparable).
  std::optional<double> known_billed = {}, unexplained = {};
  /// All energy, for which emissions are computed: of the bill or of the meter of facility.yml if
  /// they cover the month, else what is known.
  std::optional<double> energy = {};
  std::string basis = {};  ///< "bill", "meter", "parts", "partial meter"; empty: not known
  double energy_coverage = 0;
  // g/kWh, and kg for `energy`.
  std::optional<double> location = {}, market = {}, losses = {};
  std::string losses_source = {}, losses_date = {};

  /// In milliseconds.
  [[nodiscard]] double length() const { return static_cast<double>(period.to_ms - period.from_ms); }
};

/// A day of a cluster.
struct StatementDay {
  store::UsageOfDay usage = {};
  std::optional<double> market = {};  ///< g/kWh
  std::string market_source = {};
};

/// What a project used.
struct StatementProject {
  std::string name = {};
  double units = 0, core_hours = 0, gpu_hours = 0;
  std::optional<double> kwh = {}, grams = {}, grams_of_kwh = {}, embodied = {};
};

struct StatementInputs {
  StatementContext context = {};
  StatementPeriod period = {};
  std::vector<StatementMonth> months = {};
  std::vector<StatementDay> days = {};
  std::vector<store::NodeDay> node_days = {};
  std::vector<store::Bill> bills = {};
  std::array<facility::Hours, facility::kMeterKinds> meters = {};
  std::array<bool, facility::kMeterKinds> has_meter = {};  ///< facility.yml names one
  std::vector<statement::Source> sources = {};             ///< of the meters
  std::vector<std::string> problems = {};                  ///< meters that could not be read
  facility::HourSpan hours = {};                           ///< of the period until now
  facility::EmbodiedSum embodied = {};
  bool has_embodied = false;
  std::vector<StatementProject> projects = {};  ///< by name

  [[nodiscard]] const facility::Hours& meter(facility::MeterKind kind) const {
    return meters.at(static_cast<std::size_t>(kind));
  }
  /// Not of one of several clusters.
  [[nodiscard]] bool of_site() const;
  /// The part of a day that is in the period and not in the future, as bills count it.
  [[nodiscard]] double part_of(std::int64_t day_ms) const;
};

/// Reads everything. A meter that cannot be read is a problem and not an error. Passes on errors of
/// the reader.
Result<StatementInputs> read_statement_inputs(const StatementContext& context,
                                              const StatementPeriod& period);

}  // namespace ceems::api
