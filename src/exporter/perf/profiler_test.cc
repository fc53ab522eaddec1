#include "exporter/perf/profiler.h"

#include <gtest/gtest.h>

#include "exporter/perf/fake_kernel.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::perf {
namespace {

constexpr std::size_t kContextSwitch = 8;  // index in all_events()
constexpr std::size_t kCpuCycles = 0;

/// A machine of two CPUs.
struct Machine {
  testing::TempDir root;
  testing::FakeClock clock;
  FakeKernel kernel;
  std::uint64_t ticks = 1000;
  int requests = 0;

  Machine() { root.write("sys/devices/system/cpu/online", "0-1\n"); }

  Profiler profiler(host::CgroupMode mode,
                    std::vector<std::size_t> events = {kContextSwitch},
                    std::size_t max_counters = 1000,
                    std::vector<std::string> variables = {}) {
    ProfilerOptions options{
        .paths = {root.path() / "proc", root.path() / "sys", root.path() / "cg"},
        .mode = mode,
        .events = std::move(events),
        .max_counters = max_counters,
        .filter = ProcessFilter(root.path() / "proc", "slurm", std::move(variables)),
        .want_processes = [this] { ++requests; },
        .boot_ticks = [this] { return ticks; },
    };
    return {std::move(options), kernel, clock};
  }

  void cgroup(const std::string& path) const { root.write("cg" + path + "/cgroup.procs", ""); }

  void process(int pid,
               int parent,
               int session,
               std::uint64_t start,
               const std::vector<int>& threads = {}) const {
    const std::string directory = "proc/" + std::to_string(pid);
    root.write(directory + "/stat", std::to_string(pid) + " (x) S " + std::to_string(parent) +
                                        " 1 " + std::to_string(session) +
                                        " 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " +
                                        std::to_string(start) + " 0\n");
    root.write(directory + "/task/" + std::to_string(pid) + "/stat", "");
    for (const int thread : threads) {
      root.write(directory + "/task/" + std::to_string(thread) + "/stat", "");
    }
  }
  void end(int pid) const {
    std::filesystem::remove_all(root.path() / "proc" / std::to_string(pid));
  }
};

Unit unit(const std::string& id, std::vector<int> pids, const std::string& host = "") {
  Unit made;
  made.id = id;
  made.uuid = id;
  made.cgrouphostname = host;
  made.path = "/job_" + id + host;
  made.pids = std::move(pids);
  return made;
}

UnitSnapshot snapshot(std::vector<Unit> units) {
  return {.manager = "slurm", .units = std::move(units)};
}

std::uint64_t total(const Profiler& profiler, const std::string& uuid) {
  const auto found = profiler.totals().find(uuid);
  return found != profiler.totals().end() ? found->second[kContextSwitch] : 0;
}

TEST(PerfKernel, NamesTheEventsThatTheMachineDoesNotHave) {
  FakeKernel kernel;
  const Event& cycles = all_events()[kCpuCycles];
  kernel.refusals[{cycles.type, cycles.config}] = ErrorCode::kNotFound;
  const std::vector<std::size_t> events{kCpuCycles, kContextSwitch};
  EXPECT_EQ(unsupported_events(kernel, events, false),
            std::vector<std::string>{std::string(cycles.profiler)});
  EXPECT_TRUE(kernel.open_now.empty()) << "each is closed again";
  kernel.refusals[{cycles.type, cycles.config}] = ErrorCode::kPermissionDenied;
  EXPECT_TRUE(unsupported_events(kernel, events, false).empty());
}

TEST(PerfProfiler, CountsACgroupOnEachCpu) {
  Machine machine;
  machine.cgroup("/job_5");
  auto profiler = machine.profiler(host::CgroupMode::kUnified);
  profiler.update(snapshot({unit("5", {})}));
  ASSERT_EQ(machine.kernel.threads(), (std::vector{-1, -1}));
  EXPECT_EQ(machine.kernel.open_now.at(100).target.cpu, 0);
  EXPECT_EQ(machine.kernel.open_now.at(101).target.cpu, 1);
  machine.kernel.set(-1, {7, 1, 1});
  profiler.update(snapshot({unit("5", {})}));
  EXPECT_EQ(total(profiler, "5"), 14U);
  profiler.update(snapshot({unit("5", {})}));
  EXPECT_EQ(total(profiler, "5"), 14U);
  EXPECT_EQ(machine.kernel.attempts, 2);
  EXPECT_EQ(machine.requests, 0);  // processes need not be listed
}

TEST(PerfProfiler, ScalesEachCounterByItself) {
  Machine machine;
  machine.cgroup("/job_5");
  auto profiler = machine.profiler(host::CgroupMode::kUnified, {kCpuCycles});
  profiler.update(snapshot({unit("5", {})}));
  machine.kernel.open_now.at(100).reading = {40, 10, 4};
  machine.kernel.open_now.at(101).reading = {5, 10, 10};
  profiler.update(snapshot({unit("5", {})}));
  EXPECT_EQ(profiler.totals().at("5")[kCpuCycles], 105U);
}

TEST(PerfProfiler, UsesThePerfHierarchyOfV1IfTheUnitIsInIt) {
  Machine machine;
  machine.cgroup("/perf_event/job_5");
  machine.process(60, 1, 60, 10);
  auto profiler = machine.profiler(host::CgroupMode::kLegacy);
  profiler.update(snapshot({unit("5", {50}), unit("6", {60})}));
  EXPECT_EQ(machine.kernel.threads(), (std::vector{-1, -1, 60}));
  EXPECT_EQ(machine.requests, 1);
}

TEST(PerfProfiler, CountsProcessesIfTheKernelRefusesCgroups) {
  for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kPermissionDenied}) {
    Machine machine;
    machine.cgroup("/job_5");
    machine.cgroup("/job_6");
    machine.process(50, 1, 50, 10, {51, 52});
    machine.process(60, 1, 60, 10);
    machine.kernel.refuse_cgroups = code;
    auto profiler = machine.profiler(host::CgroupMode::kUnified);
    profiler.update(snapshot({unit("5", {50}), unit("6", {60})}));
    EXPECT_EQ(machine.kernel.threads(), (std::vector{50, 51, 52, 60}));
    EXPECT_EQ(machine.kernel.attempts, 5);  // cgroups are tried once, not for each unit
  }
}

