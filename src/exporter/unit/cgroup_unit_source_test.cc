#include "exporter/unit/cgroup_unit_source.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr host::CgroupMount kV2{host::CgroupMode::kUnified, false};
const std::string kScope = "cgroup/system.slice/slurmstepd.scope";

/// A tree of plain files with SLURM jobs in cgroup v2, and a source that reads it.
class SlurmTree : public ::testing::Test {
 protected:
  SlurmTree() {
    write("cgroup/system.slice/cgroup.procs", "");
    write("proc/meminfo", "MemTotal: 1024 kB\nSwapTotal: 0 kB\n");
  }

  void write(const std::string& file, std::string_view text) const { root_.write(file, text); }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_.path() / path); }
  void start_process(int pid) const {
    write("proc/" + std::to_string(pid) + "/status", "Uid:\t7\t7\t7\t7\n");
  }
  void end_process(int pid) const { remove("proc/" + std::to_string(pid)); }

  void make_job(const std::string& name, int pid, double cpu_seconds) const {
    const std::string job = kScope + "/" + name;
    set_cpu(name, cpu_seconds);
    write(job + "/memory.current", "4096\n");
    write(job + "/memory.stat", "anon 100\nfile 200\ninactive_file 50\n");
    write(job + "/memory.max", "max\n");
    write(job + "/cgroup.procs", "");
    write(job + "/step_0/cgroup.procs", std::to_string(pid) + "\n");
    start_process(pid);
  }
  void set_cpu(const std::string& name, double cpu_seconds) const {
    const auto usec = static_cast<std::int64_t>(cpu_seconds * 1e6);
    write(kScope + "/" + name + "/cpu.stat", "usage_usec " + std::to_string(usec) + "\nuser_usec " +
                                                 std::to_string(usec) + "\nsystem_usec 0\n");
  }

  CgroupUnitSource& source() {
    if (!source_) {
      auto created = CgroupUnitSource::create(
          {.manager = "slurm",
           .paths = {root_.path() / "proc", root_.path() / "sys", root_.path() / "cgroup"},
           .mount = kV2,
           .running = running_,
           .kept_files = kept_files_},
          slurm_matcher(kV2.mode), clock_);
      source_ = created.value();
    }
    return *source_;
  }

  std::shared_ptr<const UnitSnapshot> take() {
    auto snapshot = source().snapshot(milliseconds(-1));
    EXPECT_TRUE(snapshot) << (snapshot ? "" : snapshot.error().message);
    return *snapshot;
  }
  std::vector<std::string> names() {
    const auto snapshot = take();
    std::vector<std::string> result;
    for (const Unit& unit : snapshot->units) {
      result.push_back(unit.uuid + (unit.ended ? " ended" : ""));
    }
    return result;
  }

  testing::TempDir root_;
  testing::FakeClock clock_;
  std::shared_ptr<RunningJobs> running_;
  std::size_t kept_files_ = 1000;
  std::shared_ptr<CgroupUnitSource> source_;
};

TEST_F(SlurmTree, GivesUnitsWithTheirNumbers) {
  make_job("job_1", 100, 2.5);
  const auto snapshot = take();
  ASSERT_EQ(snapshot->units.size(), 1U);
  const Unit& unit = snapshot->units[0];
  EXPECT_EQ(snapshot->manager, "slurm");
  EXPECT_EQ(unit.path, "/system.slice/slurmstepd.scope/job_1");
  EXPECT_EQ(unit.name, "job_1");
  EXPECT_EQ(unit.stats.cpu_user_seconds, 2.5);
  EXPECT_EQ(unit.stats.memory_used_bytes, 4096U);
  EXPECT_EQ(unit.stats.memory_total_bytes, 1024.0 * 1024);
  EXPECT_FALSE(unit.stats.memory_reserved);
  EXPECT_EQ(unit.stats.memory_inactive_file_bytes, 50U);
  EXPECT_THAT(unit.pids, ElementsAre(100));
  EXPECT_THAT(unit.children, ElementsAre("/system.slice/slurmstepd.scope/job_1",
                                         "/system.slice/slurmstepd.scope/job_1/step_0"));
  EXPECT_EQ(unit.last_seen, clock_.now());
}

