#include "exporter/collectors/ipmi_dcmi.h"

#include <linux/capability.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/ipmi/fake_bmc.h"
#include "exporter/ipmi/fake_port.h"
#include "testing/eventually.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ipmi::Bytes;
using ipmi::FakePort;
using ipmi::good_reading;
using std::chrono::milliseconds;

constexpr const char* kDcmiPage =
    "ceems_ipmi_dcmi_avg_watts{hostname=\"n1\"} 300\n"
    "ceems_ipmi_dcmi_current_watts{hostname=\"n1\"} 321\n"
    "ceems_ipmi_dcmi_max_watts{hostname=\"n1\"} 500\n"
    "ceems_ipmi_dcmi_min_watts{hostname=\"n1\"} 100\n";
constexpr const char* kTool =
    "Current Power : 164 Watts\nMinimum Power over sampling duration : 0 watts\n"
    "Power Measurement : Active\n";

/// A node with a BMC whose answer a test changes. With an empty answer it does not answer.
class DcmiNode {
 public:
  DcmiNode() : host_(tools_.path()) {
    host_.context.power_names = PowerNames::kOld;
    options_.search_path = tools_.path().string();
    options_.runner = &runner_;
    options_.may_become_root = [] { return false; };
    options_.device_timeout = milliseconds(100);
    options_.patience = testing::kPatience;
    options_.fresh_enough = milliseconds(0);
    set_answer(good_reading());
  }
  void add_device() {
    options_.open_device = [this]() -> Result<std::unique_ptr<ipmi::Port>> {
      return std::make_unique<FakePort>([this](const ipmi::Request& request, long id) {
        const MutexLock lock(mutex_);
        if (answer_.empty()) {
          return std::vector<ipmi::Message>{};
        }
        return std::vector<ipmi::Message>{ipmi::answer_to(request, id, answer_)};
      });
    };
  }
  void add_tool(const std::string& name) const {
    ::chmod(tools_.write(name, "#!/bin/sh\n").c_str(), 0755);
  }
  void set_answer(Bytes answer) {
    const MutexLock lock(mutex_);
    answer_ = std::move(answer);
  }
  Result<std::unique_ptr<Collector>> create() {
    return make_ipmi_dcmi_collector(host_.context, options_);
  }
  std::unique_ptr<Collector> start() {
    auto collector = *create();
    start_and_wait(*collector);
    return collector;
  }

  testing::TempDir tools_;
  TestContext host_;
  testing::FakeRunner runner_;
  IpmiDcmiOptions options_{
      .command = {}, .search_path = {}, .open_device = []() -> Result<std::unique_ptr<ipmi::Port>> {
        return fail(ErrorCode::kNotFound, "no IPMI device number 0 in /dev");
      }};

 private:
  Mutex mutex_;
  Bytes answer_ CEEMS_GUARDED_BY(mutex_);
};

TEST(IpmiDcmi, ReadsTheDeviceWithoutPrivilegesToRunThings) {
  DcmiNode node;
  node.add_device();
  node.add_tool("ipmitool");
  const auto collector = node.start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), kDcmiPage);
  EXPECT_TRUE(result);
  EXPECT_EQ(collector->capabilities(), std::vector<os::Capability>{CAP_DAC_READ_SEARCH});
  EXPECT_TRUE(node.runner_.calls().empty());
}

TEST(IpmiDcmi, ExportsTheNamesOfEachRelease) {
  const std::string later =
      "ceems_ipmi_dcmi_power_avg_watts{hostname=\"n1\"} 300\n"
      "ceems_ipmi_dcmi_power_current_watts{hostname=\"n1\"} 321\n"
      "ceems_ipmi_dcmi_power_max_watts{hostname=\"n1\"} 500\n"
      "ceems_ipmi_dcmi_power_min_watts{hostname=\"n1\"} 100\n";
  for (const auto& [names, page] :
       {std::pair(PowerNames::kBoth, kDcmiPage + later),
        std::pair(PowerNames::kOld, std::string(kDcmiPage)), std::pair(PowerNames::kNew, later)}) {
    DcmiNode node;
    node.add_device();
    node.host_.context.power_names = names;
    EXPECT_EQ(samples_of(*node.start()), page);
  }
}

