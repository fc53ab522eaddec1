// Units in real control groups of this machine. Needs root and a writable cgroup file system.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "exporter/unit/cgroup_unit_source.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/mount.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

/// A new cgroup in one hierarchy, removed by the destructor.
class TestCgroup {
 public:
  explicit TestCgroup(const fs::path& hierarchy)
      : path_(hierarchy / ("ceems-units-test-" + std::to_string(::getpid()) + ".scope")) {
    std::error_code error;
    made_ = fs::create_directory(path_, error);
  }
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;
  ~TestCgroup() { remove(); }

  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] const fs::path& path() const { return path_; }
  /// Waits until the processes have left, then removes the directory.
  void remove() {
    for (int attempt = 0; made_ && attempt < 500; ++attempt) {
      if (::rmdir(path_.c_str()) == 0) {
        made_ = false;
      } else {
        std::this_thread::sleep_for(milliseconds(2));
      }
    }
  }

 private:
  fs::path path_;
  bool made_ = false;
};

/// A process that uses all the CPU time it gets, in `cgroup` from its start. The destructor kills
/// it.
class BusyProcess {
 public:
  explicit BusyProcess(const TestCgroup& cgroup) {
    const std::string procs = (cgroup.path() / "cgroup.procs").string();
    pid_ = ::fork();
    if (pid_ == 0) {
      std::FILE* const file = std::fopen(procs.c_str(), "we");
      if (file == nullptr || std::fputs("0", file) < 0 || std::fclose(file) != 0) {
        ::_exit(1);
      }
      for (std::atomic<unsigned> turns = 0;; ++turns) {
      }
    }
  }
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;
  ~BusyProcess() { end(); }

  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 private:
  pid_t pid_ = -1;
};

std::shared_ptr<CgroupUnitSource> source_of(const fs::path& root) {
  const host::Paths paths{.cgroup = root};
  const host::CgroupMount mount = host::detect_cgroup(root);
  return CgroupUnitSource::create(
             {.manager = "cgroup",
              .paths = paths,
              .mount = mount,
              .stats = {.flavour = StatFlavour::kGeneric},
              .owners = true},
             *pattern_matcher({R"(/(?P<id>ceems-units-test-[0-9]+\.scope)$)"}, mount.mode, {}),
             real_clock())
      .value();
}

const Unit* find(const UnitSnapshot& snapshot) {
  const std::string name = "ceems-units-test-" + std::to_string(::getpid()) + ".scope";
  for (const Unit& unit : snapshot.units) {
    if (unit.uuid == name) {
      return &unit;
    }
  }
  return nullptr;
}

double cpu_of(const Unit& unit) {
  return unit.stats.cpu_user_seconds + unit.stats.cpu_system_seconds;
}

TEST(LiveCgroupV1, FollowsAShortUnitToItsEnd) {
  const fs::path root = "/sys/fs/cgroup";
  const auto hierarchy = host::find_v1_hierarchy(root, "cpuacct", true);
  if (host::detect_cgroup(root).mode != host::CgroupMode::kLegacy || !hierarchy) {
    GTEST_SKIP() << "no cgroup v1 here";
  }
  const auto source = source_of(root);
  ASSERT_TRUE(source->snapshot(milliseconds(0)));
  const auto begin = Clock::SystemTime::clock::now();
  TestCgroup cgroup(root / *hierarchy);
  if (!cgroup.made()) {
    GTEST_SKIP() << "cannot create cgroups in " << root / *hierarchy;
  }
  BusyProcess process(cgroup);
  std::this_thread::sleep_for(milliseconds(100));
  const auto first = source->snapshot(milliseconds(0)).value();
  ASSERT_NE(find(*first), nullptr);
  EXPECT_FALSE(find(*first)->ended);
  EXPECT_EQ(find(*first)->owner_uid, static_cast<std::int64_t>(::getuid()));
  EXPECT_GE(find(*first)->started, begin - milliseconds(20));  // the kernel's clock is coarse
  EXPECT_LE(find(*first)->started, find(*first)->last_seen);
  EXPECT_TRUE(source->has_young());

  // As the sampler does between two ticks.
  const auto end = Steady::now() + milliseconds(800);
  while (Steady::now() < end) {
    source->refresh_young();
    std::this_thread::sleep_for(milliseconds(10));
  }
  process.end();
  const auto text = host::read_file((cgroup.path() / "cpuacct.stat").string());
  ASSERT_TRUE(text);
  const auto final_count = host::parse_cpuacct_stat(*text);
  ASSERT_TRUE(final_count);
  const double cpu_seconds =
      static_cast<double>(final_count->user_ticks + final_count->system_ticks) / 100;
  cgroup.remove();
  const auto last = source->snapshot(milliseconds(0)).value();
  ASSERT_NE(find(*last), nullptr);
  EXPECT_TRUE(find(*last)->ended);
  EXPECT_GT(cpu_seconds, 0.02);
  // CPU times are in ticks of 10 ms, and on a busy machine the last refresh may be a while ago.
  EXPECT_NEAR(cpu_of(*find(*last)), cpu_seconds, 0.02 + 0.1 * cpu_seconds);
}

TEST(LiveCgroupV2, ReadsFinalStatisticsWhenTheLastProcessEnds) {
  fs::path root = "/sys/fs/cgroup";
  if (host::detect_cgroup(root).mode == host::CgroupMode::kLegacy) {
    root /= "unified";
  }
  if (const auto mount = host::detect_cgroup(root);
      !mount.live || mount.mode != host::CgroupMode::kUnified) {
    GTEST_SKIP() << "no cgroup v2 here";
  }
  const auto source = source_of(root);
  ASSERT_TRUE(source->snapshot(milliseconds(0)));
  TestCgroup cgroup(root);
  if (!cgroup.made()) {
    GTEST_SKIP() << "cannot create cgroups in " << root;
  }
  BusyProcess process(cgroup);
  std::this_thread::sleep_for(milliseconds(50));
  const auto first = source->snapshot(milliseconds(0)).value();
  ASSERT_NE(find(*first), nullptr);
  const double early = cpu_of(*find(*first));
  std::this_thread::sleep_for(milliseconds(500));
  process.end();
  std::this_thread::sleep_for(milliseconds(200));  // only the event makes the source read
  const auto text = host::read_file((cgroup.path() / "cpu.stat").string());
  ASSERT_TRUE(text);
  const double cpu_seconds =
      static_cast<double>(host::parse_cgroup_cpu_stat(*text)->usage_usec) / 1e6;
  cgroup.remove();
  const auto last = source->snapshot(milliseconds(0)).value();
  ASSERT_NE(find(*last), nullptr);
  EXPECT_TRUE(find(*last)->ended);
  EXPECT_GT(cpu_of(*find(*last)), early);
  EXPECT_NEAR(cpu_of(*find(*last)), cpu_seconds, 0.005);
}

}  // namespace
}  // namespace ceems::exporter
