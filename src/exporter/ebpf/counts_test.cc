#include "exporter/ebpf/counts.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/ebpf/fake_tables.h"
#include "testing/fake_clock.h"

// Only some of the many counters are set.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace ceems::exporter::ebpf {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kJob = 100;
constexpr std::uint64_t kStep = 101;
constexpr std::uint64_t kOther = 200;

struct CountsTest : ::testing::Test {
  testing::FakeClock clock;
  FakeTables::State state;
  Counts counts{std::make_unique<FakeTables>(state), false, clock};

  CountsTest() {
    clock.advance(std::chrono::hours(1));
    state.cgroups[kStep] = {.ancestors = {kJob, 50, 1}};
    state.cgroups[kOther] = {.ancestors = {50, 1}};
    state.mounts[7] = "scratch";
    state.mounts[8] = "home";
  }

  static UnitSnapshot units(std::map<std::string, std::uint64_t> all,
                            std::string manager = "slurm") {
    UnitSnapshot snapshot;
    snapshot.manager = std::move(manager);
    for (const auto& [uuid, cgroup] : all) {
      Unit unit;
      unit.uuid = uuid;
      unit.cgroup_id = cgroup;
      snapshot.units.push_back(unit);
    }
    return snapshot;
  }

  CountsPage page(const UnitSnapshot& snapshot) {
    clock.advance(std::chrono::seconds(15));
    auto page = counts.page(snapshot);
    EXPECT_TRUE(page) << page.error().message;
    return page.value_or(CountsPage{});
  }

  void set_file(std::uint64_t cgroup, std::uint64_t mount, ebpf_file_value value) {
    const ebpf_file_key key{.cgroup = cgroup, .mount = mount, .root = 1};
    for (auto& [known, old] : state.readings.files) {
      if (std::memcmp(&known, &key, sizeof(key)) == 0) {
        old = value;
        return;
      }
    }
    state.readings.files.emplace_back(key, value);
  }
};

TEST_F(CountsTest, ACgroupBelongsToTheUnitAboveIt) {
  set_file(kStep, 7, {.read_bytes = 10, .reads = 2, .write_bytes = 4096, .writes = 1});
  set_file(kJob, 7, {.read_bytes = 5, .reads = 1});
  set_file(kOther, 7, {.read_bytes = 999, .reads = 9});
  const auto result = page(units({{"42", kJob}}));
  ASSERT_EQ(result.units.size(), 1U);
  const auto& files = result.units.at("42").files;
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files.at("/scratch").io.read_bytes, 15U);
  EXPECT_EQ(files.at("/scratch").io.reads, 3U);
  EXPECT_EQ(files.at("/scratch").io.write_bytes, 4096U);
  EXPECT_EQ(files.at("/scratch").io.writes, 1U);
  EXPECT_FALSE(result.units.at("42").names);
}

TEST_F(CountsTest, MountsAreSeparate) {
  set_file(kJob, 7, {.reads = 1, .read_errors = 1});
  set_file(kJob, 8, {.writes = 2, .write_errors = 2});
  const auto files = page(units({{"42", kJob}})).units.at("42").files;
  EXPECT_EQ(files.at("/scratch").io.read_errors, 1U);
  EXPECT_EQ(files.at("/home").io.write_errors, 2U);
}

TEST_F(CountsTest, WhatAStepDidStaysWithItsJobAndItsRowIsDeleted) {
  set_file(kStep, 7, {.read_bytes = 10, .reads = 2});
  page(units({{"42", kJob}}));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(state.forgotten, IsEmpty());
    page(units({{"42", kJob}}));
  }
  EXPECT_THAT(state.forgotten, ElementsAre("file 101"));
  state.readings.files.clear();
  EXPECT_EQ(page(units({{"42", kJob}})).units.at("42").files.at("/scratch").io.read_bytes, 10U);
  // The step goes on: the kernel has a new row.
  set_file(kStep, 7, {.read_bytes = 3, .reads = 1});
  EXPECT_EQ(page(units({{"42", kJob}})).units.at("42").files.at("/scratch").io.read_bytes, 13U);
}

TEST_F(CountsTest, RowsOfUnknownCgroupsWaitForTheirUnit) {
  set_file(kStep, 7, {.read_bytes = 10, .reads = 2});
  EXPECT_THAT(page(units({})).units, IsEmpty());
  EXPECT_EQ(page(units({{"42", kJob}})).units.at("42").files.at("/scratch").io.read_bytes, 10U);
}

