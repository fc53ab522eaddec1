#include "exporter/collectors/perf.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/perf/fake_kernel.h"
#include "exporter/perf/profiler.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using perf::FakeKernel;
using ::testing::HasSubstr;

class PerfNoUnits final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    return std::make_shared<UnitSnapshot>();
  }
};

std::string perf_page(SubCollector& collector, const UnitSnapshot& snapshot) {
  metrics::Sink sink;
  EXPECT_TRUE(collector.collect(snapshot, sink));
  std::string page;
  sink.render(metrics::Exposition::kText, page);
  return page;
}

UnitSnapshot one_unit(const std::string& path, std::vector<int> pids) {
  Unit unit;
  unit.id = "5";
  unit.uuid = "5";
  unit.path = path;
  unit.pids = std::move(pids);
  return {.manager = "slurm", .units = {unit}};
}

TEST(Perf, ShowsWhatWasCounted) {
  const testing::TempDir root;
  root.write("sys/devices/system/cpu/online", "0\n");
  root.write("sys/fs/cgroup/job_5/cgroup.procs", "");
  TestContext test(root.path());
  PerfNoUnits source;
  auto owned = std::make_unique<FakeKernel>();
  FakeKernel& kernel = *owned;
  auto collector =
      make_perf(test.context, host::CgroupMode::kUnified, source,
                {.hardware = {.on = true}, .software = {.on = true}, .cache = {}}, std::move(owned))
          .value();
  ASSERT_NE(collector, nullptr);
  EXPECT_EQ(collector->name(), "perf");
  EXPECT_EQ(perf_page(*collector, one_unit("/job_5", {})), "");  // nothing counted, no series
  EXPECT_EQ(kernel.open_now.size(), 12U);                        // the probe is closed again
  for (auto& [handle, opened] : kernel.open_now) {
    if (opened.config == 3) {  // cache misses and context switches
      opened.reading = {opened.type == 0 ? 40U : 3U, 10, opened.type == 0 ? 4U : 10U};
    }
  }
  EXPECT_EQ(perf_page(*collector, one_unit("/job_5", {})),
            "# HELP ceems_perf_cache_misses_total Number of cache misses\n"
            "# TYPE ceems_perf_cache_misses_total counter\n"
            "ceems_perf_cache_misses_total{hostname=\"n1\",manager=\"slurm\",uuid=\"5\"} 100\n"
            "# HELP ceems_perf_context_switches_total Number of context switches\n"
            "# TYPE ceems_perf_context_switches_total counter\n"
            "ceems_perf_context_switches_total{hostname=\"n1\",manager=\"slurm\",uuid=\"5\"} 3\n");
}

/// If CEEMS_UPDATE_GOLDEN is in the environment, the golden page is rewritten.
TEST(Perf, WritesAGoldenPageOfAllEvents) {
  const testing::TempDir root;
  root.write("sys/devices/system/cpu/online", "0-1\n");
  root.write("sys/fs/cgroup/job_5/cgroup.procs", "");
  TestContext test(root.path());
  PerfNoUnits source;
  auto owned = std::make_unique<FakeKernel>();
  FakeKernel& kernel = *owned;
  auto collector =
      make_perf(test.context, host::CgroupMode::kUnified, source,
                {.hardware = {.on = true}, .software = {.on = true}, .cache = {.on = true}},
                std::move(owned))
          .value();
  static_cast<void>(perf_page(*collector, one_unit("/job_5", {})));
  std::uint64_t value = 0;
  for (auto& [handle, opened] : kernel.open_now) {
    opened.reading = {++value, 10, 10};
  }
  const std::string page = perf_page(*collector, one_unit("/job_5", {}));
  const auto golden = std::filesystem::path(CEEMS_TEST_ROOT) / "golden/exporter/perf.txt";
  if (std::getenv("CEEMS_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(golden) << page;
  }
  std::stringstream wanted;
  wanted << std::ifstream(golden).rdbuf();
  EXPECT_EQ(page, wanted.str());
}

TEST(Perf, IsOffWithoutAGroup) {
  TestContext test("/nowhere");
  PerfNoUnits source;
  const auto made = make_perf(test.context, host::CgroupMode::kLegacy, source, PerfOptions{},
                              std::make_unique<FakeKernel>());
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, nullptr);
}

