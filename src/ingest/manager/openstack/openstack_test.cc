#include "ingest/manager/openstack/openstack.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/all.h"
#include "ingest/manager/openstack/openstack_test_support.h"

namespace ceems::ingest {
namespace {

using openstack::Client;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Fixture = CloudFixture;

// Tokens ----------------------------------------------------------------------------------------

TEST(OpenstackClient, SendsAuthVerbatimAndTheTokenWithEachCall) {
  Fixture f;
  ASSERT_TRUE(f.client().users());
  EXPECT_THAT(f.cloud.bodies, ElementsAre(R"({"auth":{"identity":{}}})"));
  EXPECT_THAT(f.cloud.requests, ElementsAre("POST http://key/v3/auth/tokens", kUsers));
  EXPECT_THAT(f.cloud.tokens, ElementsAre("tok1"));
}

TEST(OpenstackClient, RenewsATokenShortlyBeforeKeystoneSaysItEnds) {
  Fixture f;
  f.cloud.token_body = R"({"token":{"issued_at":"2001-01-01T00:00:00Z",
                                    "expires_at":"2001-01-01T00:10:00Z"}})";
  ASSERT_TRUE(f.client().users());
  f.clock.advance(std::chrono::seconds(530));
  ASSERT_TRUE(f.client().users());
  EXPECT_EQ(f.cloud.bodies.size(), 1U);
  f.clock.advance(std::chrono::seconds(10));
  ASSERT_TRUE(f.client().users());
  EXPECT_EQ(f.cloud.bodies.size(), 2U);
  EXPECT_EQ(f.cloud.tokens.back(), "tok2");
}

TEST(OpenstackClient, TakesATokenOfUnknownLifeFor55Minutes) {
  Fixture f;
  ASSERT_TRUE(f.client().users());
  f.clock.advance(std::chrono::minutes(53));
  ASSERT_TRUE(f.client().users());
  EXPECT_EQ(f.cloud.bodies.size(), 1U);
  f.clock.advance(std::chrono::minutes(2));
  ASSERT_TRUE(f.client().users());
  EXPECT_EQ(f.cloud.bodies.size(), 2U);
}

TEST(OpenstackClient, AsksOnceMoreAfter401) {
  Fixture f;
  ASSERT_TRUE(f.client().users());
  f.cloud.refused = {"tok1"};
  const auto users = f.client().users();
  ASSERT_TRUE(users) << users.error().message;
  EXPECT_EQ(users->size(), 2U);
  EXPECT_THAT(f.cloud.tokens, ElementsAre("tok1", "tok1", "tok2"));
}

TEST(OpenstackClient, GivesUpAfterTheSecond401) {
  Fixture f;
  f.cloud.refuse_all = true;
  const auto users = f.client().users();
  ASSERT_FALSE(users);
  EXPECT_EQ(users.error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(users.error().message, "GET http://key/v3/users: HTTP status 401: no token");
  EXPECT_EQ(f.cloud.tokens.size(), 2U);
}

TEST(OpenstackClient, OfManyThreadsOneAsksForAToken) {
  Fixture f;
  Client& client = f.client();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&client] { EXPECT_TRUE(client.projects_of("u1")); });
    }
  }
  EXPECT_EQ(f.cloud.bodies.size(), 1U);
}

TEST(OpenstackClient, NeverTellsTheSecret) {
  Fixture f;
  f.options.auth = R"({"password":"swordfish"})";
  f.options.endpoints.identity = "http://u:swordfish@key";
  f.cloud.token_status = 401;
  const auto users = f.client().users();
  ASSERT_FALSE(users);
  EXPECT_EQ(users.error().message,
            "POST http://key/v3/auth/tokens: HTTP status 401: wrong password");
}

TEST(OpenstackClient, TakesNoTokenFromAnAnswerOtherThan201) {
  Fixture f;
  f.cloud.token_status = 200;
  EXPECT_EQ(f.client().users().error().code, ErrorCode::kUnavailable);
}

// Lists -----------------------------------------------------------------------------------------

