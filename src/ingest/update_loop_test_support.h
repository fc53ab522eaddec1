#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "ingest/update_loop.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::ingest {

using Window = std::pair<std::int64_t, std::int64_t>;  // in seconds since kDay

inline constexpr std::int64_t kDay =
    1'767'225'600'000;  // FakeClock starts here: 2026-01-01T00:00:00Z

inline Window in_seconds(model::Window window) {
  return {(window.start_ms - kDay) / 1000, (window.end_ms - kDay) / 1000};
}

/// An in-memory store that checks how it is called. Safe for concurrent use.
class FakeWriter final : public store::Writer {
 public:
  Result<std::optional<std::int64_t>> watermark(std::string_view cluster_id) override {
    const MutexLock lock(mutex);
    if (broken) {
      return fail(ErrorCode::kUnavailable, "disk full");
    }
    const auto found = watermarks.find(cluster_id);
    return found == watermarks.end() ? std::nullopt : std::optional(found->second);
  }
  Result<store::WriteReport> write(const store::ClusterUpdate& update) override {
    const MutexLock lock(mutex);
    if (broken) {
      return fail(ErrorCode::kUnavailable, "disk full");
    }
    const auto found = watermarks.find(update.cluster.id);
    if (found != watermarks.end()) {
      EXPECT_EQ(found->second, update.window.start_ms);
    }
    for (store::Gap gap : update.gaps) {
      gap.id = ++last_gap;
      gap.window = update.window;
      open_gaps[update.cluster.id].emplace_back(gap, update.units);
    }
    watermarks[update.cluster.id] = update.window.end_ms;
    windows[update.cluster.id].push_back(in_seconds(update.window));
    updates.push_back(update);
    changed.notify_all();
    return store::WriteReport{.written = update.units.size(), .skipped = 0};
  }
  Result<> write_admins(std::string_view source, const std::vector<std::string>& names) override {
    const MutexLock lock(mutex);
    admins[std::string(source)] = names;
    admins_written_by = std::this_thread::get_id();
    changed.notify_all();
    return {};
  }
  Result<> add_admins(std::string_view source, const std::vector<std::string>& names) override {
    const MutexLock lock(mutex);
    auto& all = admins[std::string(source)];
    all.insert(all.end(), names.begin(), names.end());
    return {};
  }
  Result<> purge(std::int64_t cutoff_ms, const std::stop_token& /*stop*/) override {
    const MutexLock lock(mutex);
    cutoffs.push_back(cutoff_ms);
    return purged;
  }

  Result<bool> lead() override { return leads; }
  [[nodiscard]] bool keeps_gaps() const override { return keeping_gaps; }
  Result<std::vector<store::Gap>> gaps(std::string_view cluster_id) override {
    const MutexLock lock(mutex);
    std::vector<store::Gap> result;
    for (const auto& [gap, units] : open_gaps[std::string(cluster_id)]) {
      result.push_back(gap);
    }
    return result;
  }
  Result<std::vector<model::Unit>> gap_units(std::int64_t gap_id) override {
    const MutexLock lock(mutex);
    for (const auto& [cluster, gaps] : open_gaps) {
      for (const auto& [gap, units] : gaps) {
        if (gap.id == gap_id) {
          auto bare = units;
          for (auto& one : bare) {
            one.metrics = {};
            one.has_metric = {};
          }
          return bare;
        }
      }
    }
    return fail(ErrorCode::kNotFound, "no such gap");
  }
  Result<> fill_gap(const store::GapFill& fill) override {
    const MutexLock lock(mutex);
    fills.push_back(fill);
    auto& gaps = open_gaps[fill.cluster.id];
    for (auto& [gap, units] : gaps) {
      if (gap.id == fill.gap_id) {
        gap.parts = fill.still_missing;
      }
    }
    std::erase_if(gaps, [](const auto& entry) { return entry.first.parts.empty(); });
    return {};
  }

  Result<bool> fill_facts() override {
    const MutexLock lock(mutex);
    if (facts_left > 0) {
      --facts_left;
    }
    return filled ? Result<bool>(facts_left > 0) : fail(filled.error());
  }
  Result<std::size_t> fill_sums() override {
    const MutexLock lock(mutex);
    sums_left -= sums_left > 0 ? 1 : 0;
    return sums_left;
  }

  bool wait_for_windows(const std::string& cluster, std::size_t count) {
    MutexLock lock(mutex);
    return changed.wait_for(lock, testing::kPatience,
                            [&] { return windows[cluster].size() >= count; });
  }

  bool wait_for_admins(const std::string& source, const std::vector<std::string>& names) {
    MutexLock lock(mutex);
    return changed.wait_for(lock, testing::kPatience, [&] { return admins[source] == names; });
  }

  // Tests access the rest without the mutex, after the loop has stopped.
  Mutex mutex;
  Condition changed;
  std::map<std::string, std::int64_t, std::less<>> watermarks;
  std::map<std::string, std::vector<Window>> windows;
  std::vector<store::ClusterUpdate> updates;
  std::map<std::string, std::vector<std::string>> admins;
  std::thread::id admins_written_by;
  std::vector<std::int64_t> cutoffs;
  std::map<std::string, std::vector<std::pair<store::Gap, std::vector<model::Unit>>>> open_gaps;
  std::vector<store::GapFill> fills;
  std::int64_t last_gap = 0;
  std::size_t sums_left = 0, facts_left = 0;
  Result<> purged, filled;  ///< answers
  bool broken = false;
  Result<bool> leads = true;
  bool keeping_gaps = true;
};