TEST(Perf, ReportsHowToAllowWhatTheKernelRefuses) {
  const testing::TempDir root;
  root.write("proc/sys/kernel/perf_event_paranoid", "3\n");
  TestContext test(root.path());
  PerfNoUnits source;
  auto kernel = std::make_unique<FakeKernel>();
  kernel->refuse_threads = ErrorCode::kPermissionDenied;
  const auto made =
      make_perf(test.context, host::CgroupMode::kLegacy, source,
                {.hardware = {.on = true}, .software = {}, .cache = {}}, std::move(kernel));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kPermissionDenied);
  EXPECT_THAT(made.error().message, HasSubstr("kernel.perf_event_paranoid is 3"));
  EXPECT_THAT(made.error().message, HasSubstr("CAP_PERFMON"));
}

TEST(Perf, StartsOnAMachineWithoutHardwareEvents) {
  TestContext test("/nowhere");
  PerfNoUnits source;
  auto kernel = std::make_unique<FakeKernel>();
  kernel->refuse_threads = ErrorCode::kNotFound;
  EXPECT_TRUE(make_perf(test.context, host::CgroupMode::kLegacy, source,
                        {.hardware = {.on = true}, .software = {}, .cache = {}},
                        std::move(kernel)));
}

/// Causes page faults.
void touch_memory() {
  constexpr std::size_t kBytes = std::size_t{1} << 20U;
  const std::string memory(kBytes, 'x');
  EXPECT_EQ(memory.size(), kBytes);
}

TEST(PerfLive, CountsEventsOfThisProcess) {
  TestContext test("/nowhere");
  test.context.paths = {};
  PerfNoUnits source;
  auto made = make_perf(test.context, host::CgroupMode::kLegacy, source,
                        {.hardware = {}, .software = {.on = true}, .cache = {}},
                        std::make_unique<perf::RealKernel>());
  if (!made) {
    GTEST_SKIP() << made.error().message;
  }
  const UnitSnapshot self = one_unit("/no-such-cgroup", {::getpid()});
  perf_page(**made, self);
  std::jthread([] {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::yield();
      touch_memory();
      ::usleep(1000);
    }
  }).join();
  const std::string page = perf_page(**made, self);
  EXPECT_THAT(page, HasSubstr("ceems_perf_context_switches_total{"));
  EXPECT_THAT(page, HasSubstr("ceems_perf_page_faults_total{"));
}

TEST(PerfLive, CountsACgroupOfUnifiedHierarchy) {
  const std::filesystem::path root = std::filesystem::exists("/sys/fs/cgroup/unified")
                                         ? "/sys/fs/cgroup/unified"
                                         : "/sys/fs/cgroup";
  if (host::detect_cgroup(root).mode != host::CgroupMode::kUnified) {
    GTEST_SKIP() << "no cgroup v2 at " << root;
  }
  perf::RealKernel kernel;
  perf::CounterPool pool(kernel, {8}, false, 4096);  // context switches
  perf::UnitCountersOptions options{.proc = "/proc", .cpus = {}, .boot_ticks = perf::boot_ticks};
  for (long cpu = 0; cpu < ::sysconf(_SC_NPROCESSORS_ONLN); ++cpu) {
    options.cpus.push_back(static_cast<int>(cpu));
  }
  auto counters = perf::CgroupCounters::open(pool, options, root);
  if (!counters) {
    GTEST_SKIP() << counters.error().message;
  }
  ::usleep(20'000);
  perf::Totals totals(perf::all_events().size());
  EXPECT_TRUE(counters->read(totals, root));
  EXPECT_GT(totals[8], 0U);
}

}  // namespace
}  // namespace ceems::exporter
