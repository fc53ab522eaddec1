#include "exporter/redfish/documents.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ceems::exporter::redfish {
namespace {

TEST(RedfishLink, IsAPathBelowTheService) {
  EXPECT_EQ(link_path("/redfish/v1/Chassis/1"), "/redfish/v1/Chassis/1");
  EXPECT_EQ(link_path("/a?$skip=2"), "/a?$skip=2");
  EXPECT_EQ(link_path("https://other:1/a/b"), "/a/b") << "the host in the link is ignored";
  EXPECT_EQ(link_path("/a#/PowerControl/0"), "/a");
  for (const char* bad : {"", "a/b", "//evil/a", "https://host", "file:///etc/passwd", "/a b",
                          "/a\r\nX: y", "/a\\b", "/\xc3\xa9"}) {
    EXPECT_EQ(link_path(bad), "") << bad;
  }
  EXPECT_EQ(link_path("/" + std::string(3000, 'a')), "");
}

TEST(RedfishRoot, HasLinksToChassisAndSessions) {
  const auto root = parse_service_root(
      R"({"Chassis":{"@odata.id":"/c"},"Links":{"Sessions":{"@odata.id":"/s"}}})");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->chassis, "/c");
  EXPECT_EQ(root->sessions, "/s");
  const auto odd = parse_service_root(R"({"Chassis":[],"Links":{"Sessions":7}})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->chassis + odd->sessions, "");
  EXPECT_FALSE(parse_service_root("<html>"));
  EXPECT_FALSE(parse_service_root("[]"));
}

TEST(RedfishCollection, ReadsMembersFromBothPlaces) {
  EXPECT_EQ(parse_collection(R"({"Members":[{"@odata.id":"/a"},{"href":"/b"},null,5]})")->members,
            (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(parse_collection(
                R"({"Links":{"Members":[{"@odata.id":"/l"}]},"Members":[{"@odata.id":"/a"}]})")
                ->members,
            std::vector<std::string>{"/l"});
  EXPECT_EQ(parse_collection(R"({"Members@odata.nextLink":"/c?$skip=1"})")->next, "/c?$skip=1");
  EXPECT_TRUE(parse_collection(R"({"Members":"many"})")->members.empty());
}

TEST(RedfishChassis, HasItsPowerAndItsSystems) {
  const auto chassis = parse_chassis(
      R"({"Id":"Self","Power":{"href":"/p"},"Links":{"ComputerSystems":[{}]}})", "/c/x");
  ASSERT_TRUE(chassis);
  EXPECT_EQ(chassis->id, "Self");
  EXPECT_EQ(chassis->power, "/p");
  EXPECT_TRUE(chassis->has_system);
  const auto bare = parse_chassis(R"({"Id":5})", "/c/Enclosure/");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->id, "Enclosure");
  EXPECT_EQ(bare->power, "");
  EXPECT_FALSE(bare->has_system);
}

TEST(RedfishPower, IsTheSumOverControlsOfEqualRank) {
  const auto watts = parse_power(R"({"PowerControl":[
      {"MemberId":0,"PowerConsumedWatts":60,
       "PowerMetrics":{"MinConsumedWatts":1,"MaxConsumedWatts":200,"AverageConsumedWatts":100.5}},
      {"MemberId":"1","PowerConsumedWatts":60,"PowerMetrics":{"MinConsumedWatts":2}},
      {"PowerConsumedWatts":4,"PowerMetrics":null}]})");
  ASSERT_TRUE(watts);
  EXPECT_DOUBLE_EQ(watts->current, 124);
  EXPECT_DOUBLE_EQ(watts->minimum, 3);
  EXPECT_DOUBLE_EQ(watts->maximum, 200);
  EXPECT_DOUBLE_EQ(watts->average, 100.5);
}

TEST(RedfishPower, KeepsTheDigitsOfADouble) {
  EXPECT_EQ(parse_power(R"({"PowerControl":[{"PowerConsumedWatts":123.4}]})")->current, 123.4);
}

double current_of(std::string_view text) {
  const auto watts = parse_power(text);
  return watts ? watts->current : -1;
}