TEST_F(SlurmTree, SharesASnapshotThatIsYoungEnough) {
  make_job("job_1", 100, 1);
  const auto first = take();
  clock_.advance(milliseconds(100));
  EXPECT_EQ(*source().snapshot(milliseconds(100)), first);
  EXPECT_NE(*source().snapshot(milliseconds(99)), first);
}

TEST_F(SlurmTree, FindsRootsThatAppearLater) {
  EXPECT_THAT(names(), IsEmpty());
  make_job("job_1", 100, 1);
  clock_.advance(CgroupTree::kSearchEvery);
  EXPECT_THAT(names(), ElementsAre("1"));
  write("cgroup/system.slice/n1_slurmstepd.scope/job_1/cgroup.procs", "100\n");
  clock_.advance(seconds(1));
  const auto snapshot = take();
  ASSERT_EQ(snapshot->units.size(), 2U);
  EXPECT_EQ(snapshot->units[0].cgrouphostname, "n1");
  EXPECT_EQ(snapshot->units[1].cgrouphostname, "");
}

TEST_F(SlurmTree, LeavesOutDirectoriesWithoutProcess) {
  make_job("job_1", 100, 1);
  make_job("job_2", 200, 1);
  end_process(200);
  EXPECT_THAT(names(), ElementsAre("1"));
  start_process(200);
  EXPECT_THAT(names(), ElementsAre("1", "2"));
}

TEST_F(SlurmTree, KeepsAUnitBetweenTwoSteps) {
  make_job("job_1", 100, 1);
  EXPECT_THAT(names(), ElementsAre("1"));
  end_process(100);
  set_cpu("job_1", 1.5);
  clock_.advance(CgroupUnitSource::kIdle);
  const auto idle = take();
  ASSERT_EQ(idle->units.size(), 1U);
  EXPECT_FALSE(idle->units[0].ended);
  EXPECT_EQ(idle->units[0].stats.cpu_user_seconds, 1.5);
  EXPECT_EQ(idle->units[0].last_seen, clock_.now() - CgroupUnitSource::kIdle);
  start_process(100);
  clock_.advance(seconds(30));
  EXPECT_THAT(names(), ElementsAre("1"));
}

TEST_F(SlurmTree, EndsAUnitThatIsIdleForLong) {
  make_job("job_1", 100, 1);
  take();
  end_process(100);
  clock_.advance(CgroupUnitSource::kIdle + seconds(1));
  EXPECT_THAT(names(), ElementsAre("1 ended"));
  source().mark_exported(*take());
  EXPECT_THAT(names(), IsEmpty());
  start_process(100);  // a late step
  EXPECT_THAT(names(), ElementsAre("1"));
}

