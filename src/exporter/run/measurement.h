#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/energy/sampler.h"
#include "exporter/gpu/monitor.h"
#include "exporter/marks/ledger.h"
#include "exporter/run/directory.h"
#include "exporter/run/job.h"
#include "exporter/run/job_file.h"
#include "exporter/run/job_source.h"
#include "exporter/run/recorder.h"
#include "host/paths.h"

namespace ceems::exporter::run {

struct MeasurementOptions {
  host::Paths paths = {};
  Job job = {};
  std::string name = {};  ///< of the job or its program
  std::int64_t begin_ms = 0;
  std::chrono::milliseconds interval{1000};
  std::chrono::milliseconds flush{10'000};
  std::uint64_t max_bytes = std::uint64_t{200} << 20U;  ///< of the job file, beyond which it thins
  std::shared_ptr<marks::Ledger> marks = {};            ///< what the job says about itself; or null
};

/// How the energy of the job is known on this node: "GPUs measured, CPUs modelled (RAPL needs root
/// here)". `has_rapl`: the kernel shows RAPL to someone.
std::string describe_energy(const energy::Account& account, bool has_rapl);

/// Measures the job on this node and writes NODE.cjf and NODE.sum in a thread, so that a hanging
/// file system does not delay sampling. tick() and finish() are called by one thread.
class Measurement {
 public:
  /// `directory` and `clock` must outlive it. A failure to write causes no error; failure() reports
  /// it at the end.
  static Result<std::unique_ptr<Measurement>> create(const MeasurementOptions& options,
                                                     const DataDirectory& directory,
                                                     const Clock& clock);
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  /// Starts sampling.
  void start();
  [[nodiscard]] ProcessTree& processes() { return source_->processes(); }
  /// See describe_energy(). Says what is known so far.
  [[nodiscard]] std::string energy();
  /// Takes the last sample and writes everything. False if the file system hangs, after `patience`:
  /// the program must then leave with _exit().
  bool finish(std::optional<int> exit_status,
              std::chrono::milliseconds patience = std::chrono::seconds(10));
  /// Why not everything could be written; empty if it was.
  [[nodiscard]] std::string failure() CEEMS_EXCLUDES(mutex_);

 private:
  Measurement(const MeasurementOptions& options,
              const DataDirectory& directory,
              const Clock& clock);
  void write(const std::stop_token& stop) CEEMS_EXCLUDES(mutex_);
  void flush() CEEMS_EXCLUDES(mutex_);
  void try_flush() CEEMS_EXCLUDES(mutex_);
  void look_at_ranks();
  void note(const Result<>& result) CEEMS_EXCLUDES(mutex_);

  const MeasurementOptions options_;
  const DataDirectory& directory_;
  const std::string file_name_;  // of the node, without an ending
  const bool has_rapl_;
  std::shared_ptr<JobSource> source_;
  std::shared_ptr<gpu::Monitor> monitor_;  // null without GPUs
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<energy::Sampler> sampler_;
  std::unique_ptr<JobFileWriter> file_;  // used by the writer
  std::uint64_t next_limit_ = 0;         // the same
  std::uint64_t stride_ = 1;             // the same

  Mutex mutex_;
  Condition wake_;
  std::string failure_ CEEMS_GUARDED_BY(mutex_);
  bool done_ CEEMS_GUARDED_BY(mutex_) = false;
  std::jthread writer_;
};

}  // namespace ceems::exporter::run
