// Plays histories of a cluster with a real database: interruptions, the length of windows, and the
// boundaries of days must not change the result.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "base/time/time_zone.h"
#include "ingest/update_loop_test_support.h"
#include "store/database.h"
#include "store/factory/open_database.h"
#include "store/json.h"
#include "store/schema/tables.h"
#include "store/sqlite/connection.h"
#include "testing/histories.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

using model::Metric;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using store::sqlite::Connection;
using store::sqlite::OpenMode;

void set(model::Unit& one, Metric metric, const std::string& key, double value) {
  one.metric(metric)[key] = value;
  one.has_metric[static_cast<std::size_t>(metric)] = true;
}

/// Adds what a TSDB with exact values would add.
void add_metrics(const std::vector<Job>& jobs,
                 const UpdateRequest& request,
                 std::vector<model::Unit>& units) {
  const auto [from, to] = in_seconds(request.window);
  const auto wanted = [&request](std::string_view part) {
    return request.parts.empty() || std::ranges::find(request.parts, part) != request.parts.end() ||
           std::ranges::find(request.parts, "*") != request.parts.end();
  };
  for (auto& one : units) {
    const auto found = std::ranges::find(jobs, one.uuid, &Job::uuid);
    const double walltime = found == jobs.end() ? 0 : found->overlap(from, to);
    if (walltime <= 0) {
      continue;
    }
    const Job& job = *found;
    const std::int64_t middle = job.start + (job.end - job.start) / 2;
    const double before = job.overlap(from, std::min(to, middle));
    if (wanted("avg_cpu_usage.global")) {
      set(one, Metric::kAvgCpuUsage, "global",
          (before * job.use_before + (walltime - before) * job.use_after) / walltime);
    }
    if (wanted("avg_cpu_mem_usage.global")) {
      set(one, Metric::kAvgCpuMemUsage, "global", job.use_after);
    }
    if (wanted("total_cpu_energy_usage_kwh.total")) {
      set(one, Metric::kTotalCpuEnergyUsageKwh, "total", job.watts * walltime / 3.6e6);
    }
    if (wanted("total_io_read_stats.bytes_total")) {
      set(one, Metric::kTotalIoReadStats, "bytes_total", 512 * walltime);
    }
  }
}

std::vector<Job> random_jobs(std::mt19937_64& random, std::int64_t span) {
  const auto below = [&random](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  std::vector<Job> jobs(static_cast<std::size_t>(2 + below(4)));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Job& job = jobs[i];
    job.uuid = std::to_string(100 + i);
    job.user = "u" + std::to_string(below(2));
    job.project = "p" + std::to_string(below(2));
    job.submit = 1 + below(span / 2);
    job.start = job.submit + below(1000);
    job.end = std::min(job.start + 1 + below(below(2) == 0 ? 100 : span), span - 120);
    job.start = std::min(job.start, job.end - 1);
    job.submit = std::min(job.submit, job.start);
    job.cpus = static_cast<double>(1 + below(8));
    job.watts = static_cast<double>(below(500));
    job.use_before = static_cast<double>(below(1000)) / 10;
    job.use_after = static_cast<double>(below(1000)) / 10;
  }
  return jobs;
}

/// Passes calls on to the real writer, or fails as a test demands.
class FaultyWriter final : public store::Writer {
 public:
  enum class Fault { kNone, kBefore, kAfter };  ///< whether it fails before or after the commit

  explicit FaultyWriter(store::Writer& real) : real_(real) {}