/// A node whose BMC has sensors.
class SensorNode : public DcmiNode {
 public:
  SensorNode() {
    bmc_.add(ipmi::event_record(1, "Watchdog"));
    bmc_.add(ipmi::full_record({.number = 0x40, .name = "PSU2 Power", .m = 2}));
    bmc_.add(ipmi::full_record({.number = 0x12, .name = "PSU1 Power", .m = 2}));
    bmc_.add(ipmi::full_record({.number = 0x30, .name = "Fan 1", .unit = 18, .m = 50}));
    bmc_.set_raw(0x40, 100);
    bmc_.set_raw(0x12, 110);
    bmc_.set_raw(0x30, 90);
    options_.sensors = {.power_and_energy = true, .numbers = {}};
    options_.open_device = [this]() -> Result<std::unique_ptr<ipmi::Port>> { return bmc_.port(); };
  }

  ipmi::FakeBmc bmc_;
};

constexpr const char* kSensors =
    "ceems_ipmi_sensor_reading_current{hostname=\"n1\",sensorname=\"PSU1 Power\",sensorunits="
    "\"Watts\"} 220\n"
    "ceems_ipmi_sensor_reading_current{hostname=\"n1\",sensorname=\"PSU2 Power\",sensorunits="
    "\"Watts\"} 200\n";

TEST(IpmiSensors, AreExportedBesideThePower) {
  SensorNode node;
  node.options_.force_native = true;
  const auto collector = node.start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), std::string(kDcmiPage) + kSensors);
  EXPECT_TRUE(result);
  ASSERT_EQ(collector->source_ages().size(), 2U);
  EXPECT_EQ(collector->source_ages()[1].source, "ipmi_sensors");
  node.bmc_.set_silent(true);
  node.host_.clock.advance(std::chrono::minutes(5));
  EXPECT_EQ(samples_of(*collector), std::string(kDcmiPage) + kSensors);
  node.host_.clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(samples_of(*collector, &result), "");
  EXPECT_FALSE(result);
}

TEST(IpmiSensors, AreNotShownLongerThanFiveMinutesAfterTheyWereRead) {
  SensorNode node;
  node.options_.force_native = true;
  const auto collector = node.start();
  EXPECT_EQ(samples_of(*collector), std::string(kDcmiPage) + kSensors);
  node.bmc_.set_reading(0x12, {0xCB});
  node.host_.clock.advance(std::chrono::minutes(4));
  EXPECT_EQ(samples_of(*collector), std::string(kDcmiPage) + kSensors)
      << "PSU1 has its last reading";
  node.bmc_.set_silent(true);
  node.host_.clock.advance(std::chrono::minutes(2));
  EXPECT_EQ(samples_of(*collector),
            std::string(kDcmiPage) +
                "ceems_ipmi_sensor_reading_current{hostname=\"n1\",sensorname=\"PSU2 Power\","
                "sensorunits=\"Watts\"} 200\n");
}

TEST(IpmiSensors, NeedNeitherNativeModeNorAPowerReading) {
  SensorNode node;
  node.add_tool("ipmi-dcmi");
  node.runner_.reply("ipmi-dcmi", {.output = kTool});
  node.options_.command = "ipmi-dcmi";
  ::testing::internal::CaptureStderr();
  const auto collector = node.start();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("level=WARN"), std::string::npos);
  EXPECT_EQ(samples_of(*collector),
            "ceems_ipmi_dcmi_current_watts{hostname=\"n1\"} 164\n" + std::string(kSensors));
  SensorNode without;
  without.bmc_.set_power({0xc1});
  const auto only_sensors = without.start();
  Result<> result;
  EXPECT_EQ(samples_of(*only_sensors, &result), kSensors);
  EXPECT_TRUE(result) << "a BMC without DCMI is not a failure if its sensors can be read";
}

TEST(IpmiSensors, DoNotKeepTheProgramFromStarting) {
  SensorNode node;
  node.options_.open_device = []() -> Result<std::unique_ptr<ipmi::Port>> {
    return fail(ErrorCode::kNotFound, "no IPMI device number 0 in /dev");
  };
  const auto collector = node.start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), "");
  EXPECT_FALSE(result);
}

