#include "ingest/manager/batch/batch.h"

#include <algorithm>

#include "base/log.h"

namespace ceems::ingest {
namespace {

/// Limits for the ids in one query, for all ids, and for the queries per job. The length of a
/// command line is limited.
constexpr std::size_t kJobsAtOnce = 500;
constexpr std::size_t kMaxAskedJobs = 20 * kJobsAtOnce;
constexpr int kMaxAsksOfJob = 3;
constexpr std::int64_t kBatchOverlapMs = std::chrono::milliseconds(kBatchOverlap).count();

class BatchManager final : public ResourceManager {
 public:
  BatchManager(std::string cluster_id,
               std::unique_ptr<BatchSource> source,
               TimeZone zone,
               bool members)
      : cluster_id_(std::move(cluster_id)),
        source_(std::move(source)),
        zone_(zone),
        members_wanted_(members) {}

  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    follow(window);
    Jobs jobs;
    CEEMS_TRY(source_->jobs(window, [&jobs](BatchJob job) { add(std::move(job), jobs); }, stop));
    ask_for_missing(jobs, stop);
    users_.clear();
    members_.clear();
    std::vector<model::Unit> units;
    for (const auto& [run, job] : jobs) {
      const bool ended_before = job.end_ms > 0 && job.end_ms <= window.start_ms;
      const bool long_ago = ended_before && job.end_ms + kBatchOverlapMs < window.start_ms;
      if ((ended_before && is_reported(run, job)) || (long_ago && !open_.contains(run))) {
        continue;
      }
      auto unit = to_unit(job, window, counted_from(run, job, window), zone_);
      if (!unit) {
        continue;
      }
      note_member(*unit);
      if (unit->ended_at_ts > 0) {
        reported_[run] = {.end_ms = unit->ended_at_ts, .window_end_ms = window.end_ms};
        open_.erase(run);
      } else {
        open_[run] = {.job = job};
      }
      units.push_back(std::move(*unit));
    }
    last_ = window;
    return units;
  }

  Result<UsersAndProjects> fetch_users_projects(model::Window /*window*/,
                                                std::stop_token /*stop*/) override {
    if (members_wanted_) {
      return users_and_projects(members_);
    }
    UsersAndProjects result;
    for (const std::string& name : users_) {
      result.users.push_back({.name = name});
    }
    return result;
  }

  [[nodiscard]] bool members_are_of_jobs() const override { return members_wanted_; }

 private:
  using Run = std::pair<std::string, std::int64_t>;  // id, start in epoch ms
  using Jobs = std::map<Run, BatchJob>;
  struct Reported {
    std::int64_t end_ms = 0;
    std::int64_t window_end_ms = 0;  ///< end of the window that reported it
  };
  struct Open {
    BatchJob job;  ///< as last seen
    int asks = 0;
  };

  static void add(BatchJob job, Jobs& jobs) {
    if (job.id.empty() || job.start_ms <= 0) {
      return;
    }
    const Run run{job.id, job.start_ms};
    const auto [known, fresh] = jobs.try_emplace(run, std::move(job));
    // NOLINTNEXTLINE(bugprone-use-after-move): try_emplace moves only if it inserts
    if (!fresh && known->second.end_ms == 0 && job.end_ms != 0) {
      known->second = std::move(job);
    }
  }

  /// Notes what ran at the start of the window if it follows the last one. A window with the same
  /// start as the last one repeats it, because it was not stored.
  void follow(model::Window window) {
    if (last_ && window.start_ms == last_->end_ms) {
      follows_ = true;
      ran_before_ = open_;
      std::erase_if(reported_, [&](const auto& entry) {
        return entry.second.end_ms + 2 * kBatchOverlapMs < window.start_ms;
      });
    } else if (!last_ || window.start_ms != last_->start_ms) {
      follows_ = false;
      ran_before_.clear();
    }
    open_ = ran_before_;
    // What a window reported that was not stored is reported again.
    std::erase_if(reported_,
                  [&](const auto& entry) { return entry.second.window_end_ms > window.start_ms; });
  }

  [[nodiscard]] bool is_reported(const Run& run, const BatchJob& job) const {
    const auto known = reported_.find(run);
    return known != reported_.end() && known->second.end_ms == job.end_ms;
  }