  Result<std::optional<std::int64_t>> watermark(std::string_view cluster_id) override {
    if (fault == Fault::kBefore) {
      return fail(ErrorCode::kUnavailable, "database is locked");
    }
    return real_.watermark(cluster_id);
  }
  Result<store::WriteReport> write(const store::ClusterUpdate& update) override {
    if (fault == Fault::kBefore) {
      return fail(ErrorCode::kUnavailable, "database or disk is full");
    }
    auto report = real_.write(update);
    if (fault == Fault::kAfter) {
      return fail(ErrorCode::kUnavailable, "connection lost at COMMIT");
    }
    return report;
  }
  Result<> write_admins(std::string_view source, const std::vector<std::string>& names) override {
    return real_.write_admins(source, names);
  }
  Result<> add_admins(std::string_view source, const std::vector<std::string>& names) override {
    return real_.add_admins(source, names);
  }
  Result<> purge(std::int64_t cutoff_ms, const std::stop_token& stop) override {
    return real_.purge(cutoff_ms, stop);
  }
  [[nodiscard]] bool keeps_gaps() const override { return real_.keeps_gaps(); }
  Result<std::vector<store::Gap>> gaps(std::string_view cluster_id) override {
    return real_.gaps(cluster_id);
  }
  Result<std::vector<model::Unit>> gap_units(std::int64_t gap_id) override {
    return real_.gap_units(gap_id);
  }
  Result<> fill_gap(const store::GapFill& fill) override {
    if (fault == Fault::kBefore) {
      return fail(ErrorCode::kUnavailable, "database or disk is full");
    }
    auto done = real_.fill_gap(fill);
    if (fault == Fault::kAfter) {
      return fail(ErrorCode::kUnavailable, "connection lost at COMMIT");
    }
    return done;
  }

  Fault fault = Fault::kNone;

 private:
  store::Writer& real_;
};

