#include "ingest/manager/openstack/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::ingest::openstack {
namespace {

std::int64_t at(std::string_view text) {
  return parse_utc("2024-10-15T" + std::string(text)).value_or(-1);
}

/// 16:15 to 16:45 in Paris.
model::Window window() {
  return {.start_ms = at("14:15:00"), .end_ms = at("14:45:00")};
}

Server server(std::string status, std::string_view launched, std::string_view updated) {
  Server made{.id = "s1", .name = "web", .status = std::move(status)};
  made.created_ms = at("13:00:00");
  made.updated_ms = at(updated);
  if (!launched.empty()) {
    made.launched_ms = at(launched);
  }
  made.flavor = {.id = {}, .detailed = true, .name = "g1", .vcpus = 2, .ram_mib = 100, .vgpus = 1};
  return made;
}

struct ServerFixture {
  ServerFixture() { zone = TimeZone::find("Europe/Paris").value(); }
  std::vector<model::Unit> units(const Server& of, model::Window in = window()) {
    history.begin(in);
    return to_units(of, "proj", "ann", in, zone, history);
  }
  model::Unit unit(const Server& of, model::Window in = window()) {
    auto all = units(of, in);
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? model::Unit{} : all[0];
  }
  double walltime(const Server& of, model::Window in = window()) {
    return unit(of, in).total_time_seconds.at("walltime");
  }
  TimeZone zone;
  ServerHistory history;
};

model::Window next(model::Window of) {
  return {.start_ms = of.end_ms, .end_ms = of.end_ms + 30 * kMinuteMs};
}

TEST(OpenstackUnit, HasTheFieldsOfTheServer) {
  ServerFixture f;
  Server s = server("ACTIVE", "14:29:34", "14:29:34");
  s.metadata = {{"k", "v\"\n"}};
  s.tags = {"t"};
  s.reservation_id = "r-1";
  s.availability_zone = "nova";
  s.power_state = 1;
  s.flavor.disk_gb = 20;
  s.flavor.swap_mb = 5;
  s.flavor.extra_specs = {{"resources:VGPU", "1"}};
  const auto unit = f.unit(s);
  EXPECT_EQ(unit.uuid, "s1");
  EXPECT_EQ(unit.name, "web");
  EXPECT_EQ(unit.project, "proj");
  EXPECT_EQ(unit.username, "ann");
  EXPECT_EQ(unit.groupname, "");
  EXPECT_EQ(unit.state, "ACTIVE");
  EXPECT_EQ(unit.created_at, "2024-10-15T15:00:00+0200");
  EXPECT_EQ(unit.started_at, "2024-10-15T16:29:34+0200");
  EXPECT_EQ(unit.started_at_ts, at("14:29:34"));
  EXPECT_EQ(unit.ended_at, "N/A");
  EXPECT_EQ(unit.ended_at_ts, 0);
  EXPECT_EQ(unit.elapsed, "00:15:26");
  EXPECT_EQ(unit.allocation,
            R"({"disk":20,"extra_specs":{"resources:VGPU":"1"},"mem":100,"name":"g1","swap":5,)"
            R"("vcpus":2,"vgpus":1})");
  EXPECT_EQ(unit.tags, R"({"az":"nova","metadata":{"k":"v\"\n"},"power_state":"RUNNING",)"
                       R"("reservation_id":"r-1","tags":["t"]})");
  EXPECT_EQ(unit.total_time_seconds, (model::MetricMap{{"walltime", 926},
                                                       {"alloc_cputime", 1852},
                                                       {"alloc_cpumemtime", 92'600},
                                                       {"alloc_gputime", 926},
                                                       {"alloc_gpumemtime", 926}}));
}

TEST(OpenstackUnit, OfOneOfSeveralRegionsNamesItInTheTags) {
  ServerFixture f;
  Server s = server("ACTIVE", "14:00:00", "14:00:00");
  s.region = "north";
  EXPECT_THAT(f.unit(s).tags, ::testing::HasSubstr(R"("region":"north")"));
}

