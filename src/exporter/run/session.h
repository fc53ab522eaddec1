#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/run/directory.h"
#include "exporter/run/fanout.h"
#include "exporter/run/job.h"
#include "exporter/run/mark_socket.h"
#include "exporter/run/measurement.h"

namespace ceems::exporter::run {

/// The file by which agents and runs in the background are asked to stop.
inline constexpr std::string_view kStopFile = "stop";

/// Values of the flags.
struct Options {
  std::string interval = "1s";
  std::string directory;
  std::string name;
  bool report = true;
  std::string fanout = "auto";
  long max_megabytes = 200;
  std::string merge;
  bool marks = true;
  std::string watch;
  bool start = false;
  bool stop = false;
  std::string agent;
  std::string skip_node;
  std::string manager;
  std::string job;
  std::string mark_socket;
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
  /// `program`: name of the command, for the report of a job without a name. `marks` may be null.
  Session(Options options,
          Job job,
          const std::string& program,
          std::unique_ptr<MarkSocket> marks,
          std::int64_t begin_ms);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void begin();
  /// Where the data goes; empty if nothing is measured.
  [[nodiscard]] std::string measured_directory() const;
  /// Whether stop_in_background() was called for it.
  [[nodiscard]] bool asked_to_stop() const { return directory_->has(std::string(kStopFile)); }
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
  std::unique_ptr<MarkSocket> marks_;
  std::unique_ptr<DataDirectory> directory_;
  std::unique_ptr<Measurement> measurement_;
  std::vector<int> agents_;  // helpers that run
  bool fanned_out_ = false;  // there were agents
  bool announced_ = false;
};

/// The directory of a run without --dir, before a number is added to it.
std::string default_directory(const Options& options, const Job& job);

/// The socket for marks of the job: `path` or, if it is empty, in a new directory. Null if the job
/// is not to send any, or if it cannot be made, which is said in one line.
std::unique_ptr<MarkSocket> open_marks(const Options& options,
                                       const Job& job,
                                       const std::string& path);

/// Makes the report of a directory again. Returns the exit status.
int merge(const std::string& path);

/// Measures this node for a run on another one, until that ends. Returns the exit status.
int run_agent(const Options& options, Job job);

}  // namespace ceems::exporter::run
