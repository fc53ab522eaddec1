#include "ingest/manager/openstack/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace ceems::ingest::openstack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kServers = R"({"servers": [
  {"id": "0a1b", "name": "web", "status": "ACTIVE", "tenant_id": "p1", "user_id": "u1",
   "metadata": {"role": "front", "n": 3, "odd": [1]},
   "flavor": {"vcpus": 4, "ram": 8192, "disk": 20, "ephemeral": 0, "swap": "512",
              "original_name": "g1", "extra_specs": {"resources:VGPU": "2", "hw:x": "True"}},
   "created": "2026-01-01T07:00:00Z", "updated": "2026-01-01T07:00:20Z",
   "OS-SRV-USG:launched_at": "2026-01-01T07:00:20.123456", "OS-SRV-USG:terminated_at": null,
   "OS-EXT-AZ:availability_zone": "nova", "OS-EXT-SRV-ATTR:reservation_id": "r-1",
   "OS-EXT-SRV-ATTR:host": "secret-host", "OS-EXT-STS:power_state": 1, "tags": ["a", 7, "b"]}],
 "servers_links": [{"rel": "self", "href": "http://x/"},
                   {"rel": "next", "href": "http://inside:8774/v2.1/servers/detail?limit=1&marker=0a1b"}]})";

TEST(OpenstackServers, AreReadFromADetailedList) {
  const auto page = parse_servers(kServers);
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->servers.size(), 1U);
  const Server& server = page->servers[0];
  EXPECT_EQ(server.id, "0a1b");
  EXPECT_EQ(server.name, "web");
  EXPECT_EQ(server.status, "ACTIVE");
  EXPECT_EQ(server.project_id, "p1");
  EXPECT_EQ(server.user_id, "u1");
  EXPECT_EQ(server.reservation_id, "r-1");
  EXPECT_EQ(server.availability_zone, "nova");
  EXPECT_EQ(server.power_state, 1);
  EXPECT_THAT(server.metadata, ElementsAre(Pair("n", "3"), Pair("role", "front")));
  EXPECT_THAT(server.tags, ElementsAre("a", "b"));
  EXPECT_EQ(server.created_ms, 1'767'250'800'000);
  EXPECT_EQ(server.updated_ms, 1'767'250'820'000);
  EXPECT_EQ(server.launched_ms, 1'767'250'820'123);
  EXPECT_EQ(server.terminated_ms, std::nullopt);
  EXPECT_TRUE(server.flavor.detailed);
  EXPECT_EQ(server.flavor.name, "g1");
  EXPECT_EQ(server.flavor.vcpus, 4);
  EXPECT_EQ(server.flavor.ram_mib, 8192);
  EXPECT_EQ(server.flavor.disk_gb, 20);
  EXPECT_EQ(server.flavor.swap_mb, 512);
  EXPECT_EQ(server.flavor.vgpus, 2);
  EXPECT_EQ(page->next_marker, "0a1b");
}

TEST(OpenstackServers, OfOldMicroversionsHaveTheIdOfAFlavorOnly) {
  const auto page =
      parse_servers(R"({"servers":[{"id":"a","status":"BUILD","flavor":{"id":"42","links":[]}}]})");
  ASSERT_TRUE(page);
  EXPECT_FALSE(page->servers.at(0).flavor.detailed);
  EXPECT_EQ(page->servers[0].flavor.id, "42");
  EXPECT_EQ(page->next_marker, "");
}

TEST(OpenstackServers, WithoutIdOrStatusAreLeftOutAndTold) {
  const auto page = parse_servers(
      R"({"servers":[7, {"id": {}, "status": "ACTIVE"}, {"id": "a"}, {"id": "b", "status": "ERROR",
          "flavor": [], "metadata": "x", "tags": {}, "updated": 5, "created": "yesterday"}]})");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->malformed, 3U);
  EXPECT_EQ(page->first_problem, "a server is not an object");
  ASSERT_EQ(page->servers.size(), 1U);
  EXPECT_EQ(page->servers[0].id, "b");
  EXPECT_EQ(page->servers[0].created_ms, std::nullopt);
  EXPECT_EQ(page->servers[0].flavor.vcpus, 0);
}