TEST_F(SlurmTree, KeepsAnEndedUnitUntilExportedAndAMinuteLong) {
  make_job("job_1", 100, 1);
  take();
  set_cpu("job_1", 4);
  clock_.advance(seconds(1));
  take();
  remove(kScope + "/job_1");
  clock_.advance(seconds(1));
  const auto after = take();
  ASSERT_EQ(after->units.size(), 1U);
  EXPECT_TRUE(after->units[0].ended);
  EXPECT_EQ(after->units[0].stats.cpu_user_seconds, 4);
  EXPECT_EQ(after->units[0].last_seen, clock_.now() - seconds(1));
  EXPECT_THAT(after->units[0].pids, IsEmpty());
  clock_.advance(seconds(100));
  EXPECT_THAT(names(), ElementsAre("1 ended"));
  source().mark_exported(*take());
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(SlurmTree, KeepsAnExportedUnitForTheSecondPrometheus) {
  make_job("job_1", 100, 1);
  take();
  remove(kScope + "/job_1");
  source().mark_exported(*take());
  clock_.advance(seconds(59));
  EXPECT_THAT(names(), ElementsAre("1 ended"));
  clock_.advance(seconds(1));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(SlurmTree, ForgetsAnEndedUnitThatNobodyScrapes) {
  make_job("job_1", 100, 1);
  take();
  remove(kScope + "/job_1");
  EXPECT_THAT(names(), ElementsAre("1 ended"));
  clock_.advance(std::chrono::minutes(10));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(SlurmTree, JoinsTheContainersOfAPod) {
  const auto container = [&](const std::string& id, int pid, int seconds) {
    const std::string path =
        "cgroup/system.slice/containerd.service/kubepods-pod12.slice:cri-containerd:" + id;
    write(path + "/cpu.stat", "usage_usec " + std::to_string(seconds) + "000000\nuser_usec " +
                                  std::to_string(seconds) + "000000\nsystem_usec 0\n");
    write(path + "/memory.current", "4096\n");
    write(path + "/memory.stat", "anon 100\nfile 200\ninactive_file 50\n");
    write(path + "/cgroup.procs", std::to_string(pid) + "\n");
    start_process(pid);
    return path;
  };
  write("cgroup/kubepods.slice/kubepods-pod12.slice/cgroup.procs", "");
  const std::string pause = container("a1", 1, 1);
  container("b2", 2, 4);
  source_ = CgroupUnitSource::create(
                {.manager = "k8s",
                 .paths = {root_.path() / "proc", root_.path() / "sys", root_.path() / "cgroup"},
                 .mount = kV2,
                 .list_empty = true},
                k8s_matcher(), clock_)
                .value();
  source_->want_processes();
  EXPECT_THAT(names(), ElementsAre("12"));
  const auto both = take();
  EXPECT_EQ(both->units[0].stats.cpu_seconds(), 5);
  EXPECT_EQ(both->units[0].stats.memory_used_bytes, 8192U);
  EXPECT_THAT(both->units[0].pids, ElementsAre(1, 2));
  remove(pause);
  clock_.advance(CgroupTree::kSearchEvery);
  const auto one = take();
  ASSERT_EQ(one->units.size(), 1U);
  EXPECT_EQ(one->units[0].stats.cpu_seconds(), 5);  // does not fall
  EXPECT_EQ(one->units[0].stats.memory_used_bytes, 4096U);
  remove("cgroup/system.slice/containerd.service");
  clock_.advance(CgroupTree::kSearchEvery);
  EXPECT_THAT(names(), ElementsAre("12"));
  remove("cgroup/kubepods.slice/kubepods-pod12.slice");
  clock_.advance(CgroupTree::kSearchEvery);
  EXPECT_THAT(names(), ElementsAre("12 ended"));
  EXPECT_EQ(take()->units[0].stats.cpu_seconds(), 5);
}

class IdleJob : public SlurmTree {
 protected:
  IdleJob() {
    write("spool/cred_state", "");
    write("map/.keep", "");
    for (const char* const directory : {"spool", "map"}) {
      std::filesystem::permissions(root_.path() / directory, std::filesystem::perms(0755));
    }
    running_ = std::make_shared<RunningJobs>(
        RunningJobsOptions{.spools = {(root_.path() / "spool").string()},
                           .map_directory = (root_.path() / "map").string(),
                           .trusted_uid = ::geteuid()});
  }
  void write_map(const std::string& job) const {
    write("map/" + job, "0\n");
    std::filesystem::permissions(root_.path() / ("map/" + job), std::filesystem::perms(0644));
  }
  std::vector<std::string> names_after(seconds time) {
    for (seconds passed{0}; passed < time; passed += seconds(5)) {
      clock_.advance(seconds(5));
      take();
    }
    return names();
  }
};

TEST_F(IdleJob, LivesAsLongAsItsDirectory) {
  make_job("job_1", 100, 1);
  take();
  end_process(100);
  EXPECT_THAT(names_after(seconds(600)), ElementsAre("1"));
  EXPECT_TRUE(take()->units.at(0).pids.empty());
  remove(kScope + "/job_1");
  EXPECT_THAT(names_after(seconds(5)), ElementsAre("1 ended"));
}

TEST_F(IdleJob, EndsWithTheEvidenceOfItsJobThoughItsDirectoryIsLeft) {
  make_job("job_1", 100, 1);
  write("spool/job00001/slurm_script", "");
  take();
  end_process(100);
  EXPECT_THAT(names_after(seconds(600)), ElementsAre("1"));
  remove("spool/job00001");
  EXPECT_THAT(names_after(seconds(70)), ElementsAre("1 ended"));
}

TEST_F(IdleJob, NeedsEvidenceIfItNeverHadAProcess) {
  make_job("job_1", 100, 1);
  end_process(100);
  EXPECT_THAT(names_after(seconds(10)), IsEmpty());
  write("spool/n1_1.4294967292", "");
  EXPECT_THAT(names_after(seconds(10)), ElementsAre("1"));
}

TEST_F(IdleJob, LivesBetweenItsStepsAndBeforeTheFirst) {
  take();
  write_map("1");
  EXPECT_THAT(names_after(seconds(5)), ElementsAre("1"));
  make_job("job_1", 100, 2);
  EXPECT_THAT(names_after(seconds(15)), ElementsAre("1"));
  EXPECT_EQ(take()->units.at(0).stats.cpu_user_seconds, 2);
  end_process(100);
  remove(kScope + "/job_1");
  EXPECT_THAT(names_after(seconds(600)), ElementsAre("1"));
  EXPECT_EQ(take()->units.at(0).stats.cpu_user_seconds, 2);
  make_job("job_1", 101, 3);
  EXPECT_THAT(names_after(seconds(15)), ElementsAre("1"));
  EXPECT_EQ(take()->units.at(0).stats.cpu_user_seconds, 3);
  remove(kScope + "/job_1");
  remove("map/1");
  EXPECT_THAT(names_after(seconds(10)), ElementsAre("1 ended"));
  EXPECT_EQ(take()->units.at(0).stats.cpu_user_seconds, 3);
}

/// The units that have not ended, with their virtual nodes.
std::vector<std::string> nodes_of(const UnitSnapshot& snapshot) {
  std::vector<std::string> result;
  for (const Unit& unit : snapshot.units) {
    if (!unit.ended) {
      result.push_back(unit.uuid + " " + unit.cgrouphostname);
    }
  }
  return result;
}

TEST_F(IdleJob, IsOneUnitThoughOnlyItsCgroupNamesTheNode) {
  // As SLURM of Debian lays them out; the prolog writes its file before there is a cgroup.
  const std::string named = "../n1_slurmstepd.scope/job_";
  take();
  write_map("1");
  names_after(seconds(5));
  EXPECT_THAT(nodes_of(*take()), ElementsAre("1 "));
  make_job(named + "1", 100, 2);
  names_after(seconds(15));
  EXPECT_THAT(nodes_of(*take()), ElementsAre("1 n1"));
  // From now on the name of the node is known.
  write_map("2");
  names_after(seconds(5));
  EXPECT_THAT(nodes_of(*take()), ElementsAre("1 n1", "2 n1"));
  make_job(named + "2", 200, 3);
  names_after(seconds(5));
  EXPECT_THAT(nodes_of(*take()), ElementsAre("1 n1", "2 n1"));
  end_process(200);
  remove("cgroup/system.slice/n1_slurmstepd.scope/job_2");
  names_after(seconds(600));
  EXPECT_THAT(nodes_of(*take()), ElementsAre("1 n1", "2 n1"));
  remove("map/2");
  names_after(seconds(10));
  EXPECT_THAT(nodes_of(*take()), ElementsAre("1 n1"));
}

TEST_F(SlurmTree, NewUnitTakesThePlaceOfAnEndedOneWithItsId) {
  make_job("job_1", 100, 50);
  take();
  remove(kScope + "/job_1");
  EXPECT_THAT(names(), ElementsAre("1 ended"));
  make_job("job_1", 101, 1);  // requeued
  const auto snapshot = take();
  ASSERT_EQ(snapshot->units.size(), 1U);
  EXPECT_FALSE(snapshot->units[0].ended);
  EXPECT_EQ(snapshot->units[0].stats.cpu_user_seconds, 1);
}

TEST_F(SlurmTree, MarksTheUnitWithABadFileOnly) {
  make_job("job_1", 100, 1);
  make_job("job_2", 200, 2);
  make_job("job_3", 300, 3);
  remove(kScope + "/job_2/memory.stat");
  std::filesystem::create_directory(root_.path() / kScope / "job_2/memory.stat");  // EISDIR
  take();
  write(kScope + "/job_1/cpu.stat", std::string("\x00\xff\x01garbage\n", 11));
  const auto broken = take();
  ASSERT_EQ(broken->units.size(), 3U);
  EXPECT_TRUE(broken->units[0].stats.error);
  EXPECT_EQ(broken->units[0].stats.cpu_user_seconds, 1);  // the last good value
  EXPECT_TRUE(broken->units[1].stats.error);
  EXPECT_EQ(broken->units[1].stats.cpu_user_seconds, 0);  // there never was a good one
  EXPECT_FALSE(broken->units[2].stats.error);
  EXPECT_EQ(broken->units[2].stats.cpu_user_seconds, 3);
  set_cpu("job_1", 4);
  const auto healed = take();
  EXPECT_FALSE(healed->units[0].stats.error);
  EXPECT_EQ(healed->units[0].stats.cpu_user_seconds, 4);
}

TEST_F(SlurmTree, NamesJobsBySluidAfterTheirStepDaemon) {
  write(kScope + "/cgroup.procs", "");
  take();
  clock_.advance(seconds(1));
  make_job("s0123456789ABC", 100, 1);
  write("proc/100/cmdline", "slurmstepd: [4711.0]");
  make_job("s0123456789ABD", 200, 1);
  write("proc/200/cmdline", "slurmstepd: [4712.0]");
  write("proc/200/status", "Uid:\t0\t0\t0\t0\n");
  // 100 is not a process of root: its title proves nothing.
  EXPECT_THAT(names(), ElementsAre("4712"));
  clock_.advance(seconds(3));
  EXPECT_THAT(names(), ElementsAre("s0123456789ABC", "4712"));
}

TEST_F(SlurmTree, GivesAUnitWithATakenIdANumber) {
  make_job("s0123456789ABC", 100, 1);
  write("proc/100/cmdline", "slurmstepd: [5.0]");
  write("proc/100/status", "Uid:\t0\t0\t0\t0\n");
  make_job("job_5", 200, 1);
  const auto found = names();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "5");
  EXPECT_TRUE(found[1].starts_with("5-")) << found[1];
}

TEST_F(SlurmTree, RefreshesTheCpuTimeOfYoungUnits) {
  take();
  make_job("job_1", 100, 0.5);
  clock_.advance(CgroupTree::kSearchEvery);
  take();
  ASSERT_TRUE(source().has_young());
  set_cpu("job_1", 0.9);
  clock_.advance(milliseconds(400));
  source().refresh_young();
  remove(kScope + "/job_1");
  clock_.advance(milliseconds(600));
  const auto snapshot = take();
  ASSERT_EQ(snapshot->units.size(), 1U);
  EXPECT_TRUE(snapshot->units[0].ended);
  EXPECT_EQ(snapshot->units[0].stats.cpu_user_seconds, 0.9);
  EXPECT_FALSE(source().has_young());
}

TEST_F(SlurmTree, TakesUnitsOfTheFirstSampleForOldAndGrownOnesToo) {
  make_job("job_1", 100, 1);
  take();
  EXPECT_FALSE(source().has_young());
  make_job("job_2", 200, 1);
  take();
  EXPECT_TRUE(source().has_young());
  clock_.advance(CgroupUnitSource::kYoung);
  take();
  EXPECT_FALSE(source().has_young());
}

TEST_F(SlurmTree, WorksWithoutKeepingFilesOpen) {
  kept_files_ = 0;
  make_job("job_1", 100, 1);
  take();
  set_cpu("job_1", 2);
  EXPECT_EQ(take()->units.at(0).stats.cpu_user_seconds, 2);
}

TEST_F(SlurmTree, HasNoJobsWhileItsSlicesAreGone) {
  make_job("job_1", 100, 1);
  take();
  std::filesystem::rename(root_.path() / "cgroup/system.slice", root_.path() / "cgroup/away");
  clock_.advance(seconds(1));
  EXPECT_THAT(names(), ElementsAre("1 ended"));
  std::filesystem::rename(root_.path() / "cgroup/away", root_.path() / "cgroup/system.slice");
  clock_.advance(seconds(1));
  EXPECT_THAT(names(), ElementsAre("1"));
}

TEST_F(SlurmTree, RefusesToStartWithoutAHierarchy) {
  remove("cgroup");
  const auto created = CgroupUnitSource::create(
      {.manager = "slurm",
       .paths = {root_.path() / "proc", root_.path() / "sys", root_.path() / "cgroup"},
       .mount = kV2},
      slurm_matcher(kV2.mode), clock_);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::kNotFound);
}

TEST_F(SlurmTree, DoesNotFollowSymbolicLinks) {
  make_job("job_1", 100, 1);
  std::filesystem::create_directory_symlink(root_.path() / kScope / "job_1",
                                            root_.path() / kScope / "job_9");
  EXPECT_THAT(names(), ElementsAre("1"));
}

TEST_F(SlurmTree, IsSafeForConcurrentUse) {
  for (int job = 1; job <= 20; ++job) {
    make_job("job_" + std::to_string(job), 100 + job, 1);
  }
  take();
  std::vector<std::jthread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 20; ++round) {
        const auto snapshot = source().snapshot(milliseconds(-1));
        ASSERT_TRUE(snapshot);
        EXPECT_EQ((*snapshot)->units.size(), 20U);
        source().mark_exported(**snapshot);
        source().refresh_young();
      }
    });
  }
}

