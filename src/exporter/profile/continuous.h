#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/profile/debuginfod/debuginfod.h"
#include "exporter/profile/push/config.h"
#include "exporter/profile/push/pusher.h"
#include "exporter/profile/sampler/profile_builder.h"
#include "exporter/profile/sampler/stack_sampler.h"
#include "exporter/unit/process_filter.h"
#include "exporter/unit/unit_source.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

struct ContinuousOptions {
  ProfilerConfig config = {};
  /// Sample only processes with one of these variables. All if empty.
  std::vector<std::string> variables = {};
  bool self = false;  ///< the exporter itself, too
};

struct ProfilerCounters {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;  ///< samples that did not fit into the buffer
  PushCounters push = {};
};

/// Samples the units of one manager all the time and pushes a profile of each process to Pyroscope.
/// Units are found anew every discover_interval; if that fails, the ones before stay.
class ContinuousProfiler {
 public:
  /// Loads the program into the kernel. `source` and `clock` must outlive the object. Errors: any
  /// of StackSampler::create(), Pusher::create() and Debuginfod::create().
  static Result<std::unique_ptr<ContinuousProfiler>> create(ContinuousOptions options,
                                                            UnitSource& source,
                                                            const host::Paths& paths,
                                                            const Clock& clock);

  /// Starts the thread, after privileges were dropped.
  void start();
  [[nodiscard]] ProfilerCounters counters() const CEEMS_EXCLUDES(mutex_);

 private:
  ContinuousProfiler(ContinuousOptions options,
                     UnitSource& source,
                     const host::Paths& paths,
                     const Clock& clock,
                     std::unique_ptr<StackSampler> sampler,
                     std::unique_ptr<Pusher> pusher,
                     std::unique_ptr<Debuginfod> debuginfod);

  void run(const std::stop_token& stop);
  void discover();
  void drain();
  void push();
  [[nodiscard]] std::string uuid_of(const ProfileOwner& owner) const;

  const ContinuousOptions options_;
  UnitSource& source_;
  const host::Paths paths_;
  const Clock& clock_;
  ProcessFilter filter_;
  std::unique_ptr<StackSampler> sampler_;
  std::unique_ptr<Pusher> pusher_;
  std::optional<KernelSymbols> kernel_;
  std::unique_ptr<Debuginfod> debuginfod_;  // null if not configured
  Symbolizer symbolizer_;
  ProfileBuilder builder_;
  /// By the number of their cgroup; those that ended stay until their last profile is pushed.
  std::unordered_map<std::uint64_t, std::string> uuids_;
  std::vector<std::uint64_t> cgroups_;  ///< of the units that exist
  Clock::SystemTime begin_{};           ///< of the profiles that are being made
  bool failing_ = false;
  mutable Mutex mutex_;
  ProfilerCounters counters_ CEEMS_GUARDED_BY(mutex_);
  std::jthread thread_;  // the last member, so that it is joined before the others are destroyed
};

}  // namespace ceems::exporter::profile
