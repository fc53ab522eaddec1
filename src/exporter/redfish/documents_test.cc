#include "exporter/redfish/documents.h"

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

TEST(RedfishPower, IsTheSumOverItsControls) {
  const auto watts = parse_power(R"({"PowerControl":[
      {"MemberId":0,"PowerConsumedWatts":123.4,
       "PowerMetrics":{"MinConsumedWatts":1,"MaxConsumedWatts":200,"AverageConsumedWatts":100.5}},
      {"MemberId":"1","PowerConsumedWatts":0.6,"PowerMetrics":{"MinConsumedWatts":2}},
      {"PowerConsumedWatts":null,"PowerMetrics":null}]})");
  ASSERT_TRUE(watts);
  EXPECT_DOUBLE_EQ(watts->current, 124);
  EXPECT_DOUBLE_EQ(watts->minimum, 3);
  EXPECT_DOUBLE_EQ(watts->maximum, 200);
  EXPECT_DOUBLE_EQ(watts->average, 100.5);
}

TEST(RedfishPower, KeepsTheDigitsOfADouble) {
  EXPECT_EQ(parse_power(R"({"PowerControl":[{"PowerConsumedWatts":123.4}]})")->current, 123.4);
}

TEST(RedfishPower, WithoutControlsIsZero) {
  for (const char* text :
       {"{}", R"({"PowerControl":null})", R"({"PowerControl":[]})", R"({"PowerControl":[{}]})"}) {
    const auto watts = parse_power(text);
    ASSERT_TRUE(watts) << text;
    EXPECT_EQ(watts->current, 0);
  }
}

TEST(RedfishPower, OfAWrongTypeFails) {
  for (const char* text : {"", "null", R"({"PowerControl":{}})", R"({"PowerControl":[1]})",
                           R"({"PowerControl":[{"PowerConsumedWatts":"123"}]})",
                           R"({"PowerControl":[{"PowerConsumedWatts":[1]}]})",
                           R"({"PowerControl":[{"PowerConsumedWatts":1e300}]})",
                           R"({"PowerControl":[{"PowerMetrics":[]}]})",
                           R"({"PowerControl":[{"PowerMetrics":{"MinConsumedWatts":true}}]})"}) {
    const auto watts = parse_power(text);
    ASSERT_FALSE(watts) << text;
    EXPECT_EQ(watts.error().code, ErrorCode::kParse);
  }
  EXPECT_FALSE(parse_power("{\"PowerControl\":" + std::string(100'000, '[')));
}

}  // namespace
}  // namespace ceems::exporter::redfish