/// A database, a clock, and clusters that run simulated jobs.
class History : public ::testing::Test {
 protected:
  void open(const std::string& zone = "UTC") {
    auto opened = store::open_database({.directory = dir_.path().string(), .time_zone = zone},
                                       database_clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    database_ = std::move(*opened);
    options_.time_zone = zone;
    options_.purge = false;
  }

  std::unique_ptr<UpdateLoop> loop(const std::string& cluster,
                                   Script& script,
                                   store::Writer& writer,
                                   const Clock& clock) {
    UpdateSource source{.cluster = {.id = cluster, .manager = "slurm", .updaters = {}},
                        .manager = std::make_unique<FakeManager>(script),
                        .updaters = {}};
    source.updaters.push_back({.id = "up", .updater = std::make_unique<FakeUpdater>(script)});
    std::vector<UpdateSource> sources;
    sources.push_back(std::move(source));
    auto made = UpdateLoop::create(options_, std::move(sources), writer, registry_, clock);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return std::move(*made);
  }

  static Script script_of(const std::vector<Job>& jobs) {
    Script script;
    script.units = [&jobs](model::Window window, const auto&) { return units_of(jobs, window); };
    script.update = [&jobs](const UpdateRequest& request, std::vector<model::Unit>& units) {
      add_metrics(jobs, request, units);
      return Missing{};
    };
    script.people = [&jobs] {
      UsersAndProjects people;
      std::map<std::string, std::set<std::string>> projects;
      for (const auto& job : jobs) {
        projects[job.user].insert(job.project);
      }
      for (const auto& [user, of_user] : projects) {
        people.users.push_back({.name = user, .projects = {of_user.begin(), of_user.end()}});
      }
      return people;
    };
    return script;
  }

  /// All rows of a cluster: a key, and the numbers by name.
  using Rows = std::map<std::string, std::map<std::string, double>>;
  Rows rows(const std::string& cluster) {
    constexpr std::array kMaps{"total_time_seconds",      "avg_cpu_usage",
                               "avg_cpu_mem_usage",       "total_cpu_energy_usage_kwh",
                               "total_cpu_emissions_gms", "avg_gpu_usage",
                               "avg_gpu_mem_usage",       "total_gpu_energy_usage_kwh",
                               "total_gpu_emissions_gms", "total_io_write_stats",
                               "total_io_read_stats",     "total_ingress_stats",
                               "total_egress_stats"};
    constexpr std::array<std::array<const char*, 2>, 3> kTables{
        {{"units",
          "uuid||'/'||name||'/'||project||'/'||username||'/'||created_at||'/'||started_at||'/'||"
          "started_at_ts||'/'||ended_at||'/'||ended_at_ts||'/'||state||'/'||ignore"},
         {"usage", "username||'/'||project||'/'||num_units"},
         {"daily_usage", "username||'/'||project||'/'||last_updated_at||'/'||num_units"}}};
    auto connection = Connection::open((dir_.path() / "ceems.db").string(), OpenMode::kReadOnly);
    Rows result;
    for (const auto& [table, key] : kTables) {
      std::string sql = std::string("SELECT ") + key;
      for (const char* map : kMaps) {
        sql += std::string(",") + map;
      }
      auto statement =
          connection->prepare(sql + " FROM " + table + " WHERE cluster_id='" + cluster + "'");
      EXPECT_TRUE(statement) << (statement ? "" : statement.error().message);
      while (*statement->step()) {
        auto& row = result[std::string(table) + " " + std::string(statement->text(0))];
        for (std::size_t i = 0; i < kMaps.size(); ++i) {
          const auto map = store::parse_metric_map(statement->text(static_cast<int>(i) + 1));
          for (const auto& [name, value] : *map) {
            row[std::string(kMaps.at(i)) + "." + name] = value;
          }
        }
      }
    }
    auto people =
        connection->prepare("SELECT name||projects FROM users WHERE cluster_id='" + cluster + "'");
    while (*people->step()) {
      result["users " + std::string(people->text(0))];
    }
    return result;
  }

  static ::testing::AssertionResult same(const Rows& one, const Rows& other) {
    for (const auto& [key, row] : one) {
      const auto found = other.find(key);
      if (found == other.end()) {
        return ::testing::AssertionFailure() << "missing: " << key;
      }
      for (const auto& [name, value] : row) {
        const auto number = found->second.find(name);
        if (number == found->second.end() ||
            std::abs(number->second - value) > 1e-9 * std::max(1.0, std::abs(value))) {
          return ::testing::AssertionFailure()
                 << key << " " << name << ": " << value << ", but "
                 << (number == found->second.end() ? NAN : number->second);
        }
      }
      if (row.size() != found->second.size()) {
        return ::testing::AssertionFailure() << "more values: " << key;
      }
    }
    if (one.size() != other.size()) {
      return ::testing::AssertionFailure() << other.size() - one.size() << " more rows";
    }
    return ::testing::AssertionSuccess();
  }

  testing::TempDir dir_;
  metrics::Registry registry_{"test", "the test"};
  testing::FakeClock database_clock_;
  std::unique_ptr<store::Database> database_;
  UpdateOptions options_;
};

/// The failures injected into one history while it is played.
class Trouble {
 public:
  Trouble(std::mt19937_64& random, Script& script, FaultyWriter& writer)
      : random_(random), script_(script), healthy_(script), writer_(writer) {}

  void heal() {
    script_ = healthy_;
    writer_.fault = FaultyWriter::Fault::kNone;
  }

