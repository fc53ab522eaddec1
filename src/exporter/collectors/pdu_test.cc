#include "exporter/collectors/pdu.h"

#include <linux/capability.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/redfish/mock_service.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;

struct ServiceNode {
  testing::TempDir directory;
  redfish::MockService service;
  TestContext host{directory.path()};

  ServiceNode() {
    service.set("/redfish/v1/", {.body = R"({"PowerEquipment":{"@odata.id":"/e"}})"});
    service.set("/e", {.body = R"({"FloorPDUs":{"@odata.id":"/f"}})"});
    service.set("/f", {.body = R"({"Members":[{"@odata.id":"/f/1"}]})"});
    service.set("/f/1", {.body = R"({"Outlets":{"@odata.id":"/o"}})"});
    service.set("/o", {.body = R"({"Members":[{"@odata.id":"/o/7"}]})"});
    service.set("/o/7", {.body = R"({"PowerWatts":{"Reading":321.5},"EnergykWh":{"Reading":2}})"});
  }
  Result<std::unique_ptr<Collector>> create(const std::string& config) {
    return make_pdu_collector(host.context, {.config_file = directory.write("pdu.yml", config),
                                             .context = {.node_name = "n1", .environment = {}}});
  }
  [[nodiscard]] std::string unit(const std::string& name, const std::string& more = "") const {
    return "  - {name: " + name + ", protocol: http, hostname: 127.0.0.1, port: " + service.port() +
           ", outlets: {\"7\": node101}" + more + "}\n";
  }
};

TEST(Pdu, ExportsPowerAndEnergyOfEachNode) {
  ServiceNode node;
  const auto collector = *node.create("pdu_collector:\n" + node.unit("a") + node.unit("b"));
  start_and_wait(*collector);
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result),
            "ceems_pdu_node_energy_joules_total{hostname=\"node101\",pdu=\"a\"} 7.2e+06\n"
            "ceems_pdu_node_energy_joules_total{hostname=\"node101\",pdu=\"b\"} 7.2e+06\n"
            "ceems_pdu_node_power_watts{hostname=\"node101\",pdu=\"a\"} 321.5\n"
            "ceems_pdu_node_power_watts{hostname=\"node101\",pdu=\"b\"} 321.5\n");
  EXPECT_TRUE(result);
  EXPECT_TRUE(collector->capabilities().empty());
  EXPECT_TRUE(collector->sources().meters.empty()) << "the service node has other energy";
  ASSERT_EQ(collector->source_ages().size(), 2U);
  EXPECT_EQ(collector->source_ages()[0].source, "pdu a");
  node.host.clock.advance(std::chrono::minutes(6));
  EXPECT_EQ(samples_of(*collector, &result), "") << "old values end";
}

TEST(Pdu, OneSilentUnitDoesNotHideTheOthers) {
  ServiceNode node;
  const auto collector = *node.create("pdu_collector:\n" + node.unit("a") + node.unit("b") +
                                      "  - {name: c, protocol: http, hostname: 127.0.0.1, port: 1, "
                                      "outlets: {\"7\": node102}}\n");
  start_and_wait(*collector);
  Result<> result;
  EXPECT_THAT(samples_of(*collector, &result), HasSubstr("pdu=\"b\"} 321.5\n"));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("c: connecting: GET http://127.0.0.1:1/redfish"));
}

TEST(Pdu, AnInvalidConfigurationStopsTheStart) {
  ServiceNode node;
  const auto error_of = [&](const std::string& config) {
    const auto collector = node.create(config);
    return collector ? "no error" : collector.error().message;
  };
  EXPECT_THAT(error_of("pdu_collector:\n" + node.unit("a") + node.unit("a")),
              HasSubstr("pdu.yml:3: pdu_collector[1]: the name a is taken"));
  EXPECT_THAT(error_of("pdu_collector:\n" + node.unit("a", ", node_chassis: [x]")),
              HasSubstr("node_chassis: unknown key"));
  EXPECT_THAT(error_of("pdu_collector:\n  - {protocol: http, outlets: {a: b}}\n"),
              HasSubstr("hostname is missing"));
  EXPECT_THAT(error_of("pdu_collector:\n  - {protocol: http, hostname: p}\n"),
              HasSubstr("outlets is missing"));
  EXPECT_THAT(error_of("pdu_collector:\n  - {protocol: http, hostname: p, outlets: {a: ''}}\n"),
              HasSubstr("expected the name of the node"));
  EXPECT_THAT(error_of("pdu_collector: []\n"), HasSubstr("is not a list of units"));
  EXPECT_THAT(error_of("pdus: []\n"), HasSubstr("unknown key"));
  EXPECT_EQ(make_pdu_collector(node.host.context, {}).error().message,
            "--collector.pdu.config.file is not given");
}

TEST(Pdu, KeepsWhatItNeedsToReadPasswordsOfRoot) {
  ServiceNode node;
  const std::string password = node.directory.write("password", "pw\n");
  const auto collector =
      node.create("pdu_collector:\n" +
                  node.unit("a", ", basic_auth: {username: u, password_file: " + password + "}"));
  ASSERT_TRUE(collector) << collector.error().message;
  EXPECT_EQ((*collector)->capabilities(), std::vector<os::Capability>{CAP_DAC_READ_SEARCH});
}

}  // namespace
}  // namespace ceems::exporter
