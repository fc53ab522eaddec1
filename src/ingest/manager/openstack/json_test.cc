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

/// A JSON text of so many letters.
std::string letters(std::size_t count) {
  return '"' + std::string(count, 'n') + '"';
}

TEST(OpenstackServers, HaveTextsOfAtMostTheirLimits) {
  const auto server = [](const std::string& members) {
    const auto page = parse_servers("{\"servers\":[{" + members + "}]}");
    EXPECT_TRUE(page) << page.error().message;
    return page && page->servers.size() == 1 ? page->servers[0] : Server{};
  };
  EXPECT_EQ(server(R"("status":"A","id":)" + letters(256)).id.size(), 255U);
  EXPECT_EQ(server(R"("id":"a","status":)" + letters(65)).status.size(), 64U);
  std::string tags;
  for (int i = 0; i < 129; ++i) {
    tags += (i == 0 ? "" : ",") + letters(1025);
  }
  const Server full = server(R"("id":"a","status":"A","metadata":{)" + letters(1025) + ':' +
                             letters(1025) + R"(},"tags":[)" + tags + "]");
  ASSERT_EQ(full.metadata.size(), 1U);
  EXPECT_EQ(full.metadata.begin()->first.size(), 1024U);
  EXPECT_EQ(full.metadata.begin()->second.size(), 1024U);
  ASSERT_EQ(full.tags.size(), 128U);
  EXPECT_EQ(full.tags[0].size(), 1024U);
  // No value is a number or a truth, others are passed over.
  const Server mixed =
      server(R"("id":"a","status":"A","metadata":{"a":null,"b":true,"c":[],"d":1.5,"e":"x"})");
  EXPECT_THAT(mixed.metadata, ElementsAre(Pair("b", "true"), Pair("d", "1.5E0"), Pair("e", "x")));
  const auto unnamed = parse_servers("{\"servers\":[{\"id\":" + letters(65) + "}]}");
  ASSERT_TRUE(unnamed);
  EXPECT_EQ(unnamed->first_problem, "server " + std::string(64, 'n') + "... has no status");
}

TEST(OpenstackServers, HaveCountsFromZeroToALimit) {
  const auto vcpus_of = [](const std::string& value, const std::string& specs = "{}") {
    const auto page =
        parse_servers(R"({"servers":[{"id":"a","status":"A","flavor":{"id":"f","vcpus":)" + value +
                      R"(,"extra_specs":)" + specs + "}}]}");
    return page && page->servers.size() == 1 ? page->servers[0].flavor : Flavor{.vcpus = -1};
  };
  EXPECT_EQ(vcpus_of("7").vcpus, 7);
  EXPECT_EQ(vcpus_of("7.9").vcpus, 7);
  EXPECT_EQ(vcpus_of("0.9").vcpus, 0);
  EXPECT_EQ(vcpus_of("-1.5").vcpus, 0);
  EXPECT_EQ(vcpus_of("\"7\"").vcpus, 7);
  EXPECT_EQ(vcpus_of("\"x\"").vcpus, 0);
  EXPECT_EQ(vcpus_of("null").vcpus, 0);
  EXPECT_EQ(vcpus_of("1099511627777").vcpus, std::int64_t{1} << 40U);
  EXPECT_EQ(vcpus_of("1", R"({"resources:VGPU":"1024"})").vgpus, 1024);
  EXPECT_EQ(vcpus_of("1", R"({"resources:VGPU":"1025"})").vgpus, 1024);
  EXPECT_EQ(vcpus_of("1", R"({"resources:VGPU":"-1"})").vgpus, 0);
  EXPECT_EQ(vcpus_of("1", R"({"resources:VGPU":"x"})").vgpus, 0);
  EXPECT_EQ(vcpus_of("1", R"({"other":"7"})").vgpus, 0);
}

TEST(OpenstackServers, OfADamagedListAreThoseThatCanBeRead) {
  const std::string good = R"({"id":"a","status":"A"})";
  const std::string bad = R"({"id":"b","status":"A","name":"C:\m"})";
  const std::string last = R"({"id":"c","status":"A"})";
  const auto page =
      parse_servers(R"({"servers":[)" + good + "," + bad + ",7," + last +
                    R"(],"servers_links":[{"rel":"next","href":"http://x/?marker=c"}]})");
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->servers.size(), 2U);
  EXPECT_EQ(page->servers[1].id, "c");
  EXPECT_EQ(page->next_marker, "c");
  EXPECT_GE(page->malformed, 1U);
  EXPECT_NE(page->first_problem, "");
  // Where the links to the next page are lost, the rest would be missing.
  EXPECT_THAT(parse_servers(R"({"servers":[)" + good + "," + bad + "," + last +
                            R"(],"x":"]","servers_links":[{"rel")")
                  .error()
                  .message,
              HasSubstr("invalid JSON"));
}

TEST(OpenstackServers, MayHaveTwoMillionValues) {
  std::string text = R"({"servers":[],"x":[0)";
  for (int i = 0; i < 2'000'000; ++i) {
    text += ",0";
  }
  text.pop_back();  // one comma stands between the members
  text.pop_back();
  EXPECT_TRUE(parse_servers(text + "]}"));
  EXPECT_EQ(parse_servers(text + ",0]}").error().message, "JSON with more than 2000000 values");
}

