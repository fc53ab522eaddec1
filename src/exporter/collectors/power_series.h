#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/collector.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// Watts that a BMC reports; 0 if unknown.
struct PowerValues {
  double current = 0;
  double minimum = 0;  ///< of the BMC's interval, as the next two
  double maximum = 0;
  double average = 0;
};

/// The four power metrics of a BMC, under the names of CEEMS 0.10 (STEM_current_watts), of 0.11 and
/// later (STEM_power_current_watts), or both.
class PowerSeries {
 public:
  /// `helps` are the HELP texts of current, minimum, maximum and average, in this order.
  PowerSeries(PowerNames names,
              std::string_view stem,
              const std::array<std::string, 4>& helps,
              const std::vector<std::string>& labels);

  /// Adds the values that are above 0.
  void add(metrics::Sink& sink,
           const PowerValues& watts,
           std::initializer_list<std::string_view> label_values) const;

 private:
  std::vector<std::array<metrics::Desc, 4>> sets_;  // one for each kind of names
};

}  // namespace ceems::exporter