  /// Injects a random failure, or none.
  void strike() {
    heal();
    switch (random_() % 10) {
      case 0:
        script_.units = [](auto, const auto&) -> Result<std::vector<model::Unit>> {
          return fail(ErrorCode::kUnavailable, "sacct: half of the output");
        };
        break;
      case 1:
        script_.units = [](auto, const auto&) -> Result<std::vector<model::Unit>> {
          throw std::bad_alloc();
        };
        break;
      case 2:
        script_.people = []() -> Result<UsersAndProjects> {
          return fail(ErrorCode::kUnavailable, "sacctmgr");
        };
        break;
      case 3:
        script_.people = [] { return UsersAndProjects{}; };
        break;
      case 4:
        // Half of the units already have metrics when the TSDB goes down.
        script_.update = [this](const UpdateRequest& request,
                                std::vector<model::Unit>& units) -> Result<Missing> {
          std::vector<model::Unit> half(
              units.begin(), units.begin() + static_cast<std::ptrdiff_t>(units.size() / 2));
          static_cast<void>(healthy_.update(request, half));
          std::ranges::copy(half, units.begin());
          return fail(ErrorCode::kTimeout, "TSDB: no answer");
        };
        break;
      case 5:
      case 6:
        if (writer_.keeps_gaps()) {
          lose_parts(random_() % 2 == 0);
        }
        break;
      case 7:
        writer_.fault = FaultyWriter::Fault::kBefore;
        break;
      case 8:
        writer_.fault = FaultyWriter::Fault::kAfter;
        break;
      default:
        break;
    }
  }

 private:
  void lose_parts(bool refused) {
    script_.update = [this, refused](const UpdateRequest& request,
                                     std::vector<model::Unit>& units) -> Result<Missing> {
      auto done = healthy_.update(request, units);
      Missing missing{
          .parts = {}, .cause = {ErrorCode::kUnavailable, "a query failed"}, .lasting = refused};
      for (const auto& [metric, key] : {std::pair(Metric::kAvgCpuUsage, "global"),
                                        std::pair(Metric::kTotalCpuEnergyUsageKwh, "total")}) {
        const std::string part = fmt::format("{}.{}", store::column_name(metric), key);
        const bool wanted =
            request.parts.empty() || std::ranges::find(request.parts, part) != request.parts.end();
        for (auto& one : units) {
          one.metric(metric).clear();
          one.has_metric[static_cast<std::size_t>(metric)] = false;
        }
        if (wanted) {
          missing.parts.push_back(part);
        }
      }
      return missing;
    };
  }

