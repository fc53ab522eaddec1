#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "ingest/config.h"
#include "model/unit.h"

namespace ceems::ingest {

struct UpdateRequest {
  model::Window window;
  /// Only these parts, by the names of Missing::parts; empty: all.
  std::vector<std::string> parts = {};
  /// The source calls its answers incomplete for so long that such answers are better than none.
  bool accept_incomplete = false;
};

/// What an updater could not find out, by part: the unit's metrics do not hold anything of it.
struct Missing {
  /// "avg_cpu_usage.global": a sub-metric; "avg_cpu_usage.*": a whole metric;
  /// "total_time_seconds.used_cputime"; "*": everything. Sorted, no repeats.
  std::vector<std::string> parts = {};
  Error cause = {};  ///< of the first
  /// Every part was refused by the source; asking the same again soon is of no use.
  bool lasting = false;
};

/// Adds metrics of the window to units, in place. Called from one thread at a time.
class Updater {
 public:
  virtual ~Updater() = default;
  /// Gives what is missing. An error means everything; the units may then be changed in part and
  /// must be thrown away.
  virtual Result<Missing> update(const UpdateRequest& request,
                                 std::vector<model::Unit>& units,
                                 std::stop_token stop) = 0;
  /// Every window up to here is written and has all its metrics (epoch ms), so an updater may let
  /// go of what it kept for them. From the thread that calls update().
  virtual void release(std::int64_t /*complete_ms*/, const std::stop_token& /*stop*/) {}
  /// Whether it replaces this metric of updaters before it.
  [[nodiscard]] virtual bool gives(model::Metric /*metric*/) const { return false; }
  /// How long after its end a window must be left alone until everything that belongs to it can be
  /// queried. Thread-safe; may change between calls.
  [[nodiscard]] virtual std::chrono::milliseconds settle() const {
    return std::chrono::milliseconds(0);
  }
  /// Windows that are shorter have less metrics; the loop avoids them. Thread-safe; may change.
  [[nodiscard]] virtual std::chrono::milliseconds shortest_window() const {
    return std::chrono::milliseconds(0);
  }
};

struct UpdaterSpec {
  std::string kind;
  std::function<Result<std::unique_ptr<Updater>>(const UpdaterConfig&, const Clock&)> create;
};
std::vector<UpdaterSpec> all_updaters();
/// Of the configured kind. kInvalidArgument and kParse name what is wrong with the configuration.
Result<std::unique_ptr<Updater>> make_updater(const UpdaterConfig& config, const Clock& clock);

}  // namespace ceems::ingest
