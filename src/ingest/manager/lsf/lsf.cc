#include "ingest/manager/lsf/lsf.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/json_cutter.h"
#include "base/log.h"
#include "config/section.h"
#include "ingest/manager/lsf/job.h"

namespace ceems::ingest::lsf {
namespace {

constexpr std::string_view kNoJob = "job found";  // "No unfinished job found", "No job found"
constexpr std::string_view kNoMatch = "No matching job found";
constexpr std::size_t kMaxUnclear = 10'000;
constexpr std::size_t kUnclearAtOnce = 500;
constexpr std::int64_t kMinuteMs = 60'000;
/// How long the description of a job that is no longer listed is kept.
constexpr std::int64_t kKeepMs = 24LL * 3600 * 1000;

/// "2026/01/31/23:59"
std::string bacct_time(const TimeZone& zone, std::int64_t ms) {
  std::string text = zone.local(ms).substr(0, 16);
  std::ranges::replace(text, '-', '/');
  std::ranges::replace(text, 'T', '/');
  return text;
}

class LsfSource final : public BatchSource {
 public:
  LsfSource(BatchCommands commands, const Clock& clock)
      : commands_(std::move(commands)), clock_(clock) {}

  Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) override {
    // A job that ends meanwhile is in both outputs, and one that ended after the window is still
    // running at its end. In the other order such a job would be in neither.
    auto done = running({"-u", "all"}, &job, stop);
    if (!done) {
      return done;
    }
    const std::int64_t overlap = std::chrono::milliseconds(kBatchOverlap).count();
    const std::int64_t from = window.start_ms - overlap - kMinuteMs;
    const std::int64_t to = std::max(clock_.now_ms(), window.end_ms) + 2 * kMinuteMs;
    const std::string period =
        bacct_time(commands_.zone(), from) + "," + bacct_time(commands_.zone(), to);
    done = finished({"-C", period}, job, stop);
    std::erase_if(known_, [&](const auto& entry) {
      return entry.second.seen_ms + kKeepMs < clock_.now_ms();
    });
    return done;
  }

  Result<> jobs_by_id(const std::vector<std::string>& ids,
                      const JobSink& job,
                      std::stop_token stop) override {
    return finished(ids, job, stop);
  }

 private:
  /// What only bjobs prints of a job, or what it prints without ambiguity.
  struct Known {
    BatchJob job;
    std::int64_t seen_ms = 0;
  };

  [[nodiscard]] Times times() const {
    return {.zone = commands_.zone(), .now_ms = clock_.now_ms()};
  }

  /// Runs bjobs, and passes on the jobs that hold resources. Remembers its whole output.
  Result<> running(std::vector<std::string> which,
                   const JobSink* job,
                   const std::stop_token& stop) {
    const Times now = times();
    JsonCutter cutter({"RECORDS"}, [&](const JsonCutter::Element& element) -> Result<> {
      auto record = parse_running(element.json, now);
      if (!record) {
        return fail(std::move(record).error());
      }
      if (record->has_value()) {
        take_running(std::move(**record), job, now.now_ms);
      }
      return {};
    });
    std::ranges::move(std::vector<std::string>{"-json", "-o", std::string(kBjobsFields)},
                      std::back_inserter(which));
    auto done = commands_.run(
        "bjobs", std::move(which), [&](std::string_view line) { return cutter.add(line); }, stop,
        kNoJob);
    if (done && cutter.began()) {
      done = cutter.finish();
    }
    if (!done) {
      return fail(std::move(done).error().with_context("output of bjobs"));
    }
    return commands_.note_left_out("bjobs", cutter);
  }

  void take_running(RunningJob running, const JobSink* job, std::int64_t now) {
    if (running.job.start_ms > 0) {
      known_[running.job.id] = {.job = running.job, .seen_ms = now};
    }
    if (job != nullptr && running.holds) {
      (*job)(std::move(running.job));
    }
  }

  /// Runs bacct and passes on the jobs that ran.
  Result<> finished(const std::vector<std::string>& which,
                    const JobSink& job,
                    const std::stop_token& stop) {
    std::vector<FinishedJob> all;
    BacctReader reader(times(), [&](FinishedJob found) { all.push_back(std::move(found)); });
    std::vector<std::string> arguments = {"-u", "all", "-l", "-gpu", "-UF"};
    arguments.insert(arguments.end(), which.begin(), which.end());
    CEEMS_TRY(commands_.run(
        "bacct", std::move(arguments),
        [&](std::string_view line) -> Result<> {
          reader.add_line(line);
          return {};
        },
        stop, kNoMatch));
    reader.finish();
    if (reader.has_too_many()) {
      confirm(all, job, stop);
      return {};
    }
    commands_.note_left_out("bacct", reader.malformed(), reader.first_problem());
    std::vector<FinishedJob> unclear;
    for (FinishedJob& found : all) {
      if (complete(found)) {
        job(std::move(found.job));
      } else {
        unclear.push_back(std::move(found));
      }
    }
    clear_up(unclear, stop);
    for (FinishedJob& found : unclear) {
      job(std::move(found.job));
    }
    return {};
  }