TEST(RedfishPower, WithoutAnyIsNoData) {
  for (const char* text :
       {"{}", R"({"PowerControl":null})", R"({"PowerControl":[]})", R"({"PowerControl":[{}]})",
        R"({"PowerControl":[1,null,"a"]})", R"({"PowerControl":[{"PowerConsumedWatts":0}]})"}) {
    const auto watts = parse_power(text);
    ASSERT_FALSE(watts) << text;
    EXPECT_EQ(watts.error().code, ErrorCode::kNoData) << text;
  }
  EXPECT_EQ(parse_power("").error().code, ErrorCode::kParse);
  EXPECT_EQ(parse_power("null").error().code, ErrorCode::kParse);
  EXPECT_FALSE(parse_power("{\"PowerControl\":" + std::string(100'000, '[')));
}

TEST(RedfishPower, SubsystemsAreNotAddedToTheirWhole) {
  EXPECT_EQ(current_of(R"({"PowerControl":[
      {"MemberId":"1","Name":"CPU Sub-system Power","PhysicalContext":"CPU","PowerConsumedWatts":201},
      {"MemberId":"0","Name":"Server Power Control","PhysicalContext":"Chassis",
       "PowerConsumedWatts":341},
      {"MemberId":"2","Name":"Memory Sub-system Power","PowerConsumedWatts":63}]})"),
            341);
  EXPECT_EQ(current_of(R"({"PowerControl":[
      {"PhysicalContext":"Chassis","PowerConsumedWatts":341},
      {"PhysicalContext":"CPU","PowerConsumedWatts":201},
      {"PhysicalContext":"Memory","PowerConsumedWatts":63}]})"),
            341)
      << "by context alone";
  EXPECT_EQ(current_of(R"({"PowerControl":[{"Name":"Node Power Control","PowerConsumedWatts":900},
      {"Name":"Accelerator0 Power Control","PowerConsumedWatts":350}]})"),
            900)
      << "by name alone";
  EXPECT_EQ(current_of(R"({"PowerControl":[{"MemberId":0,"PowerConsumedWatts":341},
      {"MemberId":1,"PowerConsumedWatts":201},{"MemberId":2,"PowerConsumedWatts":63}]})"),
            605)
      << "nothing tells them apart";
  const auto parts =
      parse_power(R"({"PowerControl":[{"Name":"CPU Power","PowerConsumedWatts":201}]})");
  ASSERT_FALSE(parts) << "a part is not the whole";
  EXPECT_EQ(parts.error().message, "PowerControl has no power of the whole (CPU Power=201 W)");
}

TEST(RedfishPower, OfEqualEntriesIsTheirSum) {
  EXPECT_EQ(current_of(R"({"PowerControl":[
      {"MemberId":"0","Name":"System Input Power","PowerConsumedWatts":344},
      {"MemberId":"1","Name":"System Input Power","PowerConsumedWatts":53}]})"),
            397);
  EXPECT_EQ(current_of(R"({"PowerControl":[{"Name":"Node 1 Power","PowerConsumedWatts":300},
      {"Name":"Node 2 Power","PowerConsumedWatts":200}]})"),
            500);
  EXPECT_EQ(current_of(R"({"PowerControl":[{"PowerConsumedWatts":310.5},
      {"PowerConsumedWatts":44}]})"),
            354.5);
  EXPECT_EQ(current_of(R"({"PowerControl":[
      {"MemberId":"0","Name":"System Input Power","PowerConsumedWatts":300},
      {"MemberId":"0","Name":"System Input Power","PowerConsumedWatts":300},
      {"MemberId":"1","Name":"System Output Power","PowerConsumedWatts":280}]})"),
            300)
      << "an entry counts once, and what supplies give out is part of what they take in";
}

TEST(RedfishPower, AnOddFieldLosesOnlyItself) {
  for (const char* value : {"341", "\"341\"", "\"341 W\"", "\" 341 Watts\"", "{\"Reading\":341}",
                            "{\"Reading\":\"341\"}"}) {
    EXPECT_EQ(current_of(fmt::format(R"({{"PowerControl":[{{"Name":{{"x":1}},"MemberId":null,
        "PowerConsumedWatts":{},"PowerMetrics":{{"MinConsumedWatts":true}}}}]}})",
                                     value)),
              341)
        << value;
  }
  EXPECT_EQ(current_of(R"({"PowerControl":{"PowerConsumedWatts":5,"PowerMetrics":[]}})"), 5);
}

TEST(RedfishPower, SentinelsAreNotPower) {
  for (const char* value : {"65535", "32767", "4294967295", "-5", "1e300", "\"nan\"", "\"341 kW\"",
                            "[1]", "true", "{}", "{\"Reading\":{\"Reading\":1}}"}) {
    EXPECT_EQ(current_of(fmt::format(R"({{"PowerControl":[{{"PowerConsumedWatts":{}}}]}})", value)),
              -1)
        << value;
  }
}