TEST(OpenstackServers, AreBoundedValidText) {
  std::string text = R"({"servers":[{"id":"a","status":"ACTIVE","name":")" +
                     std::string(5000, 'n') + "\",\"metadata\":{";
  for (int i = 0; i < 1000; ++i) {
    text += fmt::format("{}\"k{}\":\"v\"", i == 0 ? "" : ",", i);
  }
  text += R"(},"flavor":{"vcpus":1e300,"ram":-5,"disk":"x","swap":""}}]})";
  const auto page = parse_servers(text);
  ASSERT_TRUE(page) << page.error().message;
  const Server& server = page->servers.at(0);
  EXPECT_EQ(server.name.size(), 1024U);
  EXPECT_EQ(server.metadata.size(), 128U);
  EXPECT_EQ(server.flavor.vcpus, std::int64_t{1} << 40U);
  EXPECT_EQ(server.flavor.ram_mib, 0);
  EXPECT_EQ(server.flavor.swap_mb, 0);
}

TEST(OpenstackServers, AreNothingElse) {
  EXPECT_EQ(parse_servers("[]").error().message, "expected a JSON object");
  EXPECT_EQ(parse_servers("{}").error().message, "expected a list 'servers'");
  EXPECT_EQ(parse_servers(R"({"servers": {"a": 1}})").error().message, "expected a list 'servers'");
  EXPECT_THAT(parse_servers("<html>").error().message, HasSubstr("invalid JSON"));
  EXPECT_THAT(parse_servers("").error().message, HasSubstr("invalid JSON"));
  EXPECT_FALSE(parse_servers(R"({"servers": [{"id": "a", "status)"));
  EXPECT_FALSE(parse_servers(std::string(100'000, '[')));
  EXPECT_EQ(parse_servers("{\"servers\":[" + std::string(3'000'000, ',')).error().message,
            "JSON with more than 2000000 values");
}

TEST(OpenstackFlavors, AreReadById) {
  const auto page = parse_flavors(
      R"({"flavors":[{"id":"42","name":"m1","vcpus":1,"ram":256,"disk":1,"swap":""},{"name":"?"},3],
          "flavors_links":[{"rel":"next","href":"http://x/flavors/detail?marker=42"}]})");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->flavors.size(), 1U);
  EXPECT_EQ(page->flavors[0].name, "m1");
  EXPECT_EQ(page->flavors[0].ram_mib, 256);
  EXPECT_EQ(page->next_marker, "42");
  EXPECT_FALSE(parse_flavors(R"({"flavors": 1})"));
  const auto damaged =
      parse_flavors(R"({"flavors":[{"id":"1","name":"m1","vcpus":1},{"id":"2","name":"C:\"m"},)"
                    R"({"id":"3","name":"m3","vcpus":3}],"flavors_links":[]})");
  ASSERT_TRUE(damaged) << damaged.error().message;
  ASSERT_GE(damaged->flavors.size(), 2U);
  EXPECT_EQ(damaged->flavors.front().name, "m1");
  EXPECT_EQ(damaged->flavors.back().name, "m3");
}

TEST(OpenstackFlavors, AreOfferedIfNovaSaysSo) {
  const auto flavor = [](const std::string& more) {
    const auto page = parse_flavors(
        R"({"flavors":[{"id":"1","name":"m1","vcpus":1,"ram":256,"disk":1)" + more + "}]}");
    return page && page->flavors.size() == 1 ? page->flavors[0] : Flavor{};
  };
  const Flavor all = flavor(R"(,"OS-FLV-EXT-DATA:ephemeral":5,"os-flavor-access:is_public":true,)"
                            R"("OS-FLV-DISABLED:disabled":false,"extra_specs":{"a":"b"})");
  EXPECT_TRUE(all.offered);
  EXPECT_TRUE(all.has_extra_specs);
  EXPECT_EQ(all.ephemeral_gb, 5);
  EXPECT_EQ(all.extra_specs, (std::map<std::string, std::string>{{"a", "b"}}));
  EXPECT_TRUE(flavor(R"(,"extra_specs":{})").has_extra_specs);
  for (const char* less :
       {"", R"(,"os-flavor-access:is_public":true)", R"(,"OS-FLV-DISABLED:disabled":false)",
        R"(,"os-flavor-access:is_public":false,"OS-FLV-DISABLED:disabled":false)",
        R"(,"os-flavor-access:is_public":true,"OS-FLV-DISABLED:disabled":true)",
        R"(,"os-flavor-access:is_public":"true","OS-FLV-DISABLED:disabled":0)"}) {
    EXPECT_FALSE(flavor(less).offered) << less;
    EXPECT_FALSE(flavor(less).has_extra_specs) << less;
  }
  // A spec that was not read might be the one that matters.
  EXPECT_FALSE(flavor(R"(,"extra_specs":{"a":["b"]})").has_extra_specs);
  EXPECT_FALSE(flavor(R"(,"extra_specs":null)").has_extra_specs);
}

TEST(OpenstackUsers, AreReadWithDomainAndState) {
  const auto page = parse_named(
      R"({"users":[{"id":"1","name":"ann","domain_id":"default","enabled":true},
                   {"id":"2","name":"bob","enabled":false},{"id":3,"name":"x"},{"id":"4"},null],
          "links":{"next":"http://k/v3/users?marker=2","previous":null}})",
      "users");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->items.size(), 2U);
  EXPECT_EQ(page->items[0].name, "ann");
  EXPECT_EQ(page->items[0].domain_id, "default");
  EXPECT_TRUE(page->items[0].enabled);
  EXPECT_FALSE(page->items[1].enabled);
  EXPECT_EQ(page->next_marker, "2");
  EXPECT_FALSE(parse_named(R"({"users": []})", "projects"));
  EXPECT_EQ(parse_one_named(R"({"user": {"id": "1", "name": "ann"}})", "user").value().name, "ann");
  EXPECT_FALSE(parse_one_named(R"({"user": {"id": "1"}})", "user"));
}

