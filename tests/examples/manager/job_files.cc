// A complete resource manager, as an example. CONTRIBUTING.md says where its parts stand when it is
// one of the API server.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "base/time/time_text.h"
#include "base/utf8.h"
#include "config/section.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/unit_fields.h"

namespace ceems::ingest {
namespace {

namespace json = boost::json;

/// What a file says about one job.
struct Job {
  std::string id;
  std::string user;
  std::string project;
  std::int64_t start_ms = 0;  ///< epoch
  std::int64_t end_ms = 0;    ///< 0: it is running
  double cpus = 0;
  double memory_mib = 0;
};

Result<std::string> read_text(const json::object& job, std::string_view key) {
  const json::value* value = job.if_contains(key);
  if (value == nullptr || !value->is_string() || value->get_string().empty()) {
    return fail(ErrorCode::kParse, "{}: expected a text", key);
  }
  const json::string& text = value->get_string();
  return clean_text({text.data(), text.size()});
}

Result<double> read_number(const json::object& job, std::string_view key) {
  constexpr double kMax = 1e12;
  const json::value* value = job.if_contains(key);
  boost::system::error_code error;
  const double number = value != nullptr ? value->to_number<double>(error) : 0;
  if (value == nullptr || error || number < 0 || number > kMax) {
    return fail(ErrorCode::kParse, "{}: expected a number from 0 to {}", key, kMax);
  }
  return number;
}

/// Parses {"user":"ada","project":"fluids","cpus":4,"memory_mib":2048,"start":1767225600}, with
/// "end" once the job has ended. Times are epoch seconds.
Result<Job> parse_job(std::string_view text) {
  boost::system::error_code error;
  const json::value document = json::parse({text.data(), text.size()}, error);
  if (error || !document.is_object()) {
    return fail(ErrorCode::kParse, "expected a JSON object");
  }
  const json::object& object = document.get_object();
  const auto user = read_text(object, "user");
  const auto project = read_text(object, "project");
  const auto cpus = read_number(object, "cpus");
  const auto memory_mib = read_number(object, "memory_mib");
  const auto start = read_number(object, "start");
  const auto end = object.contains("end") ? read_number(object, "end") : Result<double>(0);
  for (const auto* field : {&user, &project}) {
    if (!*field) {
      return fail(field->error());
    }
  }
  for (const auto* field : {&cpus, &memory_mib, &start, &end}) {
    if (!*field) {
      return fail(field->error());
    }
  }
  if (object.contains("end") && *end < *start) {
    return fail(ErrorCode::kParse, "end: expected a time after the start");
  }
  return Job{.id = {},
             .user = *user,
             .project = *project,
             .start_ms = static_cast<std::int64_t>(*start * 1000),
             .end_ms = static_cast<std::int64_t>(*end * 1000),
             .cpus = *cpus,
             .memory_mib = *memory_mib};
}

/// The job as it stood at the end of the window; nothing if it started later.
std::optional<model::Unit> unit_of(const Job& job, model::Window window, const TimeZone& zone) {
  if (job.start_ms > window.end_ms) {
    return std::nullopt;
  }
  const bool ended = job.end_ms > 0 && job.end_ms <= window.end_ms;
  const std::int64_t until = ended ? job.end_ms : window.end_ms;
  // A job that ended before the window counts in full; the store leaves out what it has counted.
  const bool late = until <= window.start_ms;
  const std::int64_t from = late ? job.start_ms : std::max(job.start_ms, window.start_ms);
  model::Unit unit;
  unit.uuid = job.id;
  unit.name = job.id;
  unit.project = job.project;
  unit.username = job.user;
  unit.created_at_ts = job.start_ms;
  unit.started_at_ts = job.start_ms;
  unit.ended_at_ts = ended ? job.end_ms : 0;
  print_times(unit, zone, "Unknown");
  unit.state = ended ? "ENDED" : "RUNNING";
  unit.elapsed = elapsed_text((until - job.start_ms) / 1000);
  unit.total_time_seconds =
      allocation_times(static_cast<double>(until - from) / 1000, job.cpus, job.memory_mib, 0);
  return unit;
}

class JobFilesManager final : public ResourceManager {
 public:
  JobFilesManager(std::string directory, TimeZone zone)
      : directory_(std::move(directory)), zone_(zone) {}

  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    CEEMS_TRY(jobs, read_jobs(stop));
    std::vector<model::Unit> units;
    for (const Job& job : jobs) {
      if (auto unit = unit_of(job, window, zone_)) {
        units.push_back(std::move(*unit));
      }
    }
    return units;
  }

  Result<UsersAndProjects> fetch_users_projects(model::Window /*window*/,
                                                std::stop_token stop) override {
    CEEMS_TRY(jobs, read_jobs(stop));
    std::set<Membership> members;
    for (const Job& job : jobs) {
      members.insert({.project = job.project, .user = job.user});
    }
    return users_and_projects(members);
  }

 private:
  /// The jobs of all files NAME.json. One bad file is an error, so that the window is tried again
  /// and no job is missing from it.
  Result<std::vector<Job>> read_jobs(const std::stop_token& stop) const {
    std::vector<Job> jobs;
    std::error_code error;
    std::filesystem::directory_iterator entry(directory_, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      if (stop.stop_requested()) {
        return fail(ErrorCode::kUnavailable, "stopped");
      }
      const std::filesystem::path& path = entry->path();
      if (path.extension() != ".json") {
        continue;
      }
      std::ifstream file(path);
      CEEMS_TRY_IN(path.string(), job,
                   parse_job(std::string(std::istreambuf_iterator<char>(file), {})));
      job.id = clean_text(path.stem().string());
      jobs.push_back(std::move(job));
    }
    if (error) {
      return fail(errno_error(error.value(), "reading " + directory_));
    }
    return jobs;
  }

  std::string directory_;
  TimeZone zone_;
};

Result<std::unique_ptr<ResourceManager>> create_job_files(const ClusterConfig& config,
                                                          const ManagerContext& context) {
  std::string directory;
  config::Section section(config.extra);
  section.text("directory", directory);
  CEEMS_TRY(section.done());
  if (directory.empty()) {
    return fail(ErrorCode::kInvalidArgument, "cluster {}: extra_config.directory is missing",
                config.cluster.id);
  }
  return std::make_unique<JobFilesManager>(std::move(directory), context.zone);
}

}  // namespace

/// clusters[].manager: job_files, whose jobs are described by the JSON files of a directory.
ManagerSpec job_files_manager() {
  return {.name = "job_files",
          .units = "jobs",
          .source = "JSON files in a directory",
          .extra_keys = {"directory"},
          .create = create_job_files};
}

}  // namespace ceems::ingest