TEST(RedfishPower, IsInFieldsOfVendorsToo) {
  EXPECT_EQ(current_of(R"({"PowerConsumedWatts":117})"), 117) << "HPE iLO 4";
  EXPECT_EQ(current_of(R"({"PowerControl":[],"Oem":{"ts_fujitsu":{"ChassisPowerConsumption":
      {"CurrentPowerConsumptionW":222}}}})"),
            222);
  EXPECT_EQ(current_of(R"({"PowerControl":[{"PowerConsumedWatts":null,
      "PowerMetrics":{"CurConsumedWatts":4920,"AverageConsumedWatts":4925}}]})"),
            4920)
      << "HGX";
  EXPECT_EQ(current_of(R"({"Oem":{"x":{"CPUPower":{"CurrentPowerConsumptionW":9}}}})"), -1);
  EXPECT_EQ(current_of(R"({"PowerSupplies":[{"PowerInputWatts":100},{"PowerInputWatts":110},
      {"Status":{"State":"Absent"}},null]})"),
            210);
  EXPECT_EQ(current_of(R"({"PowerSupplies":[{"PowerInputWatts":100},{"PowerInputWatts":null}]})"),
            -1)
      << "half of the supplies is not the node";
  EXPECT_EQ(current_of(R"({"PowerSupplies":[
      {"LastPowerOutputWatts":9,"Oem":{"Hpe":{"AveragePowerOutputWatts":95}}},
      {"LastPowerOutputWatts":105,"PowerCapacityWatts":800}]})"),
            200);
  EXPECT_EQ(
      current_of(R"({"PowerSupplies":[{"LastPowerOutputWatts":1600,"PowerCapacityWatts":1600}]})"),
      -1)
      << "some report their rating";
}

TEST(RedfishEnvironment, HasThePowerAsASensor) {
  EXPECT_EQ(parse_environment(R"({"PowerWatts":{"Reading":412.5}})")->current, 412.5);
  EXPECT_EQ(parse_environment(R"({"PowerWatts":412})")->current, 412);
  EXPECT_EQ(parse_environment(R"({"EnergykWh":{"Reading":1}})").error().message,
            "PowerWatts is missing");
  EXPECT_FALSE(parse_environment(R"({"PowerWatts":{"Reading":null}})"));
}

TEST(RedfishSensor, IsThatOfTheWholeChassis) {
  for (const char* link : {"/c/1/Sensors/SystemBoardPwrConsumption", "/s/Total_Power/"}) {
    EXPECT_TRUE(may_be_power_sensor(link)) << link;
  }
  for (const char* link : {"/s/CPU1_Power", "/s/SystemPowerLimit", "/s/Inlet_Temp", "/s/PSU1_Power",
                           "/s/Total_FAN_Power"}) {
    EXPECT_FALSE(may_be_power_sensor(link)) << link;
  }
  EXPECT_EQ(parse_power_sensor(R"({"Reading":300,"ReadingUnits":"W"})")->current, 300);
  EXPECT_FALSE(parse_power_sensor(R"({"Reading":300,"ReadingUnits":"A"})"));
  EXPECT_FALSE(parse_power_sensor(R"({"Reading":65535,"ReadingType":"Power"})"));
  EXPECT_EQ(*parse_supply_metrics(R"({"InputPowerWatts":{"Reading":81}})"), 81);
  EXPECT_FALSE(parse_supply_metrics("{}"));
}

TEST(RedfishEnergy, IsReadWithItsSmallestStep) {
  const auto of = [](std::string_view text) {
    const auto counter = parse_energy(text);
    return counter ? fmt::format("{:.0f} J by {:.0f} J", counter->joules, counter->step)
                   : counter.error().message;
  };
  EXPECT_EQ(of(R"({"EnergykWh":{"Reading":6.132},"PowerWatts":{"Reading":412}})"),
            "22075200 J by 3600 J");
  EXPECT_EQ(of(R"({"EnergykWh":{"Reading":675},"EnergyJoules":{"Reading":2430000123}})"),
            "2430000123 J by 1 J");
  EXPECT_EQ(of(R"({"EnergykWh":675.5})"), "2431800000 J by 360000 J");
  EXPECT_EQ(of(R"({"ReadingType":"EnergykWh","Reading":2,"PhysicalContext":"Chassis"})"),
            "7200000 J by 3600000 J");
  EXPECT_EQ(of(R"({"ReadingType":"EnergyJoules","Reading":2,"PhysicalContext":"CPU"})"),
            "no counter of energy");
  for (const char* value : {"0", "-5", "null", "\"7\"", "4294967295", "1e300", "[1]", "{}"}) {
    EXPECT_EQ(of(fmt::format(R"({{"EnergykWh":{{"Reading":{}}}}})", value)), "no counter of energy")
        << value;
  }
  EXPECT_EQ(parse_energy("[]").error().code, ErrorCode::kParse);
  EXPECT_TRUE(may_be_energy_sensor("/c/1/Sensors/TotalEnergy/"));
  EXPECT_FALSE(may_be_energy_sensor("/c/1/Sensors/CPU1_Energy"));
  EXPECT_FALSE(may_be_energy_sensor("/c/1/Sensors/Total_Power"));
}

}  // namespace
}  // namespace ceems::exporter::redfish
