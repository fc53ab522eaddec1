#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "export/unit.h"

namespace ceems::exporting {

/// A value of a unit that has ended. The table in docs/export.md has a row for each.
struct Final {
  std::string_view series;         ///< of Prometheus
  std::string_view metric;         ///< of OpenTelemetry; values of one metric are neighbours
  std::string_view unit;           ///< of OpenTelemetry (UCUM)
  double scale = 1;                ///< from the value of the series to that of the metric
  bool sum = false;                ///< it grew from the unit's start on
  std::string_view hardware = {};  ///< hw.type and hw.id
  std::optional<double> (*value)(const ExportedUnit& unit) = nullptr;
};
std::span<const Final> finals();

}  // namespace ceems::exporting