TEST(IpmiSensors, HaveNumbersOfOneByte) {
  DcmiNode node;
  for (const std::string wrong : {"256", "-1", "0x12", "", "1 "}) {
    const auto collector = create_collector(ipmi_dcmi_collector(), node.host_.context,
                                            {"--collector.ipmi.sensor-id=" + wrong});
    ASSERT_FALSE(collector) << wrong;
    EXPECT_EQ(collector.error().message,
              "--collector.ipmi.sensor-id: expected the number of a sensor, 0 to 255, got '" +
                  wrong + "'");
  }
}

TEST(IpmiDcmi, LeavesOutZeroValues) {
  DcmiNode node;
  node.add_device();
  Bytes answer = good_reading();
  answer[4] = 0;
  node.set_answer(answer);
  const auto collector = node.start();
  const std::string page = samples_of(*collector);
  EXPECT_EQ(page.find("min_watts"), std::string::npos) << page;
  EXPECT_NE(page.find("current_watts"), std::string::npos) << page;
}

TEST(IpmiDcmi, KeepsTheLastReadingForFiveMinutes) {
  DcmiNode node;
  node.add_device();
  const auto collector = node.start();
  EXPECT_EQ(samples_of(*collector), kDcmiPage);
  Bytes inactive = good_reading();
  inactive[18] = 0;
  Bytes no_current = good_reading();
  no_current[2] = no_current[3] = 0;
  Result<> result;
  for (const Bytes& bad : {Bytes{0xc0}, inactive, no_current, Bytes{0x00, 0x01}}) {
    node.set_answer(bad);
    node.host_.clock.advance(std::chrono::seconds(60));
    EXPECT_EQ(samples_of(*collector, &result), kDcmiPage);
    EXPECT_TRUE(result);
  }
  ASSERT_EQ(collector->source_ages().size(), 1U);
  EXPECT_EQ(collector->source_ages()[0].source, "ipmi");
  EXPECT_EQ(collector->source_ages()[0].age, std::chrono::minutes(4));
  node.set_answer({0xc0});
  node.host_.clock.advance(std::chrono::seconds(61));
  EXPECT_EQ(samples_of(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
  node.set_answer(good_reading());
  EXPECT_EQ(samples_of(*collector, &result), kDcmiPage);
  EXPECT_TRUE(result);
}

TEST(IpmiDcmi, ABmcWithoutPowerIsNotAFailure) {
  DcmiNode node;
  node.add_device();
  Bytes nothing(19, 0);
  nothing[1] = 0xdc;
  nothing[18] = 0x40;
  node.set_answer(nothing);
  node.options_.force_native = true;
  const auto collector = node.start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), "");
  EXPECT_TRUE(result);
}

TEST(IpmiDcmi, FallsBackToAToolIfTheDeviceHasNoReading) {
  DcmiNode node;
  node.add_device();
  node.set_answer({0xc1});
  node.add_tool("ipmi-dcmi");
  node.runner_.reply("ipmi-dcmi", {.output = kTool});
  const auto collector = node.start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result),
            "ceems_ipmi_dcmi_current_watts{hostname=\"n1\"} 164\n");
  EXPECT_TRUE(result);
  auto capabilities = collector->capabilities();
  std::ranges::sort(capabilities);
  EXPECT_EQ(capabilities,
            (std::vector<os::Capability>{CAP_DAC_READ_SEARCH, CAP_SETGID, CAP_SETUID}));
  // And back to the device, once it works and the tool does not.
  node.runner_.reply("ipmi-dcmi", {.exit_status = 1});
  node.set_answer(good_reading());
  EXPECT_EQ(samples_of(*collector), kDcmiPage);
}

TEST(IpmiDcmi, AConfiguredCommandComesBeforeTheDevice) {
  DcmiNode node;
  node.add_device();
  node.add_tool("reader");
  node.runner_.reply("reader", {.output = kTool});
  node.options_.command = "reader --now";
  const auto collector = node.start();
  EXPECT_EQ(samples_of(*collector), "ceems_ipmi_dcmi_current_watts{hostname=\"n1\"} 164\n");
  EXPECT_EQ(collector->capabilities(), (std::vector<os::Capability>{CAP_SETUID, CAP_SETGID}));
  ASSERT_FALSE(node.runner_.calls().empty());
  EXPECT_EQ(node.runner_.calls()[0].arguments, std::vector<std::string>{"--now"});
}

