#include "exporter/collectors/redfish.h"

#include <linux/capability.h>

#include <semaphore>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/redfish/mock_service.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using redfish::MockService;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr const char* kRedfishPage =
    "ceems_redfish_current_watts{chassis=\"Node_1\",hostname=\"n1\"} 400.25\n"
    "ceems_redfish_current_watts{chassis=\"Tray\",hostname=\"n1\"} 900\n"
    "ceems_redfish_min_watts{chassis=\"Node_1\",hostname=\"n1\"} 10\n"
    "ceems_redfish_min_watts{chassis=\"Tray\",hostname=\"n1\"} 10\n";

class RedfishNode {
 public:
  RedfishNode() : host_(directory_.path()) {
    options_.context = {.node_name = "n1", .environment = [this](const std::string& name) {
                          return name == "REDFISH_PORT" ? service_.port() : std::string();
                        }};
    options_.expand_environment = true;
    options_.find_bmc = [](milliseconds) -> Result<std::string> {
      return fail(ErrorCode::kNotFound, "no IPMI device number 0 in /dev");
    };
    host_.context.power_names = PowerNames::kOld;
    options_.patience = testing::kPatience;
    options_.fresh_enough = milliseconds(0);
    write(
        "redfish_collector:\n  protocol: http\n  hostname: 127.0.0.1\n  port: ${REDFISH_PORT}\n"
        "  username: admin\n  password: pw\n");
  }
  void write(const std::string& config) {
    options_.config_file = directory_.write("redfish.yml", config);
  }
  Result<std::unique_ptr<Collector>> create() {
    return make_redfish_collector(host_.context, options_);
  }
  std::unique_ptr<Collector> start() {
    auto collector = *create();
    start_and_wait(*collector);
    return collector;
  }

  testing::TempDir directory_;
  MockService service_;
  TestContext host_;
  RedfishOptions options_;
};

TEST(Redfish, ExportsEachChassisAndLeavesOutZeroValues) {
  RedfishNode node;
  const auto collector = node.start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), kRedfishPage);
  EXPECT_TRUE(result);
  EXPECT_TRUE(collector->capabilities().empty());
  ASSERT_EQ(collector->source_ages().size(), 1U);
  EXPECT_EQ(collector->source_ages()[0].source, "redfish");
}

TEST(Redfish, ExportsTheNamesOfEachRelease) {
  const std::string later =
      "ceems_redfish_power_current_watts{chassis=\"Node_1\",hostname=\"n1\"} 400.25\n"
      "ceems_redfish_power_current_watts{chassis=\"Tray\",hostname=\"n1\"} 900\n"
      "ceems_redfish_power_min_watts{chassis=\"Node_1\",hostname=\"n1\"} 10\n"
      "ceems_redfish_power_min_watts{chassis=\"Tray\",hostname=\"n1\"} 10\n";
  RedfishNode node;
  node.host_.context.power_names = PowerNames::kNew;
  EXPECT_EQ(samples_of(*node.start()), later);
  node.host_.context.power_names = PowerNames::kBoth;
  const std::string both = samples_of(*node.start());
  EXPECT_THAT(both, HasSubstr(later));
  EXPECT_EQ(both.size(), later.size() + std::string(kRedfishPage).size());
}

TEST(Redfish, ASilentServiceDoesNotStopTheStart) {
  RedfishNode node;
  node.service_.set("/redfish/v1/", {.status = 503});
  const auto collector = node.start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
  EXPECT_THAT(result.error().message, HasSubstr("status 503"));
}

TEST(Redfish, ServesTheLastReadingsForFiveMinutes) {
  RedfishNode node;
  const auto collector = node.start();
  EXPECT_EQ(samples_of(*collector), kRedfishPage);
  node.service_.refuse_tokens();
  node.host_.clock.advance(std::chrono::minutes(5));
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), kRedfishPage);
  EXPECT_TRUE(result);
  node.host_.clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(samples_of(*collector, &result), "");
  EXPECT_FALSE(result);
}

TEST(Redfish, AHangingServiceNeverStallsAScrape) {
  RedfishNode node;
  const auto collector = node.start();
  EXPECT_EQ(samples_of(*collector), kRedfishPage);
  node.options_.patience = milliseconds(200);
  const auto patient = node.start();
  node.service_.hang("/redfish/v1/Chassis/Node-1/Power");
  const auto begin = std::chrono::steady_clock::now();
  for (auto waits = milliseconds(0); waits < testing::kPatience; waits += node.options_.patience) {
    EXPECT_EQ(samples_of(*patient), kRedfishPage);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::kPatience) << "each has waited";
  node.service_.release();
}