TEST(OpenstackClient, FollowsPagesByMarkerOnTheConfiguredHost) {
  Fixture f;
  f.cloud.answers[kDetail] = [](const std::string& url) {
    if (url.find("deleted=") != std::string::npos) {
      return reply(200, servers_json({}));
    }
    if (url.find("marker=a") != std::string::npos) {
      return reply(200, servers_json({server_json("b")}, "b"));
    }
    if (url.find("marker=b") != std::string::npos) {
      return reply(200, servers_json({server_json("c")}));
    }
    return reply(200, servers_json({server_json("a")}, "a"));
  };
  const auto found = f.client().servers("2026-01-01T09:00:00+0100");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->servers.size(), 3U);
  EXPECT_EQ(f.cloud.requests.at(1), "http://nova/v2.1/servers/detail?all_tenants=true&limit=500");
  EXPECT_EQ(f.cloud.requests.at(2),
            "http://nova/v2.1/servers/detail?all_tenants=true&limit=500&marker=a");
  EXPECT_EQ(f.cloud.requests.back(),
            "http://nova/v2.1/servers/detail?all_tenants=true&deleted=true&"
            "changes-since=2026-01-01T09%3A00%3A00%2B0100&limit=500");
}

TEST(OpenstackClient, RefusesPagesThatGoRoundInACircle) {
  Fixture f;
  f.cloud.answers[kDetail] = [](const std::string& url) {
    return reply(200, servers_json({server_json("a")},
                                   url.find("marker=a") != std::string::npos ? "b" : "a"));
  };
  const auto found = f.client().servers("x");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "GET http://nova/v2.1/servers/detail: pages go round in a circle");
}

TEST(OpenstackClient, RefusesPagesWithoutEnd) {
  Fixture f;
  int page = 0;
  f.cloud.answers[kDetail] = [&page](const std::string&) {
    return reply(200, servers_json({}, std::to_string(++page)));
  };
  EXPECT_THAT(f.client().servers("x").error().message, HasSubstr("more than 400 pages"));
}

TEST(OpenstackClient, TakesTheDeletedRecordOfAServerThatIsInBothLists) {
  Fixture f;
  f.live = {server_json("a")};
  f.deleted = {server_json("a", "DELETED")};
  const auto found = f.client().servers("x");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->servers.size(), 1U);
  EXPECT_EQ(found->servers[0].status, "DELETED");
}

TEST(OpenstackClient, FailsWhenOneOfTheListsFails) {
  for (const char* part : {"deleted=true", "all_tenants=true&limit"}) {
    Fixture f;
    f.cloud.answers[kDetail] = [part](const std::string& url) {
      return url.find(part) != std::string::npos ? reply(500, "oops")
                                                 : reply(200, servers_json({}));
    };
    EXPECT_EQ(f.client().servers("x").error().message,
              "GET http://nova/v2.1/servers/detail: HTTP status 500");
  }
}

TEST(OpenstackClient, WaitsForACellThatIsDown) {
  Fixture f;
  f.live = {server_json("a"),
            R"({"id":"b","status":"UNKNOWN","tenant_id":"p1","created":"2026-01-01T07:00:00Z"})"};
  EXPECT_EQ(f.client().servers("x").error().message,
            "GET http://nova/v2.1/servers/detail: no details of 1 servers, a cell of Nova is down");
  f.live = {server_json("a"), server_json("b", "UNKNOWN")};
  EXPECT_TRUE(f.client().servers("x")) << "a state that Nova has no word for";
}

TEST(OpenstackClient, LooksUpFlavorsThatAreNotEmbedded) {
  Fixture f;
  f.live = {R"({"id":"a","status":"ACTIVE","flavor":{"id":"42"}})",
            R"({"id":"b","status":"ACTIVE","flavor":{"id":"43"}})"};
  f.cloud.set("http://nova/v2.1/flavors/detail",
              R"({"flavors":[{"id":"42","name":"m1","vcpus":3,"ram":256,"disk":1}]})");
  const auto found = f.client().servers("x");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->servers[0].flavor.vcpus, 3);
  EXPECT_EQ(found->servers[0].flavor.name, "m1");
  EXPECT_EQ(found->servers[1].flavor.vcpus, 0);
  EXPECT_EQ(f.cloud.count("flavors/detail?is_public=None"), 1U);
}

TEST(OpenstackClient, HasServersAlsoWithoutTheListOfFlavors) {
  for (const auto& [status, body] : {std::pair(403, "{}"), {500, ""}, {200, "{"}}) {
    Fixture f;
    f.live = {R"({"id":"a","status":"ACTIVE","flavor":{"id":"42"}})", server_json("b")};
    f.cloud.set("http://nova/v2.1/flavors/detail", body, status);
    const auto found = f.client().servers("x");
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->servers.size(), 2U);
    EXPECT_FALSE(found->servers[0].flavor.detailed) << "a stand-in until the list is there";
    EXPECT_EQ(found->servers[1].flavor.vcpus, 2);
    EXPECT_THAT(found->flavor_problem, HasSubstr("http://nova/v2.1/flavors/detail"));
  }
}