/// The behaviour of a cluster, set by a test.
struct Script {
  std::function<Result<std::vector<model::Unit>>(model::Window, std::stop_token)> units =
      [](const auto&, const auto&) { return std::vector<model::Unit>{}; };
  std::function<Result<UsersAndProjects>()> people = [] { return UsersAndProjects{}; };
  std::function<Result<ProjectLeads>()> leads = [] { return ProjectLeads{}; };
  std::function<Result<Missing>(const UpdateRequest&, std::vector<model::Unit>&)> update =
      [](const auto&, auto&) { return Missing{}; };
  std::vector<std::int64_t> released = {};  ///< arguments of release()
  std::chrono::milliseconds settle{0};
  std::chrono::milliseconds shortest{0};
};

class FakeManager final : public ResourceManager {
 public:
  explicit FakeManager(Script& script) : script_(script) {}
  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    return script_.units(window, std::move(stop));
  }
  Result<UsersAndProjects> fetch_users_projects(model::Window /*window*/,
                                                std::stop_token /*stop*/) override {
    return script_.people();
  }
  Result<ProjectLeads> fetch_leads(const std::stop_token& /*stop*/) override {
    return script_.leads();
  }

 private:
  Script& script_;
};

class FakeUpdater final : public Updater {
 public:
  explicit FakeUpdater(Script& script) : script_(script) {}
  Result<Missing> update(const UpdateRequest& request,
                         std::vector<model::Unit>& units,
                         std::stop_token /*stop*/) override {
    return script_.update(request, units);
  }
  void release(std::int64_t complete_ms) override { script_.released.push_back(complete_ms); }
  [[nodiscard]] std::chrono::milliseconds settle() const override { return script_.settle; }
  [[nodiscard]] std::chrono::milliseconds shortest_window() const override {
    return script_.shortest;
  }

 private:
  Script& script_;
};

struct LoopFixture {
  std::unique_ptr<UpdateLoop> loop() {
    std::vector<UpdateSource> sources;
    for (auto& [id, script] : scripts) {
      UpdateSource source{.cluster = {.id = id, .manager = "fake", .updaters = {}},
                          .manager = std::make_unique<FakeManager>(script),
                          .updaters = {}};
      source.updaters.push_back({.id = "up", .updater = std::make_unique<FakeUpdater>(script)});
      sources.push_back(std::move(source));
    }
    auto made = UpdateLoop::create(options, std::move(sources), writer, registry, clock);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return std::move(*made);
  }

  UpdateOptions options;
  FakeWriter writer;
  metrics::Registry registry{"test", "the test"};
  testing::FakeClock clock;
  std::map<std::string, Script> scripts{{"a", {}}};
};

inline model::Unit unit(const std::string& uuid, std::int64_t ended_ms = 0) {
  model::Unit u;
  u.uuid = uuid;
  u.started_at = "2026";
  u.ended_at_ts = ended_ms;
  return u;
}

/// One job of the simulated cluster. Times in seconds since kDay.
struct Job {
  std::string uuid, user, project;
  std::int64_t submit = 0, start = 0, end = 0;
  double cpus = 1;
  double watts = 0;
  double use_before = 0, use_after = 0;  ///< % of its CPUs, before and after the middle

  [[nodiscard]] double overlap(std::int64_t from, std::int64_t to) const {
    return static_cast<double>(
        std::max<std::int64_t>(std::min(end, to) - std::max(start, from), 0));
  }
};

/// Returns what the manager would report at the window's end.
inline std::vector<model::Unit> units_of(const std::vector<Job>& jobs, model::Window window) {
  const auto [from, to] = in_seconds(window);
  std::vector<model::Unit> units;
  for (const auto& job : jobs) {
    if (job.submit > to || job.end + 60 < from) {
      continue;  // the last minute is reported again, as sacct may do
    }
    model::Unit one;
    one.resource_manager = "slurm";
    one.uuid = job.uuid;
    one.name = "job " + job.uuid;
    one.username = job.user;
    one.project = job.project;
    one.created_at = "created";
    one.created_at_ts = kDay + job.submit * 1000;
    one.started_at = "Unknown";
    one.ended_at = "Unknown";
    one.state = "PENDING";
    if (job.start < to) {
      one.started_at = std::to_string(job.start);
      one.started_at_ts = kDay + job.start * 1000;
      one.state = "RUNNING";
    }
    if (job.end <= to) {
      one.ended_at = std::to_string(job.end);
      one.ended_at_ts = kDay + job.end * 1000;
      one.state = "COMPLETED";
    }
    // A job that ended before the window is reported with its whole time.
    const double walltime =
        job.end <= from ? static_cast<double>(job.end - job.start) : job.overlap(from, to);
    one.total_time_seconds = {{"walltime", walltime},
                              {"alloc_cputime", job.cpus * walltime},
                              {"alloc_cpumemtime", walltime},
                              {"alloc_gputime", 0},
                              {"alloc_gpumemtime", 0}};
    units.push_back(std::move(one));
  }
  return units;
}

}  // namespace ceems::ingest