TEST(Redfish, EndsItsSessionWhenItStops) {
  RedfishNode node;
  node.start().reset();
  EXPECT_EQ(node.service_.count("POST /redfish/v1/Sessions"), 1);
  EXPECT_EQ(node.service_.requests().back(), "DELETE /redfish/v1/Sessions/1");
}

TEST(Redfish, ProvidesTheEnergyOfTheNode) {
  RedfishNode node;
  const auto collector = node.start();
  const auto meters = collector->sources().meters;
  ASSERT_EQ(meters.size(), 1U);
  EXPECT_EQ(meters[0]->source().name, "redfish");
  EXPECT_EQ(meters[0]->source().domain, energy::Domain::kNode);
  ASSERT_TRUE(meters[0]->read({.now = node.host_.clock.steady_now(), .utilisation = {}}));
  node.host_.clock.advance(std::chrono::seconds(10));
  const auto reading = meters[0]->read({.now = node.host_.clock.steady_now(), .utilisation = {}});
  ASSERT_TRUE(reading);
  EXPECT_DOUBLE_EQ(reading->joules, 4002.5);
}

TEST(Redfish, AsksTheBmcForItsAddress) {
  RedfishNode node;
  node.write("redfish_collector: {protocol: http, port: $REDFISH_PORT}\n");
  const auto none = node.create();
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message,
              HasSubstr("hostname is empty and the BMC does not report its address: no IPMI"));
  node.options_.find_bmc = [](milliseconds) -> Result<std::string> { return "192.0.2.1"; };
  std::string looked_up;
  node.options_.name_of = [&looked_up](const std::string& address) -> Result<std::string> {
    looked_up = address;
    return "127.0.0.1";
  };
  const auto collector = node.start();
  EXPECT_EQ(samples_of(*collector), kRedfishPage);
  EXPECT_EQ(looked_up, "192.0.2.1");
}

TEST(Redfish, ASilentNameServerDelaysTheStartNoLongerThanTheDeadline) {
  RedfishNode node;
  node.write("redfish_collector: {protocol: http, port: $REDFISH_PORT}\n");
  node.options_.find_bmc = [](milliseconds) -> Result<std::string> { return "127.0.0.1"; };
  std::binary_semaphore answer(0);
  node.options_.name_of = [&answer](const std::string&) -> Result<std::string> {
    answer.acquire();
    return fail(ErrorCode::kNotFound, "no name");
  };
  const auto begin = std::chrono::steady_clock::now();
  const auto collector = *node.create();
  collector->start();
  collector->wait_first(std::chrono::steady_clock::now() + milliseconds(50));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::kPatience);
  answer.release();
  EXPECT_EQ(samples_of(*collector), kRedfishPage);
}

TEST(Redfish, KeepsWhatItNeedsToReadSecretsOfRoot) {
  RedfishNode node;
  const std::string secret = node.directory_.write("password", "pw\n");
  node.write(
      "redfish_collector:\n  protocol: http\n  hostname: 127.0.0.1\n  port: ${REDFISH_PORT}\n"
      "  basic_auth: {username: admin, password_file: " +
      secret + "}\n");
  const auto collector = node.create();
  ASSERT_TRUE(collector) << collector.error().message;
  EXPECT_EQ((*collector)->capabilities(), std::vector<os::Capability>{CAP_DAC_READ_SEARCH});
}

TEST(Redfish, AnInvalidConfigurationStopsTheStart) {
  RedfishNode node;
  node.write("redfish_collector:\n  protocol: http\n  hostname: x\n  prot: 1\n");
  EXPECT_THAT(node.create().error().message, HasSubstr("redfish.yml:4"));
  node.write("redfish_collector: {protocol: http, hostname: x, tls_config: {min_version: TLS9}}");
  EXPECT_FALSE(node.create());
  node.write("$unset [[{$}]]");
  EXPECT_FALSE(node.create());
  node.options_.config_file = node.directory_.path() / "none.yml";
  EXPECT_EQ(node.create().error().code, ErrorCode::kNotFound);
  node.options_.config_file = "";
  EXPECT_EQ(node.create().error().code, ErrorCode::kInvalidArgument);
  node.options_.config_file = node.directory_.path();
  EXPECT_FALSE(node.create());
}

}  // namespace
}  // namespace ceems::exporter
