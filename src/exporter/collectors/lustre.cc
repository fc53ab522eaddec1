#include "host/lustre.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/collector.h"
#include "exporter/collectors/lustre_jobs.h"
#include "exporter/source/privileged_open.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr const char* kMaxJobsFlag = "collector.lustre.max-jobs";
constexpr const char* kJobIdFlag = "collector.lustre.job-id";
constexpr const char* kManagerFlag = "collector.lustre.manager";
constexpr const char* kRpcFlag = "collector.lustre.rpc-stats";

constexpr long kMaxMaxJobs = 20'000;
constexpr std::size_t kMaxStatsSize = std::size_t{256} << 10U;
/// A job takes 1 to 3 KiB of a list.
constexpr std::size_t kMaxJobListSize = std::size_t{64} << 20U;
constexpr std::size_t kMaxManager = 64;
constexpr double kMicroseconds = 1e6;  ///< of a second

/// The operations of `llite` that have a series, under Lustre's names.
constexpr std::array<std::string_view, 26> kClientOperations{
    "open",      "close",    "mmap",      "seek",        "fsync",
    "readdir",   "setattr",  "truncate",  "flock",       "getattr",
    "fallocate", "create",   "link",      "unlink",      "symlink",
    "mkdir",     "rmdir",    "mknod",     "rename",      "statfs",
    "setxattr",  "getxattr", "listxattr", "removexattr", "inode_permission",
    "page_fault"};

metrics::Desc lustre_desc(const char* stem,
                          const char* help,
                          const std::vector<std::string>& more = {},
                          metrics::Type type = metrics::Type::kCounter) {
  std::vector<std::string> labels{"hostname", "filesystem"};
  labels.insert(labels.end(), more.begin(), more.end());
  return {std::string("ceems_lustre_") + stem, help, type, std::move(labels)};
}

metrics::Desc make_job_desc(const char* stem,
                            const char* help,
                            const std::vector<std::string>& more = {}) {
  std::vector<std::string> labels{"targets", "manager", "uuid", "jobid"};
  labels.insert(labels.end(), more.begin(), more.end());
  return lustre_desc(stem, help, labels);
}

const char* targets_of(bool metadata) {
  return metadata ? "mdt" : "ost";
}

struct LustreOptions {
  long max_jobs = 1000;
  std::string job_id = R"((\d+)(?::.*)?)";
  std::string manager = "slurm";
  bool rpc_stats = true;
};

struct Counts {
  std::uint64_t operations = 0;
  std::uint64_t microseconds = 0;
  bool has_time = false;

  void add(const host::LustreCount& count) {
    operations += count.samples;
    add_time(count);
  }
  void add_time(const host::LustreCount& count) {
    if (host::is_lustre_time(count.unit)) {
      microseconds += count.sum.value_or(0);
      has_time = true;
    }
  }
};

/// What this node did with a file system, over all its mounts.
struct Client {
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::map<std::string_view, Counts> operations;  // of kClientOperations, and read and write
};

using Requests = std::map<std::pair<std::string, bool>, Counts>;  // file system, metadata targets

class LustreCollector final : public Collector {
 public:
  LustreCollector(const CollectorContext& context,
                  const LustreOptions& options,
                  std::unique_ptr<const RE2> job_id)
      : roots_{context.paths.proc / "fs/lustre", context.paths.sys / "kernel/debug/lustre"},
        settings_{context.paths.sys / "fs/lustre", context.paths.proc / "fs/lustre"},
        hostname_(context.hostname),
        manager_(options.manager),
        rpc_stats_(options.rpc_stats),
        jobs_(static_cast<std::size_t>(options.max_jobs), std::move(job_id)) {}

  Result<> collect(metrics::Sink& sink) override {
    problem_.reset();
    refused_.reset();
    const bool has_settings = add_settings(sink);
    const bool is_client = add_clients(sink);
    if (rpc_stats_) {
      add_requests(sink);
    }
    const bool is_server = add_jobs(sink);
    if (problem_) {
      return fail(*std::exchange(problem_, std::nullopt));
    }
    if (is_client || is_server) {
      return {};
    }
    if (refused_ && (has_settings || host::is_directory(roots_.front()))) {
      return fail(*std::exchange(refused_, std::nullopt));
    }
    return fail(ErrorCode::kNoData, "no file system of Lustre is mounted, and no target");
  }

