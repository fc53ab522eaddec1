#include "exporter/redfish/pdu.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/redfish/mock_service.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::exporter::redfish {
namespace {

using ::testing::HasSubstr;

/// A unit as in DMTF's mock-up of a rack PDU, with the outlets A1 to A3.
class Rack {
 public:
  explicit Rack(std::map<std::string, std::string> outlets) {
    add_root();
    add_unit("1");
    service_.set(
        "/redfish/v1/PowerEquipment/RackPDUs",
        {.body = R"({"Members":[{"@odata.id":"/redfish/v1/PowerEquipment/RackPDUs/1"}]})"});
    Config config;
    config.protocol = "http";
    config.hostname = "127.0.0.1";
    config.port = std::stoi(service_.port());
    config.username = "monitor";
    config.password = "pw";
    config.timeout = testing::kPatience;
    reader_.emplace(*Session::create(config), std::move(outlets), clock_);
  }
  void add_root() {
    service_.set("/redfish/v1/",
                 {.body = R"({"PowerEquipment":{"@odata.id":"/redfish/v1/PowerEquipment"},
                              "Links":{"Sessions":{"@odata.id":"/redfish/v1/Sessions"}}})"});
    service_.set("/redfish/v1/PowerEquipment",
                 {.body = R"({"RackPDUs":{"@odata.id":"/redfish/v1/PowerEquipment/RackPDUs"}})"});
  }
  void add_unit(const std::string& unit) {
    const std::string path = "/redfish/v1/PowerEquipment/RackPDUs/" + unit;
    service_.set(
        path, {.body = fmt::format(R"({{"Id":"{}","Outlets":{{"@odata.id":"{}/Outlets"}}}})", unit,
                                   path)});
    // Two pages.
    service_.set(path + "/Outlets",
                 {.body = fmt::format(R"({{"Members":[{{"@odata.id":"{0}/Outlets/A1"}},
                      {{"@odata.id":"{0}/Outlets/A2"}}],"Members@odata.nextLink":"{0}/Outlets/2"}})",
                                      path)});
    service_.set(path + "/Outlets/2",
                 {.body = fmt::format(R"({{"Members":[{{"@odata.id":"{0}/Outlets/A3/"}}],
                      "Members@odata.nextLink":"{0}/Outlets"}})",
                                      path)});
    set_outlet(unit, "A1", 412.5, 675.125);
    set_outlet(unit, "A2", 90, 10);
    service_.set(path + "/Outlets/A3/", {.body = R"({"PowerWatts":{"Reading":0}})"});
  }
  void set_outlet(const std::string& unit, const std::string& id, double watts, double kwh) {
    service_.set(fmt::format("/redfish/v1/PowerEquipment/RackPDUs/{}/Outlets/{}", unit, id),
                 {.body = fmt::format(
                      R"({{"Id":"{}","PowerWatts":{{"Reading":{}}},"EnergykWh":{{"Reading":{}}}}})",
                      id, watts, kwh)});
  }
  /// "node=watts/joules" of each node, or the error.
  std::string read() {
    const auto nodes = reader_->read({});
    if (!nodes) {
      return nodes.error().message;
    }
    std::string all;
    for (const NodeOutlets& node : *nodes) {
      all += fmt::format("{}{}={:.1f}/{:.0f}", all.empty() ? "" : " ", node.node,
                         node.watts.value_or(-1), node.joules.value_or(-1));
    }
    return all;
  }

  MockService service_;
  testing::FakeClock clock_;
  std::optional<PduReader> reader_;
};

TEST(PduReader, AddsUpTheOutletsOfEachNode) {
  Rack rack({{"A1", "n1"}, {"A2", "n1"}, {"A3", "n2"}});
  EXPECT_EQ(rack.read(), "n1=502.5/2466450000 n2=0.0/-1");
  const auto before = rack.service_.requests().size();
  rack.set_outlet("1", "A2", 91, 10);
  EXPECT_EQ(rack.read(), "n1=503.5/2466450000 n2=0.0/-1");
  EXPECT_EQ(rack.service_.requests().size(), before + 3) << "only outlets";
}

TEST(PduReader, RequestsOnlyTheOutletsOfTheMapping) {
  Rack rack({{"A1", "n1"}});
  EXPECT_EQ(rack.read(), "n1=412.5/2430450000");
  EXPECT_EQ(rack.service_.count("GET /redfish/v1/PowerEquipment/RackPDUs/1/Outlets/A2"), 0);
}

TEST(PduReader, ANodeOfWhichAPartIsMissingHasNoValue) {
  Rack rack({{"A1", "n1"}, {"B7", "n1"}, {"A2", "n2"}});
  EXPECT_EQ(rack.read(), "n2=90.0/36000000") << "B7 does not exist";
  Rack gone({{"A1", "n1"}, {"A2", "n1"}, {"A3", "n2"}});
  gone.service_.set("/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/A2", {.body = "{}"});
  EXPECT_EQ(gone.read(), "n2=0.0/-1");
  gone.service_.set("/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/A2", {.body = "<html>"});
  EXPECT_EQ(gone.read(), "n2=0.0/-1");
  gone.service_.set("/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/A2", {.status = 500});
  EXPECT_THAT(gone.read(), HasSubstr("status 500"));
  Rack none({{"B7", "n1"}});
  EXPECT_EQ(none.read(), "connecting: none of the 3 outlets of the service is configured");
}

TEST(PduReader, TellsUnitsOfOneServiceApart) {
  Rack rack({{"1/A1", "n1"}, {"2/A1", "n2"}, {"A2", "n3"}});
  rack.add_unit("2");
  rack.set_outlet("2", "A1", 77, 1);
  rack.service_.set("/redfish/v1/PowerEquipment/RackPDUs",
                    {.body = R"({"Members":[{"@odata.id":"/redfish/v1/PowerEquipment/RackPDUs/1"},
                        {"@odata.id":"/redfish/v1/PowerEquipment/RackPDUs/2"}]})"});
  EXPECT_EQ(rack.read(), "n1=412.5/2430450000 n2=77.0/3600000") << "A2 could be either";
}

TEST(PduReader, RenewsATokenAndDoesNotRepeatARefusedLogin) {
  Rack rack({{"A1", "n1"}});
  EXPECT_EQ(rack.read(), "n1=412.5/2430450000");
  rack.service_.expire_tokens();
  EXPECT_EQ(rack.read(), "n1=412.5/2430450000");
  EXPECT_EQ(rack.service_.count("POST /redfish/v1/Sessions"), 2);
  rack.service_.expire_tokens();
  rack.service_.refuse_logins();
  EXPECT_EQ(rack.read(), "connecting: login: /redfish/v1/Sessions: status 401");
  EXPECT_EQ(rack.read(), "connecting: login: /redfish/v1/Sessions: status 401");
  EXPECT_EQ(rack.service_.count("POST /redfish/v1/Sessions"), 3);
}

TEST(PduReader, AServiceWithoutOutletsIsAnError) {
  Rack rack({{"A1", "n1"}});
  rack.service_.set("/redfish/v1/", {.body = R"({"Links":{"Sessions":{"@odata.id":"/s"}}})"});
  EXPECT_EQ(rack.read(), "connecting: the service has no PowerEquipment");
  rack.service_.set("/redfish/v1/", {.body = "[]"});
  EXPECT_THAT(rack.read(), HasSubstr("connecting: "));
  rack.add_root();
  EXPECT_EQ(rack.read(), "n1=412.5/2430450000");
}

}  // namespace
}  // namespace ceems::exporter::redfish