TEST(HostileNames, ManyOfThemAreFoundInLinearTime) {
  const testing::TempDir root;
  const testing::FakeClock clock;
  root.write("proc/1/status", "Uid:\t0\t0\t0\t0\n");
  const auto make = [&](int first, int last) {
    for (int i = first; i < last; ++i) {
      // Line ends, quotes, backslashes, invalid UTF-8, text like labels, full length.
      std::string name = std::to_string(i) + "\"} 1\nx{a=\"\\\xff\xfe" + std::string(1, '\x01');
      name.resize(static_cast<std::size_t>(i % 7 == 0 ? 249 : name.size()), '"');
      const auto directory = root.path() / "cgroup" / (name + ".scope");
      std::filesystem::create_directories(directory);
      root.write(directory / "cgroup.procs", "1\n");
    }
  };
  const auto create = [&] {
    return CgroupUnitSource::create(
               {.manager = "cgroup",
                .paths = {root.path() / "proc", root.path() / "sys", root.path() / "cgroup"},
                .mount = kV2,
                .owners = true},
               *pattern_matcher({}, kV2.mode, {}), clock)
        .value();
  };
  const auto cpu_time = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto time_of = [&](CgroupUnitSource& source, std::size_t units) {
    const auto begin = cpu_time();
    const auto snapshot = source.snapshot(milliseconds(-1));
    EXPECT_EQ((*snapshot)->units.size(), units);
    std::vector<std::string> uuids;
    uuids.reserve(units);
    for (const Unit& unit : (*snapshot)->units) {
      uuids.push_back(unit.uuid);
      EXPECT_EQ(unit.uuid.find_first_of("\"\\\n\xff\x01{} "), std::string::npos);
    }
    std::sort(uuids.begin(), uuids.end());
    EXPECT_EQ(std::adjacent_find(uuids.begin(), uuids.end()), uuids.end());
    return cpu_time() - begin;
  };
  make(0, 100);
  const auto small = create();
  time_of(*small, 100);
  const auto few = time_of(*small, 100);
  make(100, 800);
  const auto large = create();
  time_of(*large, 800);
  const auto many = time_of(*large, 800);
  EXPECT_LT(many, few * 40) << "8 times as many units";
}