  /// The debug file system is for root only.
  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return {CAP_DAC_READ_SEARCH};
  }

 private:
  void note(Error error, const std::string& path) {
    if (!problem_) {
      problem_ = std::move(error).with_context(path);
    }
  }

  /// The content of a file in buffer_. kNotFound if it does not exist. Other errors are noted.
  Result<> read(const std::string& path, std::size_t limit) {
    auto fd = open_privileged(path.c_str());
    Result<> done = fd ? host::read_lustre_file(*fd, buffer_, limit) : fail(std::move(fd).error());
    if (!done && done.error().code != ErrorCode::kNotFound) {
      note(done.error(), path);
    }
    return done;
  }

  /// Calls `use(directory, path)` for each directory of a kind that has this file, which is in
  /// /proc or, from other versions, in the debug file system.
  template <class Use>
  bool for_each(const char* kind, const char* file, Use use) {
    std::set<std::string> done;
    for (const std::string& root : roots_) {
      const std::string parent = fmt::format("{}/{}", root, kind);
      auto names = list_privileged(parent);
      if (!names) {
        if (names.error().code != ErrorCode::kNotFound) {
          refused_ = std::move(names).error();
        }
        continue;
      }
      for (const std::string& name : *names) {
        if (!done.contains(name) && use(name, fmt::format("{}/{}/{}", parent, name, file))) {
          done.insert(name);
        }
      }
    }
    return !done.empty();
  }

  bool add_settings(metrics::Sink& sink) {
    std::array<std::string, 2> values;
    bool found = false;
    for (const std::string& root : settings_) {
      for (std::size_t i = 0; i < values.size() && !found; ++i) {
        if (auto text = host::read_file(root + (i == 0 ? "/jobid_var" : "/jobid_name"),
                                        host::kMaxValueSize)) {
          values.at(i) = trim(*text);
        }
      }
      found = found || !values.front().empty();
    }
    if (found) {
      sink.add(jobid_info_, 1, {hostname_, values[0], values[1]});
    }
    return found;
  }

  bool parse_stats(const std::string& path) {
    if (!read(path, kMaxStatsSize)) {
      return false;
    }
    if (auto parsed = host::parse_lustre_stats(buffer_, counts_); !parsed) {
      note(std::move(parsed).error(), path);
    }
    return true;
  }

  void add_client_counts(Client& client) const {
    for (const host::LustreCount& count : counts_) {
      if (count.name == "read_bytes") {
        client.read_bytes += count.sum.value_or(0);
        client.operations["read"].operations += count.samples;
      } else if (count.name == "write_bytes") {
        client.write_bytes += count.sum.value_or(0);
        client.operations["write"].operations += count.samples;
      } else if (count.name == "read") {  // the calls of read_bytes, with their time
        client.operations["read"].add_time(count);
      } else if (count.name == "write") {
        client.operations["write"].add_time(count);
      } else if (const auto* name = std::ranges::find(kClientOperations, count.name);
                 name != kClientOperations.end()) {
        client.operations[*name].add(count);
      }
    }
  }

  bool add_clients(metrics::Sink& sink) {
    std::map<std::string, Client> clients;
    const bool found =
        for_each("llite", "stats", [&](std::string_view name, const std::string& path) {
          const auto filesystem = host::lustre_client_filesystem(name);
          if (!filesystem || !parse_stats(path)) {
            return false;
          }
          add_client_counts(clients[std::string(*filesystem)]);
          return true;
        });
    for (const auto& [filesystem, client] : clients) {
      sink.add(read_bytes_, static_cast<double>(client.read_bytes), {hostname_, filesystem});
      sink.add(write_bytes_, static_cast<double>(client.write_bytes), {hostname_, filesystem});
      for (const auto& [operation, counts] : client.operations) {
        sink.add(operations_, static_cast<double>(counts.operations),
                 {hostname_, filesystem, operation});
        if (counts.has_time) {
          sink.add(operation_seconds_, static_cast<double>(counts.microseconds) / kMicroseconds,
                   {hostname_, filesystem, operation});
        }
      }
    }
    return found;
  }

  void add_requests(metrics::Sink& sink) {
    Requests requests;
    for (const char* kind : {"osc", "mdc"}) {
      for_each(kind, "stats", [&](std::string_view name, const std::string& path) {
        const auto target = host::lustre_client_target(name);
        if (!target || !parse_stats(path)) {
          return false;
        }
        Counts& sum = requests[{std::string(target->filesystem), target->metadata}];
        for (const host::LustreCount& count : counts_) {
          if (count.name == "req_waittime") {
            sum.add(count);
          }
        }
        return true;
      });
    }
    for (const auto& [key, sum] : requests) {
      const char* targets = targets_of(key.second);
      sink.add(requests_, static_cast<double>(sum.operations), {hostname_, key.first, targets});
      sink.add(request_seconds_, static_cast<double>(sum.microseconds) / kMicroseconds,
               {hostname_, key.first, targets});
    }
  }

  bool add_jobs(metrics::Sink& sink) {
    jobs_.begin();
    bool found = false;
    for (const char* kind : {"obdfilter", "mdt"}) {
      found |= for_each(kind, "job_stats", [&](const std::string& name, const std::string& path) {
        const auto target = host::lustre_target(name);
        if (!target) {
          return false;
        }
        if (const auto done = read(path, kMaxJobListSize); !done) {
          if (done.error().code != ErrorCode::kNotFound) {
            jobs_.keep(name);
          }
          return false;
        }
        if (auto parsed = jobs_.add(name, *target, buffer_); !parsed) {
          note(std::move(parsed).error(), path);
        } else if (buffer_.size() >= kMaxJobListSize) {
          note({ErrorCode::kParse, fmt::format("more than {} bytes", kMaxJobListSize)}, path);
          jobs_.keep(name);
        }
        return true;
      });
    }
    jobs_.end();
    if (!found) {
      return false;
    }
    jobs_.each([&](const LustreJobSums& job) { add_job(sink, job); });
    jobs_.each_other([&](const LustreJobSums& job) { add_job(sink, job); });
    sink.add(jobs_shown_, static_cast<double>(jobs_.shown()), {hostname_});
    sink.add(jobs_left_out_, static_cast<double>(jobs_.left_out() + jobs_.not_counted()),
             {hostname_});
    return true;
  }

  void add_job(metrics::Sink& sink, const LustreJobSums& job) const {
    const char* targets = targets_of(job.metadata);
    const std::string_view manager = job.unit.empty() ? std::string_view() : manager_;
    const auto add = [&](const metrics::Desc& desc, std::uint64_t value, double divisor) {
      if (value != 0) {
        sink.add(desc, static_cast<double>(value) / divisor,
                 {hostname_, job.filesystem, targets, manager, job.unit, job.text});
      }
    };
    add(job_read_bytes_, job.values.read_bytes, 1);
    add(job_write_bytes_, job.values.write_bytes, 1);
    add(job_seconds_, job.values.microseconds, kMicroseconds);
    for (std::size_t i = 0; i < kLustreOperations.size(); ++i) {
      if (const std::uint64_t value = job.values.operations.at(i); value != 0) {
        sink.add(job_operations_, static_cast<double>(value),
                 {hostname_, job.filesystem, targets, manager, job.unit, job.text,
                  kLustreOperations.at(i)});
      }
    }
  }

  static Result<std::vector<std::string>> list_privileged(const std::string& path) {
    auto names = host::list_directory(path);
    if (names || names.error().code != ErrorCode::kPermissionDenied) {
      return names;
    }
    const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
    return host::list_directory(path);
  }

  std::array<std::string, 2> roots_;
  std::array<std::string, 2> settings_;
  std::string hostname_;
  std::string manager_;
  bool rpc_stats_;
  LustreJobs jobs_;
  std::optional<Error> problem_;
  std::optional<Error> refused_;  // of a directory that may not be listed
  std::vector<host::LustreCount> counts_;
  std::string buffer_;
  metrics::Desc jobid_info_{"ceems_lustre_jobid_info",
                            "How Lustre names the jobs of this node's requests; the value is "
                            "always 1.",
                            metrics::Type::kGauge,
                            {"hostname", "jobid_var", "jobid_name"}};
  metrics::Desc read_bytes_ =
      lustre_desc("read_bytes_total", "Bytes that this node read from the file system.");
  metrics::Desc write_bytes_ =
      lustre_desc("write_bytes_total", "Bytes that this node wrote to the file system.");
  metrics::Desc operations_ =
      lustre_desc("operations_total", "Operations of this node on the file system.", {"operation"});
  metrics::Desc operation_seconds_ = lustre_desc(
      "operation_seconds_total", "Time that operations on the file system took.", {"operation"});
  metrics::Desc requests_ =
      lustre_desc("requests_total", "Requests of this node that servers answered.", {"targets"});
  metrics::Desc request_seconds_ = lustre_desc(
      "request_seconds_total", "Time that this node waited for answers of servers.", {"targets"});
  metrics::Desc job_read_bytes_ =
      make_job_desc("job_read_bytes_total", "Bytes that a job read from targets of this server.");
  metrics::Desc job_write_bytes_ =
      make_job_desc("job_write_bytes_total", "Bytes that a job wrote to targets of this server.");
  metrics::Desc job_seconds_ = make_job_desc(
      "job_seconds_total", "Time that targets of this server took for requests of a job.");
  metrics::Desc job_operations_ = make_job_desc(
      "job_operations_total", "Requests of a job to targets of this server.", {"operation"});
  metrics::Desc jobs_shown_{"ceems_lustre_jobs",
                            "Job IDs on this server that have their own series.",
                            metrics::Type::kGauge,
                            {"hostname"}};
  metrics::Desc jobs_left_out_{"ceems_lustre_jobs_left_out",
                               "Job IDs on this server that have no series of their own.",
                               metrics::Type::kGauge,
                               {"hostname"}};
};