TEST_F(CountsTest, RowsOfNobodyAreDeletedAfterTenMinutes) {
  state.cgroups.clear();
  state.readings.names.emplace_back(kOther, ebpf_name_value{.opens = 1});
  for (int i = 0; i < 40; ++i) {
    page(units({}));
  }
  EXPECT_THAT(state.forgotten, IsEmpty());
  page(units({}));
  EXPECT_THAT(state.forgotten, ElementsAre("names 200"));
}

TEST_F(CountsTest, ARowInWhichACpuCountsIsNotDeleted) {
  set_file(kStep, 7, {.reads = 2});
  state.files_in_use = true;
  for (int i = 0; i < 50; ++i) {
    page(units({{"42", kJob}}));
  }
  EXPECT_THAT(state.forgotten, Not(Contains("file 101")));
  // Its count is still that of the row, not a new one.
  EXPECT_EQ(page(units({{"42", kJob}})).units.at("42").files.at("/scratch").io.reads, 2U);
  state.files_in_use = false;
  page(units({{"42", kJob}}));
  EXPECT_THAT(state.forgotten, Contains("file 101"));
}

TEST_F(CountsTest, CgroupsWithoutRowsMakeRoomForOthers) {
  set_file(kStep, 7, {.reads = 1});
  for (std::uint64_t i = 0; i < 90; ++i) {
    set_file(kStep, 7, {.reads = 2 + i});
    page(units({{"42", kJob}}));
  }
  // 200 did nothing the two times that the table was looked through, 101 is busy.
  EXPECT_THAT(state.forgotten, ElementsAre("cgroup 200"));
  EXPECT_TRUE(state.cgroups.contains(kStep));
  // What is above a forgotten one is still known.
  set_file(kOther, 7, {.reads = 5});
  EXPECT_EQ(page(units({{"top", 50}})).units.at("top").files.at("/scratch").io.reads, 5U);
}

TEST_F(CountsTest, AUnitThatIsGoneTakesItsCountsWithIt) {
  set_file(kJob, 7, {.read_bytes = 10, .reads = 2});
  page(units({{"42", kJob}}));
  EXPECT_THAT(page(units({})).units, IsEmpty());
  // The same number again, in another cgroup.
  EXPECT_THAT(page(units({{"42", 300}})).units.at("42").files, IsEmpty());
}

TEST_F(CountsTest, CountersNeverDecrease) {
  set_file(kJob, 7, {.read_bytes = 10, .reads = 2});
  page(units({{"42", kJob}}));
  set_file(kJob, 7, {.read_bytes = 4, .reads = 3});
  const auto io = page(units({{"42", kJob}})).units.at("42").files.at("/scratch").io;
  EXPECT_EQ(io.read_bytes, 10U);
  EXPECT_EQ(io.reads, 3U);
}

TEST_F(CountsTest, ConnectionsCountWhileTheyAreOpenAndStayWhenTheyEnd) {
  const ebpf_traffic_key key{.cgroup = kStep, .protocol = 6, .family = 2, .network_class = 0};
  const TrafficKind kind{.protocol = 6, .family = 2, .network_class = 0};
  state.readings.open.push_back(
      {.socket = 1, .key = key, .value = {.ingress_packets = 3, .egress_bytes = 500}});
  auto traffic = page(units({{"42", kJob}})).units.at("42").traffic;
  EXPECT_EQ(traffic.at(kind).egress_bytes, 500U);
  EXPECT_EQ(traffic.at(kind).retrans_bytes, 0U);
  // It ended while the tables were read, so it is in neither.
  state.readings.open.clear();
  traffic = page(units({{"42", kJob}})).units.at("42").traffic;
  EXPECT_EQ(traffic.at(kind).egress_bytes, 500U);
  state.readings.traffic.emplace_back(
      key, ebpf_traffic_value{.ingress_packets = 4, .egress_bytes = 700, .retrans_bytes = 9});
  traffic = page(units({{"42", kJob}})).units.at("42").traffic;
  EXPECT_EQ(traffic.at(kind).egress_bytes, 700U);
  EXPECT_EQ(traffic.at(kind).ingress_packets, 4U);
  EXPECT_EQ(traffic.at(kind).retrans_bytes, 9U);
}

TEST_F(CountsTest, LatenciesAreThoseOfTheNode) {
  set_file(kOther, 7, {.reads = 2});
  ebpf_latency_value value{.nanoseconds = 9000};
  value.buckets[0] = 1;
  value.buckets[1] = 1;
  state.readings.latencies.emplace_back(
      ebpf_latency_key{.mount = 7, .root = 1, .operation = EBPF_READ, .unused = 0}, value);
  // Without a row in `files` the mount is unknown.
  state.readings.latencies.emplace_back(
      ebpf_latency_key{.mount = 99, .root = 1, .operation = EBPF_READ, .unused = 0}, value);
  const auto latencies = page(units({})).latencies;
  ASSERT_EQ(latencies.size(), 1U);
  EXPECT_EQ(latencies.begin()->first.mount.text, "/scratch");
  EXPECT_EQ(latencies.begin()->first.mount.type, "tmpfs");
  EXPECT_EQ(latencies.begin()->second.nanoseconds, 9000U);
  EXPECT_EQ(page(units({})).latencies.begin()->second.nanoseconds, 9000U) << "counted once";
}