TEST(OpenstackUnit, ThatWasDeletedCountsUpToItsEnd) {
  ServerFixture f;
  Server s = server("DELETED", "13:32:43", "14:32:10");
  s.terminated_ms = at("14:32:09");
  const auto unit = f.unit(s);
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 1029);
  EXPECT_EQ(unit.elapsed, "00:59:26");
  EXPECT_EQ(unit.ended_at, "2024-10-15T16:32:09+0200");
  EXPECT_EQ(unit.ended_at_ts, at("14:32:09"));
  EXPECT_EQ(unit.state, "DELETED");
}

TEST(OpenstackUnit, LaunchedAndDeletedInTheWindowCountsBetween) {
  ServerFixture f;
  Server s = server("SOFT_DELETED", "14:20:00", "14:32:00");
  s.terminated_ms = at("14:30:00");
  EXPECT_EQ(f.walltime(s), 600);
}

TEST(OpenstackUnit, DeletedBeforeTheWindowAddsNothing) {
  ServerFixture f;
  Server s = server("DELETED", "13:32:43", "14:10:00");
  s.terminated_ms = at("14:10:00");
  EXPECT_EQ(f.walltime(s), 0);
}

TEST(OpenstackUnit, DeletedAfterTheWindowStillRunsAtItsEnd) {
  ServerFixture f;
  Server s = server("DELETED", "13:32:43", "15:00:00");
  s.terminated_ms = at("15:00:00");
  const auto unit = f.unit(s);
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 1800);
  EXPECT_EQ(unit.ended_at_ts, 0);
  EXPECT_EQ(unit.state, "ACTIVE");
  const auto later = f.unit(s, next(window()));
  EXPECT_EQ(later.total_time_seconds.at("walltime"), 900);
  EXPECT_EQ(later.ended_at_ts, at("15:00:00"));
  EXPECT_EQ(later.state, "DELETED");
}

TEST(OpenstackUnit, LaunchedAtTheEndOfTheWindowIsThereAndALaterOneIsNot) {
  Server s = server("ACTIVE", "14:45:00", "14:45:00");
  const auto unit = ServerFixture().unit(s);
  EXPECT_EQ(unit.started_at_ts, window().end_ms);
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 0);
  s.launched_ms = window().end_ms + 1;
  EXPECT_TRUE(ServerFixture().units(s).empty());
  s.launched_ms.reset();
  s.created_ms = window().end_ms;
  EXPECT_EQ(ServerFixture().units(s).size(), 1U);
  s.created_ms = window().end_ms + 1;
  EXPECT_TRUE(ServerFixture().units(s).empty());
}

TEST(OpenstackUnit, DeletedAtTheEndOfTheWindowHasEndedAndALaterOneHasNot) {
  Server s = server("DELETED", "14:15:00", "14:46:00");
  for (const std::int64_t late : {-1, 0, 1}) {
    s.terminated_ms = window().end_ms + late;
    const auto unit = ServerFixture().unit(s);
    EXPECT_EQ(unit.ended_at_ts, late <= 0 ? window().end_ms + late : 0) << late;
    EXPECT_EQ(unit.state, late <= 0 ? "DELETED" : "ACTIVE") << late;
    EXPECT_EQ(unit.total_time_seconds.at("walltime"), late < 0 ? 1799.999 : 1800) << late;
  }
  // Deleted without ever having run.
  s.launched_ms.reset();
  s.terminated_ms = window().end_ms;
  EXPECT_EQ(ServerFixture().unit(s).ended_at_ts, window().end_ms);
  s.terminated_ms = window().end_ms + 1;
  EXPECT_EQ(ServerFixture().unit(s).ended_at_ts, 0);
  EXPECT_EQ(ServerFixture().unit(s).state, "BUILD");
}

