#include "ingest/grafana_admins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;

struct Grafana {
  GrafanaAdmins admins(std::vector<std::string> teams = {"1", "2"}, config::NameMap names = {}) {
    return {"http://grafana.example.org/sub/", std::move(teams),
            [this](const std::string& url, const std::stop_token&) -> Result<net::ClientResponse> {
              urls.push_back(url);
              const auto found = bodies.find(url);
              if (down) {
                return fail(ErrorCode::kUnavailable, "connection refused");
              }
              return found == bodies.end()
                         ? net::ClientResponse{.status = 404, .headers = {}, .body = "[]"}
                         : net::ClientResponse{.status = 200, .headers = {}, .body = found->second};
            },
            std::move(names)};
  }
  void team(const std::string& id, const std::string& body) {
    bodies["http://grafana.example.org/sub/api/teams/" + id + "/members"] = body;
  }
  std::map<std::string, std::string> bodies;
  std::vector<std::string> urls;
  bool down = false;
};

constexpr const char* kAnn = R"([{"login":"ann","email":"a@x"}])";
constexpr const char* kAnnBob = R"([{"login":"ann"},{"login":"bob"},{"login":""}])";

TEST(GrafanaAdmins, AreTheMembersOfAllTeams) {
  Grafana grafana;
  grafana.team("1", kAnnBob);
  grafana.team("2", R"([{"login":"eve"},{"login":"ann"}])");
  auto admins = grafana.admins();
  EXPECT_THAT(admins.fetch({}).value().names, ElementsAre("ann", "bob", "eve"));
  EXPECT_THAT(grafana.urls, ElementsAre("http://grafana.example.org/sub/api/teams/1/members",
                                        "http://grafana.example.org/sub/api/teams/2/members"));
}

TEST(GrafanaAdmins, HaveTheNamesThatTheirRequestsGet) {
  Grafana grafana;
  grafana.team("1", R"([{"login":"UNI\\Ann"},{"login":"Bob@uni.example"},{"login":"eve"},)"
                    R"({"login":"Service"}])");
  const auto names = config::NameMap::read(
      config::parse_yaml("{lower_case: true, strip_domain: [uni], strip_mail: [uni.example]}", "c")
          .value(),
      "", "service");
  auto admins = grafana.admins({"1"}, names.value());
  EXPECT_THAT(admins.fetch({}).value().names, ElementsAre("Service", "ann", "bob", "eve"));
}

TEST(GrafanaAdmins, LeaveWithTheirTeam) {
  Grafana grafana;
  grafana.team("1", kAnnBob);
  auto admins = grafana.admins({"1"});
  ASSERT_TRUE(admins.fetch({}));
  grafana.team("1", kAnn);
  EXPECT_THAT(admins.fetch({}).value().names, ElementsAre("ann"));
}

TEST(GrafanaAdmins, StayWhileATeamCannotBeRead) {
  Grafana grafana;
  grafana.team("1", kAnnBob);
  grafana.team("2", R"([{"login":"eve"}])");
  auto admins = grafana.admins();
  EXPECT_TRUE(admins.fetch({}).value().all);
  for (const std::string body : {"{}", "", R"({"message":"Unauthorized"})", R"([{"name":"x"}])"}) {
    grafana.team("2", body);
    grafana.team("1", R"([{"login":"new"}])");
    const auto found = admins.fetch({}).value();
    EXPECT_THAT(found.names, ElementsAre("eve", "new")) << body;
    EXPECT_FALSE(found.all) << "bob has left, but maybe for team 2";
  }
  grafana.bodies.erase("http://grafana.example.org/sub/api/teams/2/members");
  EXPECT_FALSE(admins.fetch({}).value().all) << "status 404";
  grafana.team("2", "[]");
  const auto found = admins.fetch({}).value();
  EXPECT_THAT(found.names, ElementsAre("new"));
  EXPECT_TRUE(found.all);
}

TEST(GrafanaAdmins, OfTheOtherTeamsCountWhenOneIsWrong) {
  Grafana grafana;
  grafana.down = true;
  auto admins = grafana.admins();
  EXPECT_EQ(admins.fetch({}).error().message, "team 1: connection refused");
  grafana.down = false;
  EXPECT_EQ(admins.fetch({}).error().message, "team 1: HTTP status 404");
  grafana.team("1", kAnn);
  const auto found = admins.fetch({}).value();
  EXPECT_THAT(found.names, ElementsAre("ann"));
  EXPECT_FALSE(found.all);
  grafana.down = true;
  EXPECT_THAT(admins.fetch({}).value().names, ElementsAre("ann"));
}

TEST(GrafanaAdmins, EndWithTheProgram) {
  Grafana grafana;
  auto admins = grafana.admins();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(admins.fetch(stop.get_token()).error().message, "stopped");
  EXPECT_TRUE(grafana.urls.empty());
}

TEST(GrafanaAdmins, QuoteTheIdOfATeam) {
  Grafana grafana;
  (void)grafana.admins({"a/../b?c"}).fetch({});
  EXPECT_THAT(grafana.urls,
              ElementsAre("http://grafana.example.org/sub/api/teams/a%2F..%2Fb%3Fc/members"));
}

TEST(GrafanaMembers, AreReadOnlyFromAWholeList) {
  EXPECT_THAT(parse_team_members(kAnnBob).value(), ElementsAre("ann", "bob"));
  EXPECT_THAT(parse_team_members("[]").value(), ElementsAre());
  for (const char* wrong : {"", "{}", "null", "[1]", R"([{"login":1}])", R"([{"login":"a"},{}])",
                            R"([{"login":"a"})"}) {
    EXPECT_FALSE(parse_team_members(wrong)) << wrong;
  }
  EXPECT_FALSE(parse_team_members(R"([{"login":")" + std::string(256, 'x') + "\"}]"));
}

}  // namespace
}  // namespace ceems::ingest
