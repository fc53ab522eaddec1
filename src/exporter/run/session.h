#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporter/run/directory.h"
#include "exporter/run/fanout.h"
#include "exporter/run/job.h"
#include "exporter/run/measurement.h"

namespace ceems::exporter::run {

/// Values of the flags.
struct Options {
  std::string interval = "1s";
  std::string directory;
  std::string name;
  bool report = true;
  std::string fanout = "auto";
  long max_megabytes = 200;
  std::string merge;
  long watch = 0;
  std::string agent;
  std::string skip_node;
  std::string manager;
  std::string job;
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string cgroup = "/sys/fs/cgroup";
  std::chrono::milliseconds period{1000};  ///< `interval`
};

/// What goes on beside a command: the measurement of this node, the agents on the others, and the
/// report. Whatever fails is said in one line on stderr and does not matter to the command. Used by
/// one thread.
class Session {
 public:
  /// `program`: name of the command, for the report of a job without a name.
  Session(Options options, Job job, const std::string& program, std::int64_t begin_ms);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void begin();
  /// Says once what is measured how, and where the data is.
  void announce();
  /// Waits for children that have ended, without blocking.
  void reap(const std::function<void(int pid, int status)>& ended);
  /// Ends the measurement, waits up to a minute for the agents, and writes and prints the report.
  /// Does not return if the file system hangs: it then leaves with the status, or 0 without one.
  void end(std::optional<int> exit_status);

 private:
  Result<> try_begin();
  Result<> start_agents();
  void stop_agents();
  Result<> report();

  const Options options_;
  const Job job_;
  const std::string name_;
  const std::int64_t begin_ms_;
  std::unique_ptr<DataDirectory> directory_;
  std::unique_ptr<Measurement> measurement_;
  std::vector<int> agents_;  // helpers that run
  bool fanned_out_ = false;  // there were agents
  bool announced_ = false;
};

/// Makes the report of a directory again. Returns the exit status.
int merge(const std::string& path);

/// Measures this node for a run on another one, until that ends. Returns the exit status.
int run_agent(const Options& options, Job job);

}  // namespace ceems::exporter::run
