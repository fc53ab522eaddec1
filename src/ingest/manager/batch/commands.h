#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_cutter.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/config.h"
#include "ingest/manager/manager.h"
#include "os/command.h"

namespace ceems::ingest {

/// Options that the managers of batch systems share; extra_config.
struct BatchOptions {
  std::chrono::milliseconds timeout{std::chrono::minutes(5)};
  /// Zone of the times that the commands print and are given; empty: they get TZ=UTC and use that.
  std::string time_zone = {};
  bool members = true;  ///< the users of a project's jobs are its members
};

/// Reads the keys `command_timeout`, `time_zone` and `members` of extra_config. kInvalidArgument
/// with file and line.
Result<> read_batch_options(const config::Node& extra, BatchOptions& options);

/// The commands of one batch system. They run as the current user. Not thread-safe.
class BatchCommands {
 public:
  /// kNotFound if `cli.path` is not set and `program` is not in PATH, or if `cli.path` does not
  /// exist; kInvalidArgument for an unknown time zone.
  static Result<BatchCommands> create(const ClusterConfig& config,
                                      const BatchOptions& options,
                                      std::string_view program,
                                      const std::map<std::string, std::string>& environment,
                                      os::CommandRunner& runner);

  using Line = std::function<Result<>(std::string_view)>;
  /// Runs a command and passes on its output line by line. An exit status other than 0 is an error,
  /// because the output may be incomplete, and so is a complaint on standard error (complaint.h):
  /// the command's own messages ("qstat: ...") and failed calls of LSF's library, but not that a
  /// job is unknown or that the command waited for the server. Unless the message is `nothing`:
  /// then there is no output.
  Result<> run(const std::string& program,
               std::vector<std::string> arguments,
               const Line& line,
               const std::stop_token& stop,
               std::string_view nothing = {});

  /// Logs when records of a command's output begin to be unreadable, with the first of them, and
  /// when all are readable again.
  void note_left_out(const std::string& program, std::size_t records, const std::string& first);
  /// The same for the elements of a JSON document. kParse if none was readable.
  Result<> note_left_out(const std::string& program, const JsonCutter& cutter);

  [[nodiscard]] const TimeZone& zone() const { return zone_; }
  [[nodiscard]] const std::string& cluster_id() const { return cluster_id_; }

 private:
  BatchCommands(os::CommandRunner& runner, std::string cluster_id)
      : runner_(&runner), cluster_id_(std::move(cluster_id)) {}
  bool changed(const std::string& trouble, bool there);

  os::CommandRunner* runner_;
  std::string cluster_id_;
  std::filesystem::path directory_;
  std::map<std::string, std::string> environment_;
  std::chrono::milliseconds timeout_{};
  TimeZone zone_;
  std::set<std::string> troubles_;
};

}  // namespace ceems::ingest
