#pragma once

// What the tests of the managers of batch systems share.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/manager/manager.h"
#include "model/unit.h"
#include "os/command.h"
#include "testing/fake_clock.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {

inline constexpr std::int64_t kStart = 1'775'001'600'000;  // 2026-04-01T00:00:00Z
inline constexpr std::int64_t kMinute = 60'000;
inline constexpr std::int64_t kHour = 60 * kMinute;

/// A job as a fake batch system knows it.
struct FakeJob {
  std::string id;  ///< "6", "6[1]" or "12[3].srv"
  std::string user = "ada";
  std::string project = "fluids";
  std::string name = "";
  std::int64_t start = 0;  ///< ms after kStart
  std::int64_t end = 0;
};

/// A time of the days around kStart, in ms after it, as ctime(3) prints it in the zone that TZ of
/// the command says.
inline std::string ctime_text(const os::Command& command, std::int64_t ms, bool weekday) {
  const auto zone = TimeZone::find(command.environment.at("TZ")).value();
  const std::string text = zone.local(kStart + ms);  // 2026-04-01T00:00:00
  return std::string(weekday ? "Wed " : "") + (text.substr(5, 2) == "03" ? "Mar" : "Apr") + " " +
         (text[8] == '0' ? " " + text.substr(9, 1) : text.substr(8, 2)) + " " + text.substr(11) +
         " " + text.substr(0, 4);
}

/// A manager that runs the commands of `Fake`, which has `now` (ms after kStart) and install().
template <class Fake>
class BatchSystemTest : public ::testing::Test {
 protected:
  explicit BatchSystemTest(ManagerSpec spec) : spec_(std::move(spec)) { system_.install(runner_); }

  Result<std::unique_ptr<ResourceManager>> create(const std::string& extra = "") {
    config_.cluster = {.id = "c1", .manager = std::string(spec_.name), .updaters = {}};
    config_.cli_path = directory_.path().string();
    if (!extra.empty()) {
      config_.extra = config::parse_yaml(extra, "c.yml").value();
    }
    return create_manager(
        spec_, config_,
        {.clock = &clock_, .runner = &runner_, .zone = TimeZone::find("Europe/Paris").value()});
  }
  void set_now(std::int64_t now) {
    system_.now = now;
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kStart + now)));
  }
  /// The units of the window between these times after kStart, at this time after its end.
  Result<std::vector<model::Unit>> fetch(ResourceManager& manager,
                                         std::int64_t from,
                                         std::int64_t until,
                                         std::int64_t delay = kMinute) {
    set_now(until + delay);
    return manager.fetch_units({.start_ms = kStart + from, .end_ms = kStart + until}, {});
  }

  const ManagerSpec spec_;
  testing::FakeClock clock_;
  testing::TempDir directory_;
  testing::FakeRunner runner_;
  Fake system_;
  ClusterConfig config_;
};

/// Where the jobs of many_jobs() begin, in ms after kStart: the hours go on into the next day.
inline constexpr std::int64_t kFirstJob = 20 * kHour;

/// 2,500 jobs of one second to 50 minutes that start within six hours, at more of a time than are
/// asked for in one command. Some start or end on the hour, as windows do.
inline std::vector<FakeJob> many_jobs(const std::function<std::string(int)>& id) {
  std::vector<FakeJob> jobs;
  for (int i = 0; i < 2500; ++i) {
    std::int64_t start = kFirstJob + (i * 2161LL % 21'500) * 1000;
    std::int64_t end = start + (1 + i * 37LL % 3000) * 1000;
    if (i % 500 == 0) {
      start -= start % kHour;
    } else if (i % 500 == 1) {
      end += kHour - end % kHour;
    }
    jobs.push_back({.id = id(i),
                    .user = "user" + std::to_string(i % 50),
                    .project = "p" + std::to_string(i % 11),
                    .start = start,
                    .end = end});
  }
  return jobs;
}

/// Fetches the windows of eight hours. Each job must be counted once, and to the second. `fetch`
/// gets the ends of a window in ms after kStart.
inline void expect_each_is_counted_once(
    const std::vector<FakeJob>& jobs,
    const std::function<Result<std::vector<model::Unit>>(std::int64_t, std::int64_t)>& fetch) {
  std::map<std::string, double> walltime;
  std::map<std::string, std::int64_t> ended;
  for (std::int64_t from = kFirstJob; from < kFirstJob + 8 * kHour; from += kHour) {
    const auto units = fetch(from, from + kHour);
    ASSERT_TRUE(units) << units.error().message;
    for (const auto& unit : *units) {
      walltime[unit.uuid] += unit.total_time_seconds.at("walltime");
      if (unit.ended_at_ts > 0) {
        EXPECT_TRUE(ended.emplace(unit.uuid, unit.ended_at_ts).second) << unit.uuid;
      }
    }
  }
  EXPECT_EQ(ended.size(), jobs.size());
  for (const FakeJob& job : jobs) {
    ASSERT_EQ(ended[job.id], kStart + job.end) << job.id;
    ASSERT_EQ(walltime[job.id], static_cast<double>(job.end - job.start) / 1000) << job.id;
  }
}

}  // namespace ceems::ingest