TEST(IpmiDcmi, AToolComesBeforeTheDeviceOfAnotherMachine) {
  DcmiNode node;
  node.add_device();
  node.options_.tools_first = true;
  EXPECT_EQ(samples_of(*node.start()), kDcmiPage) << "no tool";
  node.add_tool("ipmi-dcmi");
  node.runner_.reply("ipmi-dcmi", {.output = kTool});
  EXPECT_EQ(samples_of(*node.start()), "ceems_ipmi_dcmi_current_watts{hostname=\"n1\"} 164\n");
  node.options_.force_native = true;
  EXPECT_EQ(samples_of(*node.start()), kDcmiPage);
}

TEST(IpmiDcmi, ForcedNativeModeNeedsADevice) {
  DcmiNode node;
  node.options_.force_native = true;
  node.options_.command = "reader";
  const auto refused = node.create();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "native mode: no IPMI device number 0 in /dev");
  node.add_device();
  node.set_answer({0xc1});
  EXPECT_TRUE(node.create()) << "a device is enough for the start";
}

TEST(IpmiDcmi, StartsWithoutAnySourceAndLogsIt) {
  DcmiNode node;
  const auto collector = node.start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
  DcmiNode missing;
  missing.options_.command = "no-such-program-anywhere";
  const auto none = missing.start();
  EXPECT_EQ(samples_of(*none, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
}

TEST(IpmiDcmi, ATestModeCommandNeedsNoPrivileges) {
  DcmiNode node;
  node.add_tool("reader");
  node.runner_.reply("reader", {.output = kTool});
  node.options_.command = "reader";
  node.options_.test_mode = true;
  const auto collector = node.start();
  EXPECT_TRUE(collector->capabilities().empty());
  EXPECT_NE(samples_of(*collector), "");
}

TEST(IpmiDcmi, ProvidesTheEnergyOfTheNode) {
  DcmiNode node;
  node.add_device();
  const auto collector = node.start();
  const auto meters = collector->sources().meters;
  ASSERT_EQ(meters.size(), 1U);
  EXPECT_EQ(meters[0]->source().name, "ipmi_dcmi");
  EXPECT_EQ(meters[0]->source().domain, energy::Domain::kNode);
  EXPECT_EQ(meters[0]->source().method, energy::Method::kMeasured);
  ASSERT_TRUE(meters[0]->read({.now = node.host_.clock.steady_now(), .utilisation = {}}));
  node.host_.clock.advance(std::chrono::seconds(10));
  const auto reading = meters[0]->read({.now = node.host_.clock.steady_now(), .utilisation = {}});
  ASSERT_TRUE(reading);
  EXPECT_DOUBLE_EQ(reading->joules, 3210);
}

TEST(IpmiDcmi, PowerOfAWholeCrayIsNotTheNodes) {
  DcmiNode node;
  node.add_tool("capmc");
  node.runner_.reply("capmc", {.output = R"({"avg":4211,"min":4100,"max":4400})"});
  const auto collector = node.start();
  EXPECT_NE(samples_of(*collector).find("current_watts{hostname=\"n1\"} 4211"), std::string::npos);
  EXPECT_TRUE(collector->sources().meters.empty());
}

TEST(IpmiDcmi, AHangingToolNeverStallsAScrape) {
  DcmiNode node;
  node.add_tool("ipmitool");
  std::atomic<bool> hangs = false;
  std::atomic<bool> reached = false;
  std::atomic<bool> go_on = false;
  node.runner_.answer("ipmitool", [&](const os::Command&) -> Result<os::CommandResult> {
    while (hangs && !go_on) {
      reached = true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return os::CommandResult{.output = kTool};
  });
  node.options_.patience = milliseconds(200);
  const auto collector = node.start();
  hangs = true;
  static_cast<void>(samples_of(*collector));  // requests a reading, for which it waits
  EXPECT_TRUE(testing::eventually([&] { return reached.load(); }));
  const auto begin = std::chrono::steady_clock::now();
  for (auto waits = milliseconds(0); waits < testing::kPatience; waits += node.options_.patience) {
    EXPECT_NE(samples_of(*collector), "");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::kPatience) << "each has waited";
  go_on = true;
}

TEST(IpmiDcmi, RefusesANegativeDeviceNumber) {
  DcmiNode node;
  const auto collector = create_collector(ipmi_dcmi_collector(), node.host_.context,
                                          {"--collector.ipmi_dcmi.dev-num=-1"});
  ASSERT_FALSE(collector);
  EXPECT_EQ(collector.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ceems::exporter
