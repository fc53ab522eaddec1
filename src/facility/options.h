#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "config/yaml.h"
#include "facility/meters.h"

namespace ceems::facility {

/// A meter, and where it is read: exactly one of file, counter and power.
struct Meter {
  MeterKind kind = MeterKind::kTotal;
  std::string name = {};
  std::string file = {};      ///< parse_meter_file()
  std::int64_t every_ms = 0;  ///< the intervals of the file
  std::string counter = {};   ///< a series that grows, in kWh or m³ after `scale`
  std::string power = {};     ///< PromQL for watts
  std::string cluster = {};   ///< whose TSDB has the series; empty: the first
  double scale = 1;           ///< the values of the series times this
  std::string category = {};  ///< where the meter of the IT is, in words of the site

  /// PromQL for the amount in the hour before a moment. Empty for a file.
  [[nodiscard]] std::string hourly_query() const;
};

/// A factor for the losses of transmission and distribution (GHG Protocol, scope 3 category 3).
struct LossFactor {
  std::int64_t from_ms = std::numeric_limits<std::int64_t>::min();
  std::int64_t to_ms = std::numeric_limits<std::int64_t>::max();  ///< not included
  double grams = 0;                                               ///< per kWh that is bought
  std::string source = {}, date = {};
};

struct FacilityOptions {
  std::vector<Meter> meters = {};
  std::vector<LossFactor> losses = {};
  /// What a site states about itself, by the name of a DeclaredField.
  std::vector<std::pair<std::string, double>> declared = {};

  [[nodiscard]] std::optional<double> declared_value(std::string_view name) const;
};

/// A field of the EU's report (annex II) that only the site can state, as a member of `declared`.
struct DeclaredField {
  std::string_view name, label, unit;
  bool of_it = false;  ///< of ICT capacity and traffic; else of energy and the building
};
std::span<const DeclaredField> declared_fields();

/// Reads facility.yml (docs/report-your-year.md). File names are relative to `directory`.
/// kInvalidArgument with file, line and key.
Result<FacilityOptions> read_facility(const config::Node& document,
                                      const std::string& directory,
                                      const TimeZone& zone);

}  // namespace ceems::facility