TEST(OpenstackClient, AsksEveryRegion) {
  Fixture f;
  f.options.endpoints.compute = {{"north", "http://n/v2.1"}, {"south", "http://s/v2.1"}};
  f.cloud.set("http://n/v2.1/servers/detail", servers_json({server_json("a")}));
  f.cloud.set("http://s/v2.1/servers/detail", servers_json({server_json("b")}));
  const auto found = f.client().servers("x");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->servers.size(), 2U);
  EXPECT_EQ(found->servers[0].region, "north");
  EXPECT_EQ(found->servers[1].region, "south");
  f.cloud.set("http://s/v2.1/servers/detail", "", 503);
  EXPECT_FALSE(f.client().servers("x")) << "part of a cloud is not enough";
}

// Units -----------------------------------------------------------------------------------------

TEST(Openstack, GivesServersAsUnitsWithNames) {
  Fixture f;
  f.live = {server_json("a"), server_json("b", "ACTIVE", "u2", "p1")};
  const auto units = f.manager().fetch_units(kWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 2U);
  EXPECT_EQ((*units)[0].username, "ann");
  EXPECT_EQ((*units)[0].project, "alpha");
  EXPECT_EQ((*units)[1].username, "bob");
  EXPECT_EQ((*units)[0].total_time_seconds.at("walltime"), 3600);
  // The search for deleted servers starts five minutes before the window.
  EXPECT_EQ(f.cloud.count("changes-since=2026-01-01T07%3A55%3A00%2B0000"), 1U);
}

TEST(Openstack, RemembersWhatWasOffAtTheEndOfTheLastWindow) {
  Fixture f;
  f.live = {server_json("a", "SHUTOFF")};
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  std::string started = server_json("a");
  const std::string_view before = "07:00:10Z";  // "updated"
  started.replace(started.find(before), before.size(), "09:15:00Z");
  f.live = {started};
  const model::Window next{.start_ms = kWindow.end_ms, .end_ms = kWindow.end_ms + 3'600'000};
  const auto units = f.manager().fetch_units(next, {});
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_EQ(units->at(0).total_time_seconds.at("walltime"), 2700);
}

TEST(Openstack, FailsWhileNamesAreNotKnownRatherThanStoringNone) {
  Fixture f;
  f.live = {server_json("a")};
  f.cloud.set(kUsers, "", 503);
  const auto units = f.manager().fetch_units(kWindow, {});
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error().message, "users and projects: GET http://key/v3/users: HTTP status 503");
}

