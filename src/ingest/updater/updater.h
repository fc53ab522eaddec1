#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "ingest/config.h"
#include "model/unit.h"

namespace ceems::ingest {

struct UpdateRequest {
  model::Window window;
  /// Only these parts, which this updater returned as missing before. Empty: all parts.
  std::vector<std::string> parts = {};
  /// Accept answers that the source itself calls incomplete, because it has done so for too long.
  bool accept_incomplete = false;
};

/// The parts that an updater could not obtain. The units have no values for them.
struct Missing {
  /// A sub-metric ("avg_cpu_usage.global"), a whole metric ("avg_cpu_usage.*"), a time
  /// ("total_time_seconds.used_cputime") or everything ("*"). Sorted, without repetitions.
  std::vector<std::string> parts = {};
  Error cause = {};  ///< of the first part
  /// The source rejected every part, so an early retry is useless.
  bool lasting = false;
};

/// Adds the metrics of a window to its units. Called from one thread at a time.
class Updater {
 public:
  virtual ~Updater() = default;
  /// Changes the units in place and returns what is missing. After an error everything is missing:
  /// the caller must discard the units, which may have been changed in part. For a gap, the units
  /// have only what Writer::gap_units() returns. `stop` ends the call early with an error; a
  /// request to a TSDB that is under way ends by the caller's tsdb::CancelScope.
  virtual Result<Missing> update(const UpdateRequest& request,
                                 std::vector<model::Unit>& units,
                                 std::stop_token stop) = 0;
  /// All windows that end at or before `complete_ms` (epoch ms) have been written with all their
  /// metrics. The updater may drop what it kept for them. Called from the thread that calls
  /// update().
  virtual void release(std::int64_t /*complete_ms*/) {}
  /// Whether it replaces this metric of earlier updaters. An updater that only adds to a metric of
  /// another one returns false. It must keep to totals: when a gap is filled, only the updater that
  /// left it runs again, and its values are added to the stored ones.
  [[nodiscard]] virtual bool gives(model::Metric /*metric*/) const { return false; }
  /// How long after its end a window may be updated at the earliest, because its last samples take
  /// time to arrive. Thread-safe; the value may change between calls.
  [[nodiscard]] virtual std::chrono::milliseconds settle() const {
    return std::chrono::milliseconds(0);
  }
  /// Shorter windows have fewer metrics, so the update loop avoids them. Thread-safe; the value may
  /// change between calls.
  [[nodiscard]] virtual std::chrono::milliseconds shortest_window() const {
    return std::chrono::milliseconds(0);
  }
};

/// Everything that describes one kind of updater: an entry of all_updaters().
struct UpdaterSpec {
  /// Value of updaters[].updater, and the name of its row and section in docs/api/updaters.md.
  std::string name;
  std::string source;        ///< where its metrics come from; a Markdown cell of that row
  bool needs_url = false;    ///< without updaters[].web.url it is disabled, with a warning
  bool web_is_tsdb = false;  ///< whether updaters[].web is a TSDB with metrics of the units
  std::vector<std::string_view> extra_keys = {};  ///< keys of extra_config; others are rejected
  std::function<Result<std::unique_ptr<Updater>>(const UpdaterConfig&, const Clock&)> create;
};

const std::vector<UpdaterSpec>& all_updaters();
/// Returns null for an unknown name.
const UpdaterSpec* find_updater(std::string_view name);

/// Checks the configuration against the spec and creates the updater. kInvalidArgument with file
/// and line for unknown keys of extra_config; other errors come from spec.create.
Result<std::unique_ptr<Updater>> create_updater(const UpdaterSpec& spec,
                                                const UpdaterConfig& config,
                                                const Clock& clock);

}  // namespace ceems::ingest