TEST(OpenstackServers, GoOnAtTheMarkerOfALinkToTheNextPage) {
  const auto marker_in = [](const std::string& links) {
    return parse_servers(R"({"servers":[],"servers_links":)" + links + "}").value().next_marker;
  };
  const auto next = [](const std::string& href) {
    return R"([{"rel":"next","href":")" + href + R"("}])";
  };
  EXPECT_EQ(marker_in(next("?marker=1")), "1");
  EXPECT_EQ(marker_in(next("marker=1")), "");
  EXPECT_EQ(marker_in(next("x?a=marker&marker=a%20b&marker=3")), "a b");
  EXPECT_EQ(marker_in(next("x?limit=1")), "");
  const std::string longest = "?marker=" + std::string(8192 - 8, 'm');
  EXPECT_EQ(marker_in(next(longest)).size(), 8192U - 8);
  EXPECT_EQ(marker_in(next(longest + "m")).size(), 8192U - 8) << "cut off";
  EXPECT_EQ(marker_in(R"([7,{"href":"?marker=1"},{"rel":"self","href":"?marker=2"}])"), "");
  EXPECT_EQ(marker_in(R"({"rel":"next","href":"?marker=1"})"), "");
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

TEST(OpenstackUsers, HaveTextsOfAtMostTheirLimits) {
  const auto page =
      parse_named("{\"users\":[{\"id\":" + letters(256) + ",\"name\":" + letters(256) +
                      ",\"domain_id\":" + letters(256) + ",\"enabled\":1}]}",
                  "users");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->items.size(), 1U);
  EXPECT_EQ(page->items[0].id.size(), 255U);
  EXPECT_EQ(page->items[0].name.size(), 255U);
  EXPECT_EQ(page->items[0].domain_id.size(), 255U);
  EXPECT_TRUE(page->items[0].enabled);
  EXPECT_FALSE(parse_one_named(R"({"user": {"name": "ann"}})", "user"));
  EXPECT_FALSE(parse_one_named(R"({"user": "ann"})", "user"));
  const std::string link = "?marker=" + std::string(8192 - 8, 'm');
  EXPECT_EQ(parse_named("{\"users\":[],\"links\":{\"next\":\"" + link + "\"}}", "users")
                .value()
                .next_marker.size(),
            8192U - 8);
}

TEST(OpenstackUsers, OfAListThatWasCutOffAreAnError) {
  const auto cut = parse_named(R"({"users":[{"id":"1","name":"a"}],"truncated":true})", "users");
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(parse_named(R"({"users":[],"truncated":true,"links":{"next":"/v3/users?marker=1"}})",
                          "users"));
  EXPECT_TRUE(parse_named(R"({"users":[],"truncated":false})", "users"));
  EXPECT_TRUE(parse_named(R"({"users":[],"truncated":"yes"})", "users"));
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
  EXPECT_EQ(error_message(R"({"a":{"message":""},"b":{"message":"no"}})"), "no");
  const std::string sentence = R"({"error":{"message":)" + letters(201) + "}}";
  EXPECT_EQ(error_message(sentence).substr(0, 200), std::string(200, 'n'));
  EXPECT_EQ(error_message(sentence).find(std::string(201, 'n')), std::string::npos);
  const auto of_size = [](std::size_t size) {
    std::string text = R"({"error":{"message":"no"}})";
    return text.append(size - text.size(), ' ');
  };
  EXPECT_EQ(error_message(of_size(65'536)), "no");
  EXPECT_EQ(error_message(of_size(65'537)), "");
}

TEST(OpenstackTime, IsUtcWithOrWithoutFractionAndZ) {
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01Z"), 1'767'225'601'000);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01"), 1'767'225'601'000);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01.5"), 1'767'225'601'500);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01.999999+00:00"), 1'767'225'601'999);
  EXPECT_EQ(parse_utc("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01.01"), 1'767'225'601'010);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01." + std::string(20, '0')), 1'767'225'601'000);
  EXPECT_EQ(parse_utc("2026-01-01T00:00:01." + std::string(21, '0')), std::nullopt);
  for (const char* wrong :
       {"", "1969-12-31T23:59:59Z", "2026-01-01", "2026-01-01T00:00:01.", "2026-01-01T00:00:01.xZ",
        "2026-13-01T00:00:01Z", "0001-01-01T00:00:00Z", "Z", "2026-01-01T00:00:01+0200",
        "2026-01-01T00:00:01ZZ"}) {
    EXPECT_EQ(parse_utc(wrong), std::nullopt) << wrong;
  }
}

TEST(OpenstackAuth, IsSentAsItStandsInTheConfiguration) {
  const auto node = config::parse_yaml(
      "identity:\n  methods: [password]\n  password:\n    user: {name: admin, password: '00123'}\n"
      "scope:\n  system: {all: true, none: false, tru: tru}\nn: 5\nt: 'true'\nv: "
      "1.2.3\nnothing:\nlong: 0x1f\n",
      "f.yml");
  ASSERT_TRUE(node);
  EXPECT_EQ(
      to_json(*node).value(),
      R"({"identity":{"methods":["password"],"password":{"user":{"name":"admin",)"
      R"("password":"00123"}}},"scope":{"system":{"all":true,"none":false,"tru":"tru"}},"n":5,"t":"true",)"
      R"("v":"1.2.3","nothing":null,"long":"0x1f"})");
}

}  // namespace
}  // namespace ceems::ingest::openstack