TEST(OpenstackUnit, CountsFromAndToTheMillisecond) {
  Server s = server("ACTIVE", "14:15:00", "14:15:00");
  for (const std::int64_t late : {-1, 0, 1}) {
    s.launched_ms = window().start_ms + late;
    EXPECT_EQ(ServerFixture().walltime(s), late > 0 ? 1799.999 : 1800) << late;
  }
  Server deleted = server("DELETED", "14:00:00", "14:15:00");
  for (const std::int64_t late : {-1, 0, 1}) {
    deleted.terminated_ms = window().start_ms + late;
    EXPECT_EQ(ServerFixture().walltime(deleted), late > 0 ? 0.001 : 0) << late;
  }
  Server stopped = server("SHUTOFF", "14:00:00", "14:00:00");
  for (const std::int64_t late : {-1, 0, 1}) {
    stopped.updated_ms = window().end_ms + late;
    ServerFixture f;
    EXPECT_EQ(f.walltime(stopped), late < 0 ? 1799.999 : 1800) << late;
    EXPECT_EQ(f.history.find("s1"), nullptr);
    f.history.begin(next(window()));
    EXPECT_EQ(f.history.find("s1")->running, late > 0) << late;
  }
}

TEST(OpenstackUnit, RunningThroughCountsTheWholeWindow) {
  ServerFixture f;
  Server s = server("ACTIVE", "13:16:55", "14:10:56");
  s.flavor.vcpus = 128;
  s.flavor.ram_mib = 192'000;
  const auto unit = f.unit(s);
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 1800);
  EXPECT_EQ(unit.total_time_seconds.at("alloc_cputime"), 230'400);
  EXPECT_EQ(unit.total_time_seconds.at("alloc_cpumemtime"), 345'600'000);
  EXPECT_EQ(unit.elapsed, "01:28:05");
}

TEST(OpenstackUnit, KeepsItsTimeWhenItsMetadataChange) {
  ServerFixture f;
  EXPECT_EQ(f.walltime(server("ACTIVE", "13:16:55", "13:16:55")), 1800);
  EXPECT_EQ(f.walltime(server("ACTIVE", "13:16:55", "15:10:00"), next(window())), 1800);
  // This also holds in the first window after startup, when the previous state is unknown.
  ServerFixture other;
  EXPECT_EQ(other.walltime(server("ACTIVE", "13:16:55", "14:40:00")), 1800);
}

TEST(OpenstackUnit, StoppedInTheWindowCountsUpToThen) {
  for (const char* status : {"SHUTOFF", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "ERROR"}) {
    ServerFixture f;
    EXPECT_EQ(f.walltime(server(status, "13:16:55", "14:25:00")), 600) << status;
    // A server that is off counts no time, even if `updated` changes.
    EXPECT_EQ(f.walltime(server(status, "13:16:55", "15:10:00"), next(window())), 0) << status;
  }
  ServerFixture f;
  EXPECT_EQ(f.walltime(server("SHUTOFF", "14:20:00", "14:25:00")), 300) << "launched in the window";
  EXPECT_EQ(ServerFixture().walltime(server("SHUTOFF", "13:16:55", "14:00:00")), 0);
}

TEST(OpenstackUnit, StoppedAfterTheWindowCountsItWhole) {
  ServerFixture f;
  EXPECT_EQ(f.walltime(server("SHUTOFF", "13:16:55", "14:55:00")), 1800);
  EXPECT_EQ(f.walltime(server("SHUTOFF", "13:16:55", "14:55:00"), next(window())), 600);
}

TEST(OpenstackUnit, StartedAgainCountsFromThen) {
  ServerFixture f;
  EXPECT_EQ(f.walltime(server("SHUTOFF", "13:16:55", "14:00:00")), 0);
  EXPECT_EQ(f.walltime(server("ACTIVE", "13:16:55", "15:05:00"), next(window())), 600);
  EXPECT_EQ(f.walltime(server("ACTIVE", "13:16:55", "15:05:00"), next(next(window()))), 1800);
}

TEST(OpenstackUnit, OfAWindowThatIsAskedForAgainIsTheSame) {
  ServerFixture f;
  EXPECT_EQ(f.walltime(server("ACTIVE", "13:16:55", "13:16:55")), 1800);
  const Server stopped = server("SHUTOFF", "13:16:55", "15:05:00");
  EXPECT_EQ(f.walltime(stopped, next(window())), 1200);
  EXPECT_EQ(f.walltime(stopped, next(window())), 1200);
  model::Window longer = next(window());
  longer.end_ms += 10 * kMinuteMs;
  EXPECT_EQ(f.walltime(stopped, longer), 1200);
  EXPECT_EQ(f.walltime(stopped, next(longer)), 0);
}