TEST(Openstack, GoesOnWithKnownNamesWhileKeystoneHasNoLists) {
  Fixture f;
  f.live = {server_json("a")};
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  f.cloud.set(kUsers, "", 503);
  const auto units = f.manager().fetch_units(kWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_EQ(units->at(0).username, "ann");
  EXPECT_FALSE(f.manager().fetch_users_projects(kWindow, {}));
}

TEST(Openstack, ReadsUsersAnewForOneThatIsNotKnown) {
  Fixture f;
  f.options.users_refresh_interval = std::chrono::hours(1);
  f.live = {server_json("a")};
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  EXPECT_EQ(f.cloud.count(kUsers + "/u1/projects"), 1U) << "kept for the interval";
  f.cloud.set(kUsers, named_json("users", {{"u1", "ann"}, {"u3", "eve"}}));
  f.cloud.set(projects_url("u3"), named_json("projects", {{"p3", "gamma"}}));
  f.live.push_back(server_json("b", "ACTIVE", "u3", "p3"));
  const auto units = f.manager().fetch_units(kWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_EQ(units->at(1).username, "eve");
  EXPECT_EQ(units->at(1).project, "gamma");
}

TEST(Openstack, DoesNotAskAgainAndAgainForAUserThatIsGone) {
  Fixture f;
  f.options.users_refresh_interval = std::chrono::hours(1);
  f.live = {server_json("a", "ACTIVE", "gone", "gone-too")};
  for (int i = 0; i < 3; ++i) {
    const auto units = f.manager().fetch_units(kWindow, {});
    ASSERT_TRUE(units) << units.error().message;
    EXPECT_EQ(units->at(0).username, "");
  }
  EXPECT_EQ(f.cloud.count("users/gone"), 1U);
  EXPECT_EQ(f.cloud.count("projects/gone-too"), 1U);
}

TEST(Openstack, LooksUpNamesThatNoListHas) {
  Fixture f;
  f.live = {server_json("a", "ACTIVE", "ldap1", "p9")};
  f.cloud.set("http://key/v3/users/ldap1",
              R"({"user":{"id":"ldap1","name":"ann","domain_id":"ldap"}})");
  f.cloud.set("http://key/v3/projects/p9",
              R"({"project":{"id":"p9","name":"omega","domain_id":"default"}})");
  const auto units = f.manager().fetch_units(kWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_EQ(units->at(0).username, "ann@ldap") << "not the ann of the default domain";
  EXPECT_EQ(units->at(0).project, "omega");
}

TEST(Openstack, KeepsTheNamesOfThoseWhoAreGone) {
  Fixture f;
  f.live = {server_json("a", "ACTIVE", "u2", "p2")};
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  f.cloud.set(kUsers, named_json("users", {{"u1", "ann"}}));
  f.cloud.set(projects_url("u1"), named_json("projects", {{"p1", "alpha"}}));
  const auto units = f.manager().fetch_units(kWindow, {});
  ASSERT_TRUE(units);
  EXPECT_EQ(units->at(0).username, "bob");
  EXPECT_EQ(units->at(0).project, "beta");
}

// Configuration ---------------------------------------------------------------------------------

Result<OpenstackOptions> options_of(std::string_view text) {
  const auto node = config::parse_yaml(text, "c.yml");
  EXPECT_TRUE(node);
  return parse_openstack_options(*node);
}

TEST(OpenstackOptions, AreReadFromExtraConfig) {
  const auto options = options_of(
      "api_service_endpoints:\n  compute: https://nova.example.org/v2.1/\n"
      "  identity: https://keystone.example.org/v3\n"
      "auth: {identity: {methods: [token]}}\nrequest_timeout: 10s\nusers_refresh_interval: 1m\n");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->endpoints.compute.at(""), "https://nova.example.org/v2.1") << "no port needed";
  EXPECT_EQ(options->endpoints.identity, "https://keystone.example.org");
  EXPECT_EQ(options->auth, R"({"identity":{"methods":["token"]}})");
  EXPECT_EQ(options->request_timeout, std::chrono::seconds(10));
  EXPECT_EQ(options->users_refresh_interval, std::chrono::minutes(1));
}

TEST(OpenstackOptions, NameRegions) {
  const auto options = options_of(
      "api_service_endpoints:\n  compute: {north: 'http://n:1/v2.1', south: 'http://s:1/v2.1'}\n"
      "  identity: http://k:5000\nauth: {a: b}\n");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->endpoints.compute.at("south"), "http://s:1/v2.1");
  EXPECT_EQ(options->request_timeout, std::chrono::minutes(1));
  EXPECT_EQ(options->users_refresh_interval, std::chrono::minutes(5));
}

TEST(OpenstackOptions, AreRefusedWithTheirLineAndWithoutSecrets) {
  const std::string good =
      "api_service_endpoints: {compute: 'http://n/v2.1', identity: 'http://k'}\n";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {good + "auth: {a: b}\nrequest_timeout: 0s\n", "c.yml:3:"},
      {good, "'auth'"},
      {good + "auth: swordfish\n", "c.yml:2:"},
      {"auth: {a: b}\n", "api_service_endpoints is missing"},
      {"auth: {a: b}\napi_service_endpoints: {compute: 'http://n/v2.1'}\n", "identity is missing"},
      {"auth: {a: b}\napi_service_endpoints: {compute: 'ftp://n', identity: 'http://k'}\n",
       "c.yml:2:"},
      {"auth: {a: b}\napi_service_endpoints: {compute: 'http://n', identity: 'http://k?x'}\n",
       "expected a URL"},
      {"auth: {a: b}\napi_service_endpoints: {computer: 'http://n', identity: 'http://k'}\n",
       "computer"},
      {"auth: {a: b}\napi_service_endpoints: {compute: {a: []}, identity: 'http://k'}\n",
       "c.yml:2:"}};
  for (const auto& [text, part] : wrong) {
    const auto options = options_of(text);
    ASSERT_FALSE(options) << text;
    EXPECT_THAT(options.error().message, HasSubstr(part)) << text;
    EXPECT_THAT(options.error().message, Not(HasSubstr("swordfish")));
  }
}

TEST(OpenstackOptions, AreNeeded) {
  Fixture f;
  ClusterConfig config;
  config.cluster.id = "os-1";
  const auto made = create_manager(openstack_manager(), config, {.clock = &f.clock});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("cluster os-1: manager openstack needs"));
}

}  // namespace
}  // namespace ceems::ingest