TEST(PerfProfiler, CountsProcessesIfThereAreTooManyCpus) {
  Machine machine;
  machine.cgroup("/job_5");
  machine.process(50, 1, 50, 10);
  auto profiler = machine.profiler(host::CgroupMode::kUnified, {kContextSwitch}, 1);
  profiler.update(snapshot({unit("5", {50})}));
  EXPECT_EQ(machine.kernel.threads(), (std::vector{50}));
}

TEST(PerfProfiler, CountsChildrenOfCountedProcessesOnce) {
  Machine machine;
  machine.process(50, 1, 50, 10);
  auto profiler = machine.profiler(host::CgroupMode::kLegacy);
  profiler.update(snapshot({unit("5", {50})}));
  machine.process(53, 52, 50, 1300);  // its parent comes after it in the list
  machine.process(52, 50, 50, 1200);
  machine.process(54, 1, 50, 1250);  // orphan, recognized by its session
  machine.process(55, 1, 55, 1250);  // came from elsewhere
  profiler.update(snapshot({unit("5", {50, 53, 52, 54, 55})}));
  EXPECT_EQ(machine.kernel.threads(), (std::vector{50, 55}));
  // Its counters live as long as any process that inherits from them.
  machine.kernel.set(50, {9, 1, 1});
  machine.end(50);
  profiler.update(snapshot({unit("5", {53, 55})}));
  EXPECT_EQ(machine.kernel.threads(), (std::vector{50, 55}));
  EXPECT_EQ(total(profiler, "5"), 9U);
}

TEST(PerfProfiler, CountsAChildOlderThanTheCountersOfItsParent) {
  Machine machine;
  machine.process(50, 1, 50, 10);
  auto profiler = machine.profiler(host::CgroupMode::kLegacy);
  profiler.update(snapshot({unit("5", {50})}));
  machine.process(52, 50, 50, 900);  // created before counting began, listed late
  profiler.update(snapshot({unit("5", {50, 52})}));
  EXPECT_EQ(machine.kernel.threads(), (std::vector{50, 52}));
}

TEST(PerfProfiler, KeepsWhatEndedProcessesCounted) {
  Machine machine;
  machine.process(50, 1, 50, 10);
  machine.process(60, 1, 60, 10);
  auto profiler = machine.profiler(host::CgroupMode::kLegacy);
  profiler.update(snapshot({unit("5", {50, 60})}));
  machine.kernel.set(50, {100, 1, 1});
  machine.kernel.set(60, {1, 1, 1});
  machine.end(50);
  profiler.update(snapshot({unit("5", {60})}));
  EXPECT_EQ(total(profiler, "5"), 101U);
  EXPECT_EQ(machine.kernel.threads(), (std::vector{60}));
  machine.kernel.set(60, {5, 1, 1});
  profiler.update(snapshot({unit("5", {60})}));
  EXPECT_EQ(total(profiler, "5"), 105U);
}

TEST(PerfProfiler, TriesRefusedProcessesAgainLater) {
  Machine machine;
  machine.process(50, 1, 50, 10);
  machine.kernel.refuse_threads = ErrorCode::kPermissionDenied;
  auto profiler = machine.profiler(host::CgroupMode::kLegacy);
  profiler.update(snapshot({unit("5", {50})}));
  profiler.update(snapshot({unit("5", {50})}));
  EXPECT_EQ(machine.kernel.attempts, 1);
  machine.clock.advance(ProcessCounters::kFirstRetryPause);
  profiler.update(snapshot({unit("5", {50})}));
  EXPECT_EQ(machine.kernel.attempts, 2);
  machine.clock.advance(ProcessCounters::kFirstRetryPause);
  profiler.update(snapshot({unit("5", {50})}));
  EXPECT_EQ(machine.kernel.attempts, 2);  // twice as long now
  machine.clock.advance(ProcessCounters::kFirstRetryPause);
  machine.kernel.refuse_threads.reset();
  profiler.update(snapshot({unit("5", {50})}));
  EXPECT_EQ(machine.kernel.threads(), (std::vector{50}));
}

