// The meter of a whole node, as a BMC shows it.
#pragma once

#include <deque>
#include <optional>
#include <string_view>

#include "energy/node.h"

namespace ceems::bench::energy {

/// Which meters a node has.
struct MeterSet {
  std::string_view name;
  bool packages = true;
  bool dram = true;
  double wall_period =
      0;  ///< seconds between two values of the meter of the node; 0: there is none
  double wall_window = 0;  ///< seconds of which a value is the average; 0: the whole period
  double wall_delay = 0;   ///< seconds from the end of that time until the value is shown
  /// Between these times, in seconds since the exporter started, it shows the same value.
  double stuck_from = 0;
  double stuck_until = 0;
};

/// What the meter of the whole node shows, in whole watts.
class WallMeter {
 public:
  WallMeter(const Node& node, const MeterSet& meters);
  /// Call it every 0.05 s.
  void advance(const Node& node);
  /// Nothing before its first value.
  [[nodiscard]] std::optional<double> watts() const { return shown_; }

 private:
  struct Value {
    double watts = 0;
    double time = 0;
  };
  struct Mark {
    double time = 0;
    double joules = 0;
  };
  MeterSet meters_;
  double window_;
  double start_;
  double next_mark_;
  double next_value_;
  std::deque<Mark> marks_;  // of the last window, a second apart
  std::deque<Value> coming_;
  std::optional<double> shown_;
};

}  // namespace ceems::bench::energy
