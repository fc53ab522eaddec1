#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tool/validate/record.h"

namespace ceems::tool::validate {

/// A load on certain CPUs.
struct Assignment {
  LoadClass load = LoadClass::kCompute;
  std::vector<int> cpus;  ///< numbers of logical CPUs

  bool operator==(const Assignment&) const = default;
};

/// The loads that run at the same time in one window: one or two.
using Loads = std::vector<Assignment>;

/// The windows with loads, in their order, for a node with these cores (the logical CPUs of each).
/// Every size of a load that runs beside another one runs alone as well, because that shows how the
/// two share what they add. One core gives no mixed loads.
std::vector<Loads> plan_loads(const std::vector<std::vector<int>>& cores);

/// How long the parts of a validation take.
struct Times {
  double load_seconds = 0;    ///< a load is measured
  double idle_seconds = 0;    ///< the idle node before and after it is measured
  double settle_seconds = 0;  ///< left out after each change

  [[nodiscard]] double total(std::size_t loads) const;
};

/// Divides `duration` among so many loads. `settle` as given, or a fifth of a load's time if it is
/// negative. kInvalidArgument, with the shortest duration, if less than three seconds are left for
/// an idle time.
Result<Times> divide(double duration, std::size_t loads, double settle);

}  // namespace ceems::tool::validate