  /// If a job runs at the start of the window but was not seen at the end of the previous one, its
  /// start was recorded late, so it counts from its start.
  [[nodiscard]] std::int64_t counted_from(const Run& run,
                                          const BatchJob& job,
                                          model::Window window) const {
    const bool runs_at_start =
        job.start_ms < window.start_ms && (job.end_ms == 0 || job.end_ms > window.start_ms);
    return follows_ && runs_at_start && !ran_before_.contains(run) ? job.start_ms : window.start_ms;
  }

  /// Ends runs of jobs that have started again since, because they were requeued: batch systems
  /// keep only the last start. Such a run was last seen at the end of the last window.
  void end_requeued(Jobs& jobs) const {
    for (const auto& [run, open] : open_) {
      const auto later = jobs.upper_bound(run);
      if (!jobs.contains(run) && later != jobs.end() && later->first.first == run.first) {
        BatchJob ended = open.job;
        ended.end_ms = std::clamp(last_ ? last_->end_ms : 0, run.second, later->first.second);
        ended.state = "REQUEUED";
        jobs.emplace(run, std::move(ended));
      }
    }
  }

  /// Asks for the jobs that ran at the end of the last window and are missing now.
  void ask_for_missing(Jobs& jobs, const std::stop_token& stop) {
    end_requeued(jobs);
    std::vector<std::string> ids;
    for (const auto& [run, open] : open_) {
      if (!jobs.contains(run) && ids.size() < kMaxAskedJobs &&
          (ids.empty() || ids.back() != run.first)) {
        ids.push_back(run.first);
      }
    }
    for (std::size_t at = 0; at < ids.size(); at += kJobsAtOnce) {
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(at);
      const auto count = static_cast<std::ptrdiff_t>(std::min(kJobsAtOnce, ids.size() - at));
      const std::vector<std::string> some(first, first + count);
      Jobs found;
      auto done =
          source_->jobs_by_id(some, [&found](BatchJob job) { add(std::move(job), found); }, stop);
      if (!done) {
        // The window is complete without them; the next round asks again.
        note_failure(done.error().message);
        return;
      }
      for (auto& [run, job] : found) {
        if (open_.contains(run)) {
          jobs.try_emplace(run, std::move(job));
        }
      }
    }
    note_failure({});
    for (auto& [run, open] : open_) {
      open.asks += jobs.contains(run) ? 0 : 1;
    }
    const std::size_t lost =
        std::erase_if(open_, [](const auto& entry) { return entry.second.asks >= kMaxAsksOfJob; });
    if (lost > 0) {
      log::warn("the batch system no longer knows jobs that were running; they stay as last seen",
                {{"cluster_id", cluster_id_}, {"jobs", lost}});
    }
  }

  void note_failure(const std::string& message) {
    if (!message.empty() && !asking_fails_) {
      log::warn("cannot query jobs that ended late",
                {{"cluster_id", cluster_id_}, {"error", message}});
    } else if (message.empty() && asking_fails_) {
      log::info("jobs that ended late can be queried again", {{"cluster_id", cluster_id_}});
    }
    asking_fails_ = !message.empty();
  }

  void note_member(const model::Unit& unit) {
    if (!unit.username.empty()) {
      users_.insert(unit.username);
      if (!unit.project.empty()) {
        members_.insert({.project = unit.project, .user = unit.username});
      }
    }
  }

  const std::string cluster_id_;
  const std::unique_ptr<BatchSource> source_;
  const TimeZone zone_;
  const bool members_wanted_;

  std::map<Run, Open> open_;           ///< running when last seen
  std::map<Run, Open> ran_before_;     ///< running when the current window began
  std::map<Run, Reported> reported_;   ///< ended, and reported not long ago
  std::set<std::string> users_;        ///< of the last fetch
  std::set<Membership> members_;       ///< of the last fetch
  std::optional<model::Window> last_;  ///< the last one fetched, stored or not
  bool follows_ = false;               ///< the current window begins where the last one ended
  bool asking_fails_ = false;
};

}  // namespace

std::unique_ptr<ResourceManager> make_batch_manager(std::string cluster_id,
                                                    std::unique_ptr<BatchSource> source,
                                                    TimeZone zone,
                                                    bool members) {
  return std::make_unique<BatchManager>(std::move(cluster_id), std::move(source), zone, members);
}

}  // namespace ceems::ingest