TEST(OpenstackUnit, TimeIsTheSameWhateverTheWindows) {
  // The server ran for 25 minutes of an hour that is reported in windows of 60, 30, 20, 5 or 1
  // minutes.
  for (const std::int64_t minutes : {60, 30, 20, 5, 1}) {
    ServerFixture f;
    double sum = 0;
    for (std::int64_t start = at("14:00:00"); start < at("15:00:00");
         start += minutes * kMinuteMs) {
      const model::Window in{.start_ms = start, .end_ms = start + minutes * kMinuteMs};
      const bool stopped = in.end_ms >= at("14:25:00");
      sum += f.walltime(
          server(stopped ? "SHUTOFF" : "ACTIVE", "13:30:00", stopped ? "14:25:00" : "13:30:00"),
          in);
    }
    EXPECT_EQ(sum, 1500) << minutes;
  }
}

TEST(OpenstackUnit, NeverLaunchedHasNoStart) {
  ServerFixture f;
  const auto unit = f.unit(server("BUILD", "", "14:00:00"));
  EXPECT_EQ(unit.started_at, "N/A");
  EXPECT_EQ(unit.started_at_ts, 0);
  EXPECT_EQ(unit.elapsed, "N/A");
  EXPECT_EQ(unit.ended_at_ts, 0);
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 0);
  Server gone = server("DELETED", "", "14:20:00");
  EXPECT_EQ(f.unit(gone).ended_at_ts, at("14:20:00"));
  EXPECT_EQ(f.unit(server("ERROR", "", "14:00:00")).total_time_seconds.at("walltime"), 0);
}

TEST(OpenstackUnit, OfLaterIsLeftOut) {
  ServerFixture f;
  EXPECT_TRUE(f.units(server("ACTIVE", "14:50:00", "14:50:00")).empty());
  Server building = server("BUILD", "", "14:50:00");
  building.created_ms = at("14:50:00");
  EXPECT_TRUE(f.units(building).empty());
}

TEST(OpenstackUnit, ResizedEndsAndBeginsAnew) {
  ServerFixture f;
  EXPECT_EQ(f.walltime(server("ACTIVE", "13:16:55", "13:16:55")), 1800);
  Server resized = server("VERIFY_RESIZE", "14:55:00", "14:55:01");
  resized.flavor.vcpus = 8;
  const auto units = f.units(resized, next(window()));
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0].started_at_ts, at("13:16:55"));
  EXPECT_EQ(units[0].ended_at_ts, at("14:55:00"));
  EXPECT_EQ(units[0].state, "RELAUNCHED");
  EXPECT_EQ(units[0].total_time_seconds.at("walltime"), 600);
  EXPECT_EQ(units[0].total_time_seconds.at("alloc_cputime"), 1200);
  EXPECT_EQ(units[1].started_at_ts, at("14:55:00"));
  EXPECT_EQ(units[1].ended_at_ts, 0);
  EXPECT_EQ(units[1].total_time_seconds.at("walltime"), 1200);
  EXPECT_EQ(units[1].total_time_seconds.at("alloc_cputime"), 9600);
  EXPECT_EQ(f.units(resized, next(next(window()))).size(), 1U);
}

TEST(OpenstackUnit, ResizedAfterTheWindowIsStillTheOldOne) {
  ServerFixture f;
  EXPECT_EQ(f.walltime(server("ACTIVE", "13:16:55", "13:16:55")), 1800);
  Server resized = server("ACTIVE", "15:30:00", "15:30:01");
  resized.flavor.vcpus = 8;
  const auto unit = f.unit(resized, next(window()));
  EXPECT_EQ(unit.started_at_ts, at("13:16:55"));
  EXPECT_EQ(unit.ended_at_ts, 0);
  EXPECT_EQ(unit.total_time_seconds.at("alloc_cputime"), 3600);
  EXPECT_EQ(f.units(resized, next(next(window()))).size(), 2U);
}

}  // namespace
}  // namespace ceems::ingest::openstack