TEST(OpenstackUsers, OfAListThatWasCutOffAreAnError) {
  const auto cut = parse_named(R"({"users":[{"id":"1","name":"a"}],"truncated":true})", "users");
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(parse_named(R"({"users":[],"truncated":true,"links":{"next":"/v3/users?marker=1"}})",
                          "users"));
  EXPECT_TRUE(parse_named(R"({"users":[],"truncated":false})", "users"));
}

TEST(OpenstackToken, LivesFromIssueToExpiryByKeystonesOwnClock) {
  EXPECT_EQ(token_lifetime(R"({"token":{"expires_at":"2026-01-01T01:00:00.000000Z",
                                        "issued_at":"2026-01-01T00:00:00.000000Z"}})",
                           0),
            3600);
  EXPECT_EQ(token_lifetime(R"({"token":{"expires_at":"2026-01-01T01:00:00.000000Z"}})",
                           1'767'225'600'000),
            3600);
  EXPECT_EQ(token_lifetime(R"({"token":{"expires_at":"2026-01-01T01:00:00Z",
                                        "issued_at":"2026-01-01T02:00:00Z"}})",
                           0),
            0);
  EXPECT_EQ(token_lifetime(R"({"token":{"expires_at":"2226-01-01T01:00:00Z",
                                        "issued_at":"2026-01-01T02:00:00Z"}})",
                           0),
            86'400);
  EXPECT_EQ(token_lifetime("", 0), std::nullopt);
  EXPECT_EQ(token_lifetime(R"({"token":{"expires_at":5}})", 0), std::nullopt);
}

TEST(OpenstackError, IsTheServicesMessageOnOneLine) {
  EXPECT_EQ(error_message(R"({"error":{"code":401,"message":"no\ntoken"}})"), "no\\x0atoken");
  EXPECT_EQ(error_message(R"({"itemNotFound":{"message":"gone"}})"), "gone");
  EXPECT_EQ(error_message("<html>"), "");
  EXPECT_EQ(error_message(R"({"a":1})"), "");
}

TEST(OpenstackTime, IsUtcWithOrWithoutFractionAndZ) {
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01Z"), 1'767'225'601'000);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01"), 1'767'225'601'000);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01.5"), 1'767'225'601'500);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01.999999+00:00"), 1'767'225'601'999);
  for (const char* wrong :
       {"", "2026-01-01", "2026-01-01T00:00:01.", "2026-01-01T00:00:01.xZ", "2026-13-01T00:00:01Z",
        "0001-01-01T00:00:00Z", "Z", "2026-01-01T00:00:01+0200", "2026-01-01T00:00:01ZZ"}) {
    EXPECT_EQ(parse_utc(wrong), std::nullopt) << wrong;
  }
}

TEST(OpenstackAuth, IsSentAsItStandsInTheConfiguration) {
  const auto node = config::parse_yaml(
      "identity:\n  methods: [password]\n  password:\n    user: {name: admin, password: '00123'}\n"
      "scope:\n  system: {all: true}\nn: 5\nt: 'true'\nv: 1.2.3\nnothing:\nlong: 0x1f\n",
      "f.yml");
  ASSERT_TRUE(node);
  EXPECT_EQ(to_json(*node).value(),
            R"({"identity":{"methods":["password"],"password":{"user":{"name":"admin",)"
            R"("password":"00123"}}},"scope":{"system":{"all":true}},"n":5,"t":"true",)"
            R"("v":"1.2.3","nothing":null,"long":"0x1f"})");
}

}  // namespace
}  // namespace ceems::ingest::openstack
