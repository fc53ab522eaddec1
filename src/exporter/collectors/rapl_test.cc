#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

std::string zone_labels(const TestContext& host, const char* index, const char* entry) {
  return std::string("{hostname=\"n1\",index=\"") + index + "\",path=\"" +
         host.context.paths.sys.string() + "/class/powercap/" + entry + "\"";
}

std::unique_ptr<Collector> make_rapl(const CollectorContext& context,
                                     const std::vector<std::string>& arguments = {}) {
  return create_collector(rapl_collector(), context, arguments).value();
}

TEST(Rapl, ExportsTheFixture) {
  TestContext host(fixture("intel-2s"));
  Result<> result;
  const auto rapl = make_rapl(host.context);
  const auto series = [&](const char* name, const char* index, const char* entry,
                          const char* value) {
    return std::string("ceems_rapl_") + name + zone_labels(host, index, entry) + "} " + value +
           "\n";
  };
  EXPECT_EQ(samples_of(*rapl, &result),
            series("dram_joules_total", "0", "intel-rapl:0:0", "80101.5") +
                series("dram_joules_total", "1", "intel-rapl:1:0", "64930.394974") +
                series("dram_power_limit_watts_total", "0", "intel-rapl:0:0", "0") +
                series("dram_power_limit_watts_total", "1", "intel-rapl:1:0", "0") +
                series("package_joules_total", "0", "intel-rapl:0", "258218.293244") +
                series("package_joules_total", "1", "intel-rapl:1", "130570.505826") +
                series("package_power_limit_watts_total", "0", "intel-rapl:0", "180") +
                series("package_power_limit_watts_total", "1", "intel-rapl:1", "180"));
  EXPECT_TRUE(result);
}

TEST(Rapl, PutsTheZoneIntoALabelOnRequest) {
  TestContext host(fixture("intel-2s"));
  const auto rapl = make_rapl(host.context, {"--collector.rapl.enable-zone-label"});
  const std::string samples = samples_of(*rapl);
  EXPECT_NE(samples.find("ceems_rapl_joules_total" + zone_labels(host, "1", "intel-rapl:1:0") +
                         ",rapl_zone=\"dram\"} 64930.394974\n"),
            std::string::npos)
      << samples;
}

TEST(Rapl, ReturnsNoDataWithoutZones) {
  TestContext host(fixture("empty"));
  const auto rapl = make_rapl(host.context);
  Result<> result;
  EXPECT_EQ(samples_of(*rapl, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);

  const testing::TempDir root;
  std::filesystem::create_directories(root.path() / "sys/class/powercap/intel-rapl");
  TestContext zoneless(root.path());
  const auto none = make_rapl(zoneless.context);
  EXPECT_EQ(samples_of(*none, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
}

TEST(Rapl, OpensCountersAtTheStartAndKeepsThem) {
  const testing::TempDir root;
  root.write("sys/class/powercap/intel-rapl:0/name", "package-0-die-1\n");
  root.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000\n");
  root.write("sys/class/powercap/intel-rapl:0/energy_uj", "1500000\n");
  TestContext host(root.path());
  const auto rapl = make_rapl(host.context);
  const auto zone = root.path() / "sys/class/powercap/intel-rapl:0";
  std::filesystem::rename(zone / "energy_uj", zone / "moved");  // cannot be opened again
  EXPECT_EQ(samples_of(*rapl), "ceems_rapl_package_0_die_1_joules_total" +
                                   zone_labels(host, "0", "intel-rapl:0") + "} 1.5\n");
}

TEST(Rapl, FailsWhileNothingCanBeReadAndRecovers) {
  const testing::TempDir root;
  root.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  root.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000\n");
  TestContext host(root.path());
  const auto rapl = make_rapl(host.context);
  Result<> result;
  EXPECT_EQ(samples_of(*rapl, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData) << "not an error in the log";
  root.write("sys/class/powercap/intel-rapl:0/energy_uj", "truncated");
  EXPECT_EQ(samples_of(*rapl, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
  root.write("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "90000000");
  EXPECT_NE(samples_of(*rapl, &result).find("ceems_rapl_package_power_limit_watts_total"),
            std::string::npos);
  EXPECT_TRUE(result);
  root.write("sys/class/powercap/intel-rapl:0/energy_uj", "7000000\n");
  EXPECT_NE(samples_of(*rapl, &result).find("} 7\n"), std::string::npos);
  EXPECT_TRUE(result);
}

TEST(Rapl, IsQuietAboutCountersThatItNeverCouldRead) {
  const testing::TempDir root;
  root.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  root.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000\n");
  TestContext host(root.path());
  const auto rapl = make_rapl(host.context);
  const auto logged = [&] {
    ::testing::internal::CaptureStderr();
    static_cast<void>(samples_of(*rapl));
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(logged(), "") << "no counter, no power limit";
  root.write("sys/class/powercap/intel-rapl:0/energy_uj", "7000000\n");
  EXPECT_NE(logged().find("can be read again"), std::string::npos);
  root.write("sys/class/powercap/intel-rapl:0/energy_uj", "truncated");
  EXPECT_NE(logged().find("level=ERROR"), std::string::npos) << "a counter that it has lost";
  EXPECT_EQ(logged(), "") << "once";
}

TEST(Rapl, RefusesToStartWithoutSysfs) {
  const testing::TempDir root;
  TestContext host(root.path());
  const auto rapl = create_collector(rapl_collector(), host.context);
  ASSERT_FALSE(rapl);
  EXPECT_EQ(rapl.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ceems::exporter