  std::mt19937_64& random_;
  Script& script_;
  const Script healthy_;
  FaultyWriter& writer_;
};

Clock::SystemTime history_at(std::int64_t second) {
  return Clock::SystemTime(milliseconds(kDay + second * kSecondMs));
}

TEST_F(History, EndsTheSameHoweverOftenItWasInterrupted) {
  open();
  options_.max_update_interval = hours(3);
  options_.update_interval = minutes(1);  // how long a step forward of the clock is not trusted
  constexpr std::int64_t kSpan = 15'000;
  constexpr std::int64_t kEnd = kSpan + 600;
  for (std::uint64_t number = 1; number <= testing::histories(250); ++number) {
    std::mt19937_64 random(number);
    const auto jobs = random_jobs(random, kSpan);
    const std::string whole_id = "whole" + std::to_string(number);
    const std::string broken_id = "broken" + std::to_string(number);

    Script whole = script_of(jobs);
    testing::FakeClock clock;
    clock.advance(seconds(kEnd));
    EXPECT_EQ(loop(whole_id, whole, database_->writer(), clock)->run_round(), 2U);

    Script script = script_of(jobs);
    FaultyWriter writer(database_->writer());
    testing::FakeClock unsteady;
    Trouble trouble(random, script, writer);
    auto broken = loop(broken_id, script, writer, unsteady);
    std::int64_t now = 0;
    while (now < kSpan) {
      const auto step = std::min(static_cast<std::int64_t>(1 + random() % 5000), kSpan - now);
      now += step;
      unsteady.advance(seconds(step));
      trouble.strike();
      if (random() % 4 == 0) {  // killed
        broken = loop(broken_id, script, writer, unsteady);
      } else if (now > step && random() % 4 == 0) {
        // The clock steps, and is corrected before the next round. (A program that has just started
        // could not notice the step.)
        unsteady.step_to(history_at(now + static_cast<std::int64_t>(random() % 200'000) - 100'000));
      }
      broken->run_round();
      unsteady.step_to(history_at(now));
    }
    trouble.heal();
    for (const auto step : {seconds(300), seconds(150), seconds(150)}) {
      unsteady.advance(step);
      broken->run_round();
    }
    ASSERT_TRUE(same(rows(whole_id), rows(broken_id))) << "history " << number;
    ASSERT_TRUE(database_->writer().gaps(broken_id)->empty()) << "history " << number;
  }
}

class ZoneHistory : public History,
                    public ::testing::WithParamInterface<std::pair<const char*, std::int64_t>> {};

/// Days of 23, 24, 24.5 and 25 hours, and one that does not exist: every second counts on its own
/// day.
TEST_P(ZoneHistory, DaysHoldWhatWasUsedOnThem) {
  const auto [zone_name, change] = GetParam();
  open(zone_name);
  const auto zone = TimeZone::find(zone_name).value();
  // From two days before the change to two days after it.
  constexpr std::int64_t kDays = 86'400;
  const std::int64_t begin = zone.day_start(change - 2 * kDays * kSecondMs);
  const std::int64_t base = (begin - kDay) / kSecondMs;
  options_.update_from = zone.local(begin);
  std::set<std::string> labels;
  for (int round = 0; round < 3; ++round) {
    std::mt19937_64 random(static_cast<std::uint64_t>(round));
    auto jobs = random_jobs(random, 4 * kDays);
    for (auto& job : jobs) {
      job.submit += base;
      job.start += base;
      job.end += base;
      job.user = "u";
      job.project = "p";
    }
    const std::string id = "zone" + std::to_string(round);
    Script script = script_of(jobs);
    testing::FakeClock clock;
    clock.step_to(history_at(base));
    options_.max_update_interval = round == 0 ? hours(100) : hours(5);
    auto updates = loop(id, script, database_->writer(), clock);
    for (std::int64_t done = 0; done < 4 * kDays;) {
      const std::int64_t step =
          round == 0 ? 4 * kDays : static_cast<std::int64_t>(60 + random() % 40'000);
      done += step;
      clock.advance(seconds(step));
      updates->run_round();
    }
    std::map<std::string, double> expected;
    double total = 0;
    for (std::int64_t day = begin; day < begin + 5 * kDays * kSecondMs;) {
      const std::int64_t next = zone.day_start(day + 36 * 3600 * kSecondMs);
      double cputime = 0;
      for (const auto& job : jobs) {
        cputime += job.cpus * job.overlap((day - kDay) / kSecondMs, (next - kDay) / kSecondMs);
      }
      if (cputime > 0) {
        expected[zone.local(day).substr(0, 10)] = cputime;
      }
      total += cputime;
      day = next;
    }
    std::map<std::string, double> seen;
    double usage = 0;
    for (const auto& [key, row] : rows(id)) {
      const auto cputime = row.find("total_time_seconds.alloc_cputime");
      if (key.starts_with("daily_usage u/p/") && cputime->second > 0) {
        seen[key.substr(std::string_view("daily_usage u/p/").size(), 10)] = cputime->second;
      } else if (key.starts_with("usage ")) {
        usage += cputime->second;
      }
    }
    EXPECT_EQ(seen, expected) << id;
    EXPECT_EQ(usage, total) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(
    ,
    ZoneHistory,
    ::testing::Values(std::pair("Europe/Paris", 1'774'746'000'000),         // 2026-03-29, 23 h
                      std::pair("Europe/Paris", 1'792'890'000'000),         // 2026-10-25, 25 h
                      std::pair("America/New_York", 1'772'953'200'000),     // 2026-03-08
                      std::pair("America/New_York", 1'793'512'800'000),     // 2026-11-01
                      std::pair("Australia/Lord_Howe", 1'775'314'800'000),  // 2026-04-05, 24.5 h
                      std::pair("Australia/Lord_Howe", 1'791'041'400'000),  // 2026-10-04, 23.5 h
                      std::pair("Pacific/Apia", 1'325'239'200'000)));       // no 2011-12-30

TEST_F(History, UnitsThatAreIgnoredCountInUsage) {
  open();
  const std::vector<Job> jobs{
      {.uuid = "7", .user = "u", .project = "p", .submit = 10, .start = 20, .end = 50, .cpus = 2}};
  Script script = script_of(jobs);
  const auto update = script.update;
  script.update = [&update](const UpdateRequest& request, std::vector<model::Unit>& units) {
    units.at(0).ignore = true;
    return update(request, units);
  };
  testing::FakeClock clock;
  clock.advance(minutes(10));
  EXPECT_EQ(loop("hpc", script, database_->writer(), clock)->run_round(), 1U);
  const auto all = rows("hpc");
  ASSERT_TRUE(all.contains("usage u/p/1"));
  EXPECT_EQ(all.at("usage u/p/1").at("total_time_seconds.alloc_cputime"), 60);
  EXPECT_EQ(all.at("daily_usage u/p/2026-01-01T00:00:00/1").at("total_time_seconds.alloc_cputime"),
            60);
}

TEST_F(History, RightsFollowEveryFetchThatIsNotEmpty) {
  open();
  using Projects = std::vector<std::string>;
  std::map<std::string, Projects> lists{{"ada", {"p", "q"}}, {"bob", {"p"}}, {"eve", {"q"}}};
  bool broken = false;
  Script script;
  script.people = [&]() -> Result<UsersAndProjects> {
    if (broken) {
      return fail(ErrorCode::kUnavailable, "sacctmgr: exit status 1");
    }
    UsersAndProjects people;
    std::map<std::string, Projects> members;
    for (const auto& [user, projects] : lists) {
      people.users.push_back({.name = user, .projects = projects});
      for (const auto& project : projects) {
        members[project].push_back(user);
      }
    }
    for (const auto& [project, users] : members) {
      people.projects.push_back({.name = project, .users = users});
    }
    return people;
  };
  script.units = [](auto, const auto&) {
    std::vector<model::Unit> units;
    for (const char* project : {"p", "q"}) {
      auto one = unit(std::string("of-") + project);
      one.project = project;
      one.username = "somebody";
      units.push_back(one);
    }
    return units;
  };
  testing::FakeClock clock;
  auto updates = loop("hpc", script, database_->writer(), clock);
  const auto refresh = [&] {
    clock.advance(minutes(15));
    EXPECT_EQ(updates->run_round(), 1U);
  };
  const auto may_see = [&](const std::string& user, const std::string& project) {
    const auto count =
        database_->reader().count_member_units({.names = {user}}, {"hpc"}, {"of-" + project});
    return count && *count == 1;
  };
  refresh();
  EXPECT_TRUE(may_see("ada", "p") && may_see("ada", "q") && may_see("bob", "p"));
  EXPECT_FALSE(may_see("bob", "q"));
  lists["ada"] = {"q"};  // removed from a project
  refresh();
  EXPECT_FALSE(may_see("ada", "p"));
  EXPECT_TRUE(may_see("ada", "q") && may_see("bob", "p"));
  lists["eve"] = {};  // an empty list of one user is valid
  refresh();
  EXPECT_FALSE(may_see("eve", "q"));
  lists.erase("bob");  // bob is gone, and project p with him
  refresh();
  EXPECT_FALSE(may_see("bob", "p"));
  EXPECT_TRUE(may_see("ada", "q"));
  broken = true;
  refresh();
  EXPECT_TRUE(may_see("ada", "q"));
  broken = false;
  const auto known = lists;
  lists.clear();  // an empty list of all users is considered an error
  refresh();
  EXPECT_TRUE(may_see("ada", "q"));
  lists = known;
  refresh();
  EXPECT_TRUE(may_see("ada", "q"));
  EXPECT_FALSE(may_see("bob", "p"));
}

}  // namespace
}  // namespace ceems::ingest
