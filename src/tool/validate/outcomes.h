#pragma once

#include <string>
#include <vector>

#include "tool/validate/record.h"

namespace ceems::tool::validate {

/// A load, one of two loads at the same time, or an idle time, with means in watts.
///
/// What a load is due is the yardstick of docs/energy-validation.md for units without a
/// reservation: the idle power at the wall times its part of the CPUs, and what it adds at the
/// wall. Two loads at the same time share what they added as they do alone. An idle node is due
/// what the wall meter says, and charged what the exporter says that the node draws.
struct Outcome {
  LoadClass load = LoadClass::kIdle;
  std::string name;        ///< "compute, 8 CPUs"
  double idle = 0;         ///< at the wall, without the load
  double added = 0;        ///< at the wall, by the load
  double uncertainty = 0;  ///< standard error of what all loads of the window added
  double due = 0;
  double charged = 0;
  double seen = 1;  ///< the node's power by the exporter, as a fraction of that at the wall

  [[nodiscard]] double percent() const { return 100 * (charged / due - 1); }
  /// The error if the node drew what the exporter's meters say: how well the energy is split.
  [[nodiscard]] double share_percent() const { return 100 * (charged / (due * seen) - 1); }
};

/// "compute, 8 CPUs"; "compute, 8 CPUs beside memory-bound, 8 CPUs"; "idle".
std::string name_of(const std::vector<Part>& parts, std::size_t part);

/// The outcomes of all windows, in their order. kInvalidArgument if a load is due nothing, because
/// the node drew more when it was idle.
Result<std::vector<Outcome>> outcomes_of(const Record& record);

/// The errors of the classes that ran, rounded to a tenth, and at the end that of all loads.
std::vector<ClassError> errors_of(const std::vector<Outcome>& outcomes);

/// Why a record is not evidence for other nodes of its kind, one sentence each: too short, not
/// idle, a virtual machine, the exporter's own meter, a meter with too few readings.
std::vector<std::string> shortcomings_of(const Record& record);

}  // namespace ceems::tool::validate
