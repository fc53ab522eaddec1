#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tool/validate/page.h"
#include "tool/validate/plan.h"
#include "tool/validate/record.h"

namespace ceems::tool::validate {

/// A reading of the reference meter.
struct WattReading {
  double time = 0;  ///< UNIX seconds
  double watts = 0;
};

/// Busy and all CPU time since boot, in any unit.
struct CpuUse {
  double busy = 0;
  double all = 0;
};

/// The node on which loads run, with its exporter and its reference meter; tests replace it. Used
/// by one thread.
class TestedNode {
 public:
  virtual ~TestedNode() = default;
  virtual double now() = 0;  ///< UNIX seconds
  /// Waits, and reads the meter meanwhile. kUnavailable after a signal that ends the program.
  virtual Result<> wait(double seconds) = 0;
  virtual Result<ExporterPage> page() = 0;
  virtual Result<CpuUse> cpu_use() = 0;
  /// Starts a load that the exporter shows as the unit `uuid`.
  virtual Result<> start(const std::string& uuid, const Assignment& load) = 0;
  /// Ends the load. kUnavailable if it had ended by itself.
  virtual Result<> stop(const std::string& uuid) = 0;
  /// All readings of the meter up to now, sorted by time; asked for once, at the end.
  virtual Result<std::vector<WattReading>> readings() = 0;
  /// The processes that use most CPU time since the last call, "12 % make (pid 17), ...".
  virtual std::string busiest() = 0;
};

struct RunOptions {
  Times times;
  std::string prefix = "load";  ///< of the names of units, which end in a number
  /// Other processes may use this fraction of the CPU time of the idle node; more is an error.
  double max_busy = 0.05;
  /// Called before each window with its number, from 0, and what runs in it.
  std::function<void(std::size_t window, const std::string& name)> progress;
};

/// Runs the loads one after the other with idle times between them, and returns the windows with
/// their powers. Loads are stopped whatever happens. Errors: any of the node; kUnavailable for a
/// busy node, an exporter that does not show a load, or a meter with fewer than three readings in a
/// step.
Result<std::vector<Window>> run_loads(TestedNode& node,
                                      const std::vector<Loads>& plan,
                                      int cpus,
                                      const RunOptions& options);

}  // namespace ceems::tool::validate