TEST(V1Tree, ReadsFromSeparateHierarchiesAndToleratesMissingOnes) {
  const testing::TempDir root;
  const testing::FakeClock clock;
  root.write("proc/5/status", "");
  root.write("cgroup/cpuacct/slurm_n1/uid_7/job_3/cgroup.procs", "5\n");
  root.write("cgroup/cpuacct/slurm_n1/uid_7/job_3/cpuacct.stat", "user 150\nsystem 50\n");
  root.write("cgroup/cpuset/slurm_n1/uid_7/job_3/cpuset.cpus", "0-2\n");
  const auto source =
      CgroupUnitSource::create(
          {.manager = "slurm",
           .paths = {root.path() / "proc", root.path() / "sys", root.path() / "cgroup"},
           .mount = {host::CgroupMode::kLegacy, false}},
          slurm_matcher(host::CgroupMode::kLegacy), clock)
          .value();
  const auto snapshot = source->snapshot(milliseconds(0)).value();
  ASSERT_EQ(snapshot->units.size(), 1U);
  const Unit& unit = snapshot->units[0];
  EXPECT_EQ(unit.cgrouphostname, "n1");
  EXPECT_EQ(unit.stats.cpu_user_seconds, 1.5);
  EXPECT_EQ(unit.stats.cpu_system_seconds, 0.5);
  EXPECT_EQ(unit.stats.cpus, 3);
  EXPECT_EQ(unit.stats.memory_total_bytes, 0);
  EXPECT_FALSE(unit.stats.error);
}

