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
  /// Only these parts, by the names of Missing::parts; empty: all.
  std::vector<std::string> parts = {};
  /// The source has called its answers incomplete for so long that they are better than none.
  bool accept_incomplete = false;
};

/// What an updater could not find out, by part: the units hold nothing of these parts.
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
  /// Returns what is missing. After an error everything is; the units may then be changed in part
  /// and must be thrown away.
  virtual Result<Missing> update(const UpdateRequest& request,
                                 std::vector<model::Unit>& units,
                                 std::stop_token stop) = 0;
  /// Every window up to here (epoch ms) is written and has all its metrics, so an updater may drop
  /// what it kept for them. Called from the thread that calls update().
  virtual void release(std::int64_t /*complete_ms*/, const std::stop_token& /*stop*/) {}
  /// Whether it replaces this metric of updaters before it.
  [[nodiscard]] virtual bool gives(model::Metric /*metric*/) const { return false; }
  /// How long after its end a window must be left alone until everything that belongs to it can be
  /// queried. Thread-safe; may change between calls.
  [[nodiscard]] virtual std::chrono::milliseconds settle() const {
    return std::chrono::milliseconds(0);
  }
  /// Windows that are shorter have fewer metrics; the loop avoids them. Thread-safe; may change.
  [[nodiscard]] virtual std::chrono::milliseconds shortest_window() const {
    return std::chrono::milliseconds(0);
  }
};

/// Everything that describes one kind of updater: an entry of all_updaters().
struct UpdaterSpec {
  /// Value of updaters[].updater, and the name of its row and section in docs/api/updaters.md.
  std::string name;
  std::string source;        ///< where its metrics come from; a cell of that row, as Markdown
  bool needs_url = false;    ///< without updaters[].web.url it is disabled, with a warning
  bool web_is_tsdb = false;  ///< updaters[].web is the client of a TSDB with metrics of the units
  std::vector<std::string_view> extra_keys = {};  ///< keys of extra_config; others are refused
  std::function<Result<std::unique_ptr<Updater>>(const UpdaterConfig&, const Clock&)> create;
};

const std::vector<UpdaterSpec>& all_updaters();
/// Null for unknown names.
const UpdaterSpec* find_updater(std::string_view name);

/// Checks the configuration against the spec and creates the updater. kInvalidArgument with file
/// and line for unknown keys of extra_config; other errors are those of spec.create.
Result<std::unique_ptr<Updater>> create_updater(const UpdaterSpec& spec,
                                                const UpdaterConfig& config,
                                                const Clock& clock);

}  // namespace ceems::ingest