/// Errors name the flag: a number out of its range, an invalid expression or name.
Result<std::unique_ptr<Collector>> create_lustre(const CollectorContext& context,
                                                 const LustreOptions& options) {
  if (options.max_jobs < 0 || options.max_jobs > kMaxMaxJobs) {
    return fail(ErrorCode::kInvalidArgument, "--{}: expected 0 to {}, got {}", kMaxJobsFlag,
                kMaxMaxJobs, options.max_jobs);
  }
  if (options.manager.empty() || options.manager.size() > kMaxManager ||
      !has_only_words(options.manager, "_-")) {
    return fail(ErrorCode::kInvalidArgument, "--{}: expected letters, digits, _ and -, got '{}'",
                kManagerFlag, printable(options.manager));
  }
  RE2::Options quiet;
  quiet.set_log_errors(false);
  auto job_id = std::make_unique<const RE2>(options.job_id, quiet);
  if (!job_id->ok() || job_id->NumberOfCapturingGroups() < 1) {
    return fail(ErrorCode::kInvalidArgument,
                "--{}: expected a regular expression with a group, got '{}'{}", kJobIdFlag,
                printable(options.job_id),
                job_id->ok() ? std::string() : ": " + printable(job_id->error()));
  }
  return std::make_unique<LustreCollector>(context, options, std::move(job_id));
}

}  // namespace

/// --collector.lustre: statistics of Lustre's clients below /proc/fs/lustre or the debug file
/// system and, on servers, of the jobs that use their targets.
CollectorSpec lustre_collector() {
  auto options = std::make_shared<LustreOptions>();
  return {.name = "lustre",
          .help = "Enable the lustre collector (Lustre clients, and jobs on Lustre servers)",
          .add_flags =
              [options](config::FlagSet& flags) {
                flags.add(kRpcFlag, options->rpc_stats,
                          {.help = "Export requests to the servers of Lustre and the time until "
                                   "their answers, which opens a file for each target"});
                flags.add(kMaxJobsFlag, options->max_jobs,
                          {.help = "Maximum number of job IDs with their own series on a Lustre "
                                   "server; the others are summed as 'other'"});
                flags.add(kJobIdFlag, options->job_id,
                          {.help = "Regular expression of the job IDs of Lustre that are of "
                                   "units; its first group is the unit's ID"});
                flags.add(kManagerFlag, options->manager,
                          {.help = "Resource manager of the units that use the Lustre server"});
              },
          .create = [options](const CollectorContext& context,
                              const Sources&) { return create_lustre(context, *options); }};
}

}  // namespace ceems::exporter