/// A job of SLURM on v2 whose cpuset.cpus.effective is 0-3.
class ReservedCpusTest : public ::testing::Test {
 protected:
  static constexpr const char* kScope = "cgroup/system.slice/slurmstepd.scope/";
  ReservedCpusTest() {
    root_.write("proc/5/status", "");
    root_.write(job_ + "cgroup.procs", "5\n");
    root_.write(job_ + "cpu.stat", "usage_usec 9\nuser_usec 5\nsystem_usec 4\n");
    root_.write(job_ + "cpuset.cpus.effective", "0-3\n");
  }

  UnitStats stats() {
    const auto source =
        CgroupUnitSource::create(
            {.manager = "slurm",
             .paths = {root_.path() / "proc", root_.path() / "sys", root_.path() / "cgroup"},
             .mount = {host::CgroupMode::kUnified, false}},
            slurm_matcher(host::CgroupMode::kUnified), clock_)
            .value();
    return source->snapshot(milliseconds(0)).value()->units.at(0).stats;
  }

  const testing::TempDir root_;
  const testing::FakeClock clock_;
  const std::string job_ = std::string(kScope) + "job_3/";
};

TEST_F(ReservedCpusTest, AreThoseOfTheUnitsOwnCpuset) {
  root_.write(job_ + "cpuset.cpus", "0-3\n");
  const UnitStats stats = this->stats();
  EXPECT_EQ(stats.reserved_cpus, 4);
  EXPECT_EQ(stats.cpus, 4);
  ASSERT_NE(stats.cpu_set, nullptr);
  EXPECT_EQ(*stats.cpu_set, (std::vector{0, 1, 2, 3}));
}