TEST_F(CountsTest, TheNearestUnitCountsAndEachManagerHasItsOwn) {
  set_file(kStep, 7, {.reads = 2});
  const auto inner = page(units({{"inner", kStep}, {"outer", kJob}}));
  EXPECT_EQ(inner.units.at("inner").files.at("/scratch").io.reads, 2U);
  EXPECT_THAT(inner.units.at("outer").files, IsEmpty());
  set_file(kStep, 7, {.reads = 5});
  page(units({{"pod", 50}}, "k8s"));
  EXPECT_EQ(page(units({{"inner", kStep}})).units.at("inner").files.at("/scratch").io.reads, 5U);
  EXPECT_EQ(page(units({{"pod", 50}}, "k8s")).units.at("pod").files.at("/scratch").io.reads, 3U);
}

TEST_F(CountsTest, CollectorsOfOneScrapeShareAReading) {
  const auto none = units({});
  ASSERT_TRUE(counts.page(none));
  ASSERT_TRUE(counts.page(units({}, "k8s")));
  EXPECT_EQ(state.reads, 1);
  ASSERT_TRUE(counts.page(none));
  EXPECT_EQ(state.reads, 2) << "another scrape";
  clock.advance(std::chrono::seconds(1));
  ASSERT_TRUE(counts.page(units({}, "k8s")));
  EXPECT_EQ(state.reads, 3);
}

TEST_F(CountsTest, SaysWhyTheTablesCannotBeRead) {
  state.failure = Error{ErrorCode::kPermissionDenied, "no"};
  const auto result = counts.page(units({}));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kPermissionDenied);
}

TEST_F(CountsTest, AMountThatTheKernelForgotIsUnknown) {
  set_file(kJob, 5, {.reads = 2});
  EXPECT_EQ(page(units({{"42", kJob}})).units.at("42").files.at("[unknown]").io.reads, 2U);
}

/// A place with these names, from the mount up to the root; true: the last of a mount point.
ebpf_place place_of(const std::vector<std::pair<bool, std::string>>& names) {
  ebpf_place place{};
  std::size_t at = 0;
  for (const auto& [last, name] : names) {
    place.text[at] = last ? 1 : 0;
    std::memcpy(&place.text[at + 1], name.c_str(), name.size() + 1);
    at += name.size() + 2;
  }
  place.length = static_cast<ebpf_u32>(at);
  std::memcpy(place.type, "lustre", 7);
  return place;
}

TEST(MountLabel, HasTheLastNameOfEachMountPoint) {
  const auto scratch = place_of({{true, "scratch"}, {false, "lustre"}});
  EXPECT_EQ(mount_label(scratch, false).text, "/scratch");
  EXPECT_EQ(mount_label(scratch, true).text, "/lustre/scratch");
  EXPECT_EQ(mount_label(scratch, false).type, "lustre");
  const auto nested = place_of({{true, "b"}, {false, "x"}, {true, "a"}, {false, "mnt"}});
  EXPECT_EQ(mount_label(nested, false).text, "/a/b");
  EXPECT_EQ(mount_label(nested, true).text, "/mnt/a/x/b");
}

TEST(MountLabel, HasAtMost64Bytes) {
  const auto deep = place_of({{true, std::string(40, 'b')}, {true, std::string(40, 'a')}});
  EXPECT_EQ(mount_label(deep, false).text, "/" + std::string(40, 'a') + "/" + std::string(22, 'b'));
}

TEST(MountLabel, EscapesWhatAJobPutsIntoNames) {
  EXPECT_EQ(mount_label(place_of({{true, "a\nb\xff"}}), false).text, "/a\\x0ab\\xff");
}

TEST(MountLabel, StaysInsideABrokenText) {
  ebpf_place place{};
  EXPECT_EQ(mount_label(place, false).text, "/");
  std::memset(place.text, 1, sizeof(place.text));
  std::memset(place.type, 'x', sizeof(place.type));
  place.length = 60000;
  EXPECT_LE(mount_label(place, false).text.size(), 64 * 4U);
  EXPECT_EQ(mount_label(place, false).type, std::string(16, 'x'));
}

}  // namespace

}  // namespace ceems::exporter::ebpf