  /// Passes on what bjobs says of these jobs. A job that it does not know counts only if it was
  /// seen while it ran.
  void confirm(const std::vector<FinishedJob>& all,
               const JobSink& job,
               const std::stop_token& stop) {
    const std::int64_t asked_ms = clock_.now_ms();
    ask_about(all, stop);
    std::size_t refused = 0;
    std::string first;
    for (const FinishedJob& found : all) {
      const auto known = known_.find(found.job.id);
      const bool same = known != known_.end() && known->second.job.start_ms == found.job.start_ms;
      const bool over =
          same && (known->second.job.state == "DONE" || known->second.job.state == "EXIT");
      if (!same || (!over && known->second.seen_ms >= asked_ms)) {
        first = refused++ == 0 ? found.job.id : first;
        continue;
      }
      BatchJob confirmed = known->second.job;
      if (!over) {
        confirmed.state = found.job.state;
      }
      if (confirmed.end_ms == 0) {
        confirmed.end_ms = found.job.end_ms;
      }
      job(std::move(confirmed));
    }
    commands_.note_left_out(
        "bacct", refused,
        "job " + first +
            ": bacct prints more records than it counts jobs, because the text "
            "of a job looks like a record, and bjobs does not confirm this one");
  }

  /// Adds what bjobs said of the job. False if its user and project are not known.
  bool complete(FinishedJob& found) const {
    BatchJob& job = found.job;
    const auto known = known_.find(job.id);
    if (known == known_.end() || known->second.job.start_ms != job.start_ms) {
      return found.clear;
    }
    const BatchJob& seen = known->second.job;
    job.user = seen.user;
    job.project = seen.project;
    job.name = seen.name;
    job.group = seen.group.empty() ? job.group : seen.group;
    job.memory_bytes = seen.memory_bytes > 0 ? seen.memory_bytes : job.memory_bytes;
    job.requested_memory_bytes =
        seen.requested_memory_bytes > 0 ? seen.requested_memory_bytes : job.requested_memory_bytes;
    job.time_limit_seconds = seen.time_limit_seconds;
    const auto queue =
        std::ranges::find(seen.tags, "queue", &std::pair<std::string, std::string>::first);
    if (queue != seen.tags.end() && !found.clear) {
      std::erase_if(job.tags, [](const auto& tag) { return tag.first == "queue"; });
      job.tags.push_back(*queue);
    }
    found.clear = true;
    return true;
  }

  /// Asks bjobs about some of these jobs.
  void ask_about(const std::vector<FinishedJob>& jobs, const std::stop_token& stop) {
    for (std::size_t at = 0; at < std::min(jobs.size(), kMaxUnclear); at += kUnclearAtOnce) {
      std::vector<std::string> which = {"-u", "all", "-a"};
      for (std::size_t i = at; i < std::min(jobs.size(), at + kUnclearAtOnce); ++i) {
        which.push_back(jobs[i].job.id);
      }
      if (const auto done = running(std::move(which), nullptr, stop); !done) {
        log::warn("cannot ask bjobs about jobs with ambiguous names",
                  {{"cluster_id", commands_.cluster_id()}, {"error", done.error().message}});
        return;
      }
    }
  }

  /// Asks bjobs about jobs whose record in bacct is ambiguous; mbatchd remembers them for
  /// CLEAN_PERIOD. Jobs that remain unclear have no owner.
  void clear_up(std::vector<FinishedJob>& unclear, const std::stop_token& stop) {
    if (unclear.empty()) {
      return;
    }
    ask_about(unclear, stop);
    std::size_t left = 0;
    for (FinishedJob& found : unclear) {
      if (!complete(found)) {
        found.job.user.clear();
        found.job.project.clear();
        found.job.name.clear();
        left += 1;
      }
    }
    if (left > 0) {
      log::warn("the owners of jobs are unknown, because the names of the jobs look like fields",
                {{"cluster_id", commands_.cluster_id()}, {"jobs", left}});
    }
  }

  BatchCommands commands_;
  const Clock& clock_;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace

std::unique_ptr<BatchSource> make_source(BatchCommands commands, const Clock& clock) {
  return std::make_unique<LsfSource>(std::move(commands), clock);
}

}  // namespace ceems::ingest::lsf

namespace ceems::ingest {
namespace {

Result<std::unique_ptr<ResourceManager>> create_lsf(const ClusterConfig& config,
                                                    const ManagerContext& context) {
  BatchOptions options;
  CEEMS_TRY(read_batch_options(config.extra, options));
  // With a year and seconds, whatever lsf.conf says.
  CEEMS_TRY(commands, BatchCommands::create(config, options, "bjobs", {{"LSB_DISPLAY_YEAR", "Y"}},
                                            *context.runner));
  return make_batch_manager(config.cluster.id,
                            lsf::make_source(std::move(commands), *context.clock), context.zone,
                            options.members);
}

}  // namespace

/// clusters[].manager: lsf, for IBM Spectrum LSF.
ManagerSpec lsf_manager() {
  return {.name = "lsf",
          .units = "jobs",
          .source = "`bjobs`, `bacct`",
          .reads_cli = true,
          .extra_keys = {"command_timeout", "time_zone", "members"},
          .create = create_lsf};
}

}  // namespace ceems::ingest