TEST(PerfProfiler, WorksWithoutUnsupportedEvents) {
  Machine machine;
  machine.cgroup("/job_5");
  machine.kernel.refusals[{0, 0}] = ErrorCode::kNotFound;
  auto profiler = machine.profiler(host::CgroupMode::kUnified, {kCpuCycles, kContextSwitch});
  profiler.update(snapshot({unit("5", {})}));
  EXPECT_EQ(machine.kernel.open_now.size(), 2U);
  EXPECT_EQ(machine.kernel.attempts, 3);
}

TEST(PerfProfiler, NeverOpensMoreThanAllowed) {
  Machine machine;
  machine.process(50, 1, 50, 10, {51, 52});
  machine.process(60, 1, 60, 10);
  auto profiler = machine.profiler(host::CgroupMode::kLegacy, {kContextSwitch}, 2);
  profiler.update(snapshot({unit("5", {50}), unit("6", {60})}));
  EXPECT_EQ(machine.kernel.threads(), (std::vector{60}));  // all threads of a process or none
}

TEST(PerfProfiler, ClosesEverythingOfUnitsThatEnded) {
  Machine machine;
  machine.cgroup("/job_5");
  machine.cgroup("/job_6");
  auto profiler = machine.profiler(host::CgroupMode::kUnified);
  profiler.update(snapshot({unit("5", {}), unit("6", {})}));
  EXPECT_EQ(machine.kernel.open_now.size(), 4U);
  Unit ended = unit("5", {});
  ended.ended = true;
  profiler.update(snapshot({ended, unit("6", {})}));
  EXPECT_EQ(machine.kernel.open_now.size(), 2U);
  EXPECT_FALSE(profiler.totals().contains("5"));
  profiler.update(snapshot({}));
  EXPECT_TRUE(machine.kernel.open_now.empty());
}

TEST(PerfProfiler, FollowsAUnitToANewCgroupOfTheSamePath) {
  Machine machine;
  machine.cgroup("/job_5");
  auto profiler = machine.profiler(host::CgroupMode::kUnified);
  profiler.update(snapshot({unit("5", {})}));
  machine.kernel.set(-1, {3, 1, 1});
  std::filesystem::rename(machine.root.path() / "cg/job_5", machine.root.path() / "cg/old");
  machine.cgroup("/job_5");
  profiler.update(snapshot({unit("5", {})}));
  EXPECT_EQ(machine.kernel.attempts, 4);
  EXPECT_EQ(machine.kernel.open_now.size(), 2U);
  EXPECT_EQ(total(profiler, "5"), 6U);  // the count of the old one stays
  std::filesystem::remove_all(machine.root.path() / "cg/job_5");
  profiler.update(snapshot({unit("5", {})}));
  EXPECT_TRUE(machine.kernel.open_now.empty());
  EXPECT_EQ(machine.requests, 0);
}

TEST(PerfProfiler, AddsUpUnitsOfSeveralVirtualNodes) {
  Machine machine;
  machine.cgroup("/job_5a");
  machine.cgroup("/job_5b");
  auto profiler = machine.profiler(host::CgroupMode::kUnified);
  profiler.update(snapshot({unit("5", {}, "a"), unit("5", {}, "b")}));
  machine.kernel.set(-1, {1, 1, 1});
  profiler.update(snapshot({unit("5", {}, "a"), unit("5", {}, "b")}));
  EXPECT_EQ(total(profiler, "5"), 4U);
}

TEST(PerfProfiler, CountsProcessesWithAVariableOnly) {
  Machine machine;
  machine.cgroup("/job_5");
  machine.process(50, 1, 50, 10);
  machine.process(60, 1, 60, 10);
  for (const char* pid : {"50", "60"}) {
    machine.root.write(std::string("proc/") + pid + "/cmdline", "app");
  }
  machine.root.write("proc/60/environ", std::string_view("PROFILE=1\0", 10));
  auto profiler = machine.profiler(host::CgroupMode::kUnified, {kContextSwitch}, 100, {"PROFILE"});
  profiler.update(snapshot({unit("5", {50, 60})}));
  EXPECT_EQ(machine.kernel.threads(), (std::vector{60}));
}

TEST(PerfProfiler, LeavesTotalsUnchangedIfCountersCannotBeRead) {
  Machine machine;
  machine.cgroup("/job_5");
  auto profiler = machine.profiler(host::CgroupMode::kUnified);
  profiler.update(snapshot({unit("5", {})}));
  machine.kernel.set(-1, {3, 1, 1});
  profiler.update(snapshot({unit("5", {})}));
  machine.kernel.unreadable = true;
  profiler.update(snapshot({unit("5", {})}));
  EXPECT_EQ(total(profiler, "5"), 6U);
}

}  // namespace
}  // namespace ceems::exporter::perf