TEST_F(ReservedCpusTest, AreNotThoseOfAnInheritedCpuset) {
  root_.write(job_ + "cpuset.cpus", "\n");
  const UnitStats stats = this->stats();
  EXPECT_EQ(stats.reserved_cpus, 0);
  EXPECT_EQ(stats.cpus, 4);
  EXPECT_NE(stats.cpu_set, nullptr);
}

TEST_F(ReservedCpusTest, AreComparedWithTheParentWhereTheOwnListIsMissing) {
  EXPECT_EQ(stats().reserved_cpus, 4);
  root_.write(std::string(kScope) + "cpuset.cpus.effective", "0-7\n");
  EXPECT_EQ(stats().reserved_cpus, 4);
  root_.write(std::string(kScope) + "cpuset.cpus.effective", "0-3\n");
  EXPECT_EQ(stats().reserved_cpus, 0);
}

TEST_F(ReservedCpusTest, AreThoseOfTheQuota) {
  root_.write(job_ + "cpuset.cpus", "\n");
  root_.write(job_ + "cpu.max", "150000 100000\n");
  const UnitStats stats = this->stats();
  EXPECT_EQ(stats.reserved_cpus, 1.5);
  EXPECT_EQ(stats.cpus, 4);
  root_.write(job_ + "cpuset.cpus", "0-3\n");
  EXPECT_EQ(this->stats().reserved_cpus, 1.5);
  root_.write(job_ + "cpu.max", "max 100000\n");
  EXPECT_EQ(this->stats().reserved_cpus, 4);
}

TEST_F(ReservedCpusTest, AreNoneWithoutACpuset) {
  root_.write(job_ + "cpuset.cpus.effective", "x\n");
  const UnitStats stats = this->stats();
  EXPECT_EQ(stats.reserved_cpus, 0);
  EXPECT_EQ(stats.cpus, 0);
  EXPECT_EQ(stats.cpu_set, nullptr);
}

}  // namespace
}  // namespace ceems::exporter
