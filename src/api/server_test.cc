#include "api/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/server_test_support.h"
#include "webui/asset.h"

namespace ceems::api {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kForbidden =
    R"({"status":"error","errorType":"forbidden","error":"current user does not have admin privileges","data":null})"
    "\n";

/// What the endpoint requires, with the examples of the documentation.
std::string required_query(const Endpoint& endpoint) {
  std::string query;
  for (const ParamInfo& info : all_params()) {
    if (endpoint.required.contains(info.param)) {
      query += fmt::format("{}{}={}", query.empty() ? "?" : "&", info.name, info.example);
    }
  }
  return query;
}

TEST_F(ServerTest, EveryEndpointWithoutAUserIs401ExceptDemos) {
  for (const Endpoint& endpoint : all_endpoints()) {
    const auto response =
        request(std::string(endpoint.method()), "/api/v1/" + std::string(endpoint.path));
    if (endpoint.caller == Caller::kAnyone) {
      EXPECT_EQ(response.status, 200) << endpoint.path;
      EXPECT_THAT(response.body, HasSubstr(R"("status":"success")"));
      EXPECT_THAT(endpoint.path, StartsWith("demo/"));
    } else {
      EXPECT_EQ(response.status, 401) << endpoint.path;
      EXPECT_EQ(
          response.body,
          R"({"status":"error","errorType":"unauthorized","error":"no user identified","data":null})"
          "\n");
      EXPECT_EQ(header(response, "Content-Type"), "application/json");
    }
  }
}

TEST_F(ServerTest, AdminPathsAreForAdminsOnly) {
  int admin_routes = 0;
  for (const Endpoint& endpoint : all_endpoints()) {
    const bool admin = endpoint.path.ends_with("admin");
    EXPECT_EQ(admin, endpoint.caller == Caller::kAdmin) << endpoint.path;
    if (admin) {
      ++admin_routes;
      const auto response = get("/api/v1/" + std::string(endpoint.path), "ada");
      EXPECT_EQ(response.status, 403) << endpoint.path;
      EXPECT_EQ(response.body, kForbidden);
      // Without what it requires, a request is a mistake of somebody who may have an answer.
      const std::string path = fmt::format("/api/v1/{}", endpoint.path);
      EXPECT_EQ(get(path, "root").status, endpoint.required.empty() ? 200 : 400) << path;
      if (!endpoint.required.contains(Param::kUuid)) {  // the unit of the example is not here
        const std::string asked = path + required_query(endpoint);
        EXPECT_EQ(get(asked, "root").status, 200) << asked;
      }
    }
  }
  EXPECT_GE(admin_routes, 20);
}

TEST_F(ServerTest, UnknownPathsAndMethodsAre404) {
  for (const std::string path : {"/api/v1/nothing", "/api/v1/units/", "/api/v1/Units", "/api/v1",
                                 "/api/v1/usage/foo", "/api/v1/stats/global", "/debug/pprof/"}) {
    const auto response = get(path, "root");
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.body, "404 page not found\n");
    EXPECT_EQ(header(response, "Content-Type"), "text/plain; charset=utf-8");
  }
  for (const std::string method : {"POST", "HEAD", "PUT", "DELETE"}) {
    EXPECT_EQ(request(method, "/api/v1/units", {{"X-Grafana-User", "root"}}).status, 404);
  }
  EXPECT_EQ(get("/api/v1/units/check", "root").status, 404);  // takes POST
}

TEST_F(ServerTest, UncleanPathsAreRedirected) {
  const auto response = get("/api//v1/./x/../units?uuid=1", "ada");
  EXPECT_EQ(response.status, 301);
  EXPECT_EQ(header(response, "Location"), "/api/v1/units?uuid=1");
  EXPECT_EQ(header(get("//evil.example/a\r\nb"), "Location"), "/evil.example/a%0D%0Ab");
  EXPECT_EQ(header(get("/../../health"), "Location"), "/health");
}

TEST_F(ServerTest, AUserSeesOwnUnits) {
  EXPECT_EQ(
      body("units?uuid=1&field=uuid&field=state&field=total_time_seconds", "ada"),
      R"({"status":"success","data":[)"
      R"({"uuid":"1","state":"COMPLETED","total_time_seconds":{"alloc_cputime":3600,"walltime":1800}},)"
      R"({"uuid":"1","state":"COMPLETED","total_time_seconds":{"alloc_cputime":3600,"walltime":1800}}]})"
      "\n");
  EXPECT_EQ(body("units?uuid=2&field=uuid", "ada"), "{\"status\":\"success\",\"data\":[]}\n");
  EXPECT_EQ(body("units?uuid=2&field=uuid&user=bob", "ada"),
            "{\"status\":\"success\",\"data\":[]}\n");
}

TEST_F(ServerTest, AllFieldsOfAUnit) {
  EXPECT_EQ(
      body("units?uuid=1&cluster_id=hpc-a", "ada"),
      R"({"status":"success","data":[{"cluster_id":"hpc-a","resource_manager":"slurm","uuid":"1",)"
      R"("name":"\u003cb\u003e1","project":"fluids","groupname":"grp","username":"ada",)"
      R"("created_at":"2025-12-31T23:00:00+0000","started_at":"2025-12-31T23:00:00+0000",)"
      R"("ended_at":"2025-12-31T23:30:00+0000","created_at_ts":1767222000000,)"
      R"("started_at_ts":1767222000000,"ended_at_ts":1767223800000,"elapsed":"00:30:00",)"
      R"("state":"COMPLETED","allocation":{"cpus":2},)"
      R"("total_time_seconds":{"alloc_cputime":3600,"walltime":1800},)"
      R"("avg_cpu_usage":{"global":41.25000000}}]})"
      "\n");
}

TEST_F(ServerTest, TheWindowIsOnTheEndAndRunningAddsTheOthers) {
  EXPECT_EQ(body("units?cluster_id=hpc-a&field=uuid", "ada"),
            "{\"status\":\"success\",\"data\":[{\"uuid\":\"1\"}]}\n");
  EXPECT_EQ(body("units?cluster_id=hpc-a&field=uuid&running=false", "ada"),
            "{\"status\":\"success\",\"data\":[{\"uuid\":\"1\"},{\"uuid\":\"10\"}]}\n");
  // Both ends belong to the window.
  EXPECT_THAT(body("units?field=uuid&from=1767223800&to=1767223800", "ada"), HasSubstr("\"1\""));
  EXPECT_THAT(body("units?field=uuid&from=1767223801", "ada"), HasSubstr("[]"));
  EXPECT_THAT(body("units?field=uuid&to=1767223799", "ada"), HasSubstr("[]"));
}

TEST_F(ServerTest, TimesInAnotherZone) {
  EXPECT_EQ(
      body("units?uuid=10&cluster_id=hpc-a&field=started_at&field=ended_at&timezone=Asia/Kolkata",
           "ada"),
      R"({"status":"success","data":[{"uuid":"","started_at":"2026-01-01T04:30:00+0530","ended_at":"Unknown"}]})"
      "\n");
  EXPECT_THAT(body("units?uuid=1&field=ended_at&timezone=Mars/Base", "ada"),
              HasSubstr("2025-12-31T23:30:00+0000"));
}

TEST_F(ServerTest, BadParametersAre400) {
  const auto bad = [](const std::string& error) {
    return R"({"status":"error","errorType":"bad_data","error":")" + error + "\",\"data\":null}\n";
  };
  EXPECT_EQ(body("units?field=uuiid", "ada"), bad("invalid query fields"));
  EXPECT_EQ(body("units?from=x", "ada"), bad("query parameter 'from': malformed timestamp"));
  EXPECT_EQ(body("usage/current?to=99999999999999999", "ada"),
            bad("query parameter 'to': malformed timestamp"));
  EXPECT_EQ(body("units/verify", "ada"), bad("uuids missing in the request"));
  EXPECT_EQ(body("usage/current?groupby=id)%20UNION%20SELECT", "ada"), bad("invalid query fields"));
  // One valid field is enough.
  EXPECT_EQ(get("/api/v1/units?field=uuid&field=id", "ada").status, 200);
}

TEST_F(ServerTest, EmptyFiltersDoNotRestrict) {
  EXPECT_THAT(body("units?cluster_id=&project=&uuid=&field=uuid", "ada"), HasSubstr("\"1\""));
}

TEST_F(ServerTest, LongPeriodsAreRefusedBeforeRounding) {
  make({.max_period_ms = 168 * kHour});
  const std::string too_long = "from=1672527600&to=1685570400";
  EXPECT_EQ(get("/api/v1/units?" + too_long, "ada").status, 400);
  EXPECT_THAT(body("units?" + too_long, "ada"), HasSubstr("maximum query window exceeded"));
  EXPECT_EQ(get("/api/v1/units?uuid=1&" + too_long, "ada").status, 200);
  EXPECT_EQ(get("/api/v1/usage/current?" + too_long, "ada").status, 400);
  EXPECT_EQ(get("/api/v1/stats/current/admin?" + too_long, "root").status, 400);
  // Exactly a week that starts beside a multiple of 900 s.
  EXPECT_EQ(get("/api/v1/usage/current?from=1767000001&to=1767604801", "ada").status, 200);
}

TEST_F(ServerTest, ServiceAccountsAreForMembersOfTheClustersProject) {
  EXPECT_EQ(
      body("units?project=fluids&field=uuid&field=cluster_id", "ada"),
      R"({"status":"success","data":[{"cluster_id":"hpc-a","uuid":"1"},{"cluster_id":"hpc-a","uuid":"4"},)"
      R"({"cluster_id":"hpc-b","uuid":"1"}]})"
      "\n");
  EXPECT_EQ(body("units?project=fluids&field=uuid", "eve"),
            "{\"status\":\"success\",\"data\":[]}\n");
  EXPECT_THAT(body("users?project=fluids", "eve"), Not(HasSubstr("svc")));
  EXPECT_THAT(body("users?project=fluids&cluster_id=hpc-a", "ada"), HasSubstr("fluids:svc"));
}

TEST_F(ServerTest, AdminsFilterByProjectWithoutAUser) {
  EXPECT_EQ(body("units/admin?project=fluids&cluster_id=hpc-b&field=uuid", "root"),
            R"({"status":"success","data":[{"uuid":"1"},{"uuid":"2"},{"uuid":"4"}]})"
            "\n");
  EXPECT_EQ(body("units/admin?user=bob&cluster_id=hpc-b&field=uuid", "root"),
            R"({"status":"success","data":[{"uuid":"2"}]})"
            "\n");
}

TEST_F(ServerTest, VerifyNeedsEveryIdInAProjectOfTheCaller) {
  const auto status = [this](const std::string& query, const std::string& user) {
    return get("/api/v1/units/verify?" + query, user).status;
  };
  EXPECT_EQ(body("units/verify?cluster_id=hpc-a&uuid=1&uuid=2", "ada"),
            "{\"status\":\"success\",\"data\":null}\n");
  EXPECT_EQ(
      body("units/verify?cluster_id=hpc-a&uuid=3", "ada"),
      R"({"status":"error","errorType":"forbidden","error":"user do not have permissions on uuids","data":null})"
      "\n");
  EXPECT_EQ(status("cluster_id=hpc-a&uuid=1&uuid=1", "ada"), 200);
  EXPECT_EQ(status("cluster_id=hpc-a&cluster_id=hpc-b&uuid=1&uuid=3", "ada"), 403);
  EXPECT_EQ(status("cluster_id=hpc-b&uuid=1", "ada"), 200);  // own, though not a member there
  EXPECT_EQ(status("cluster_id=hpc-b&uuid=2", "ada"), 403);
  EXPECT_EQ(status("uuid=1", "ada"), 403);
  EXPECT_EQ(status("cluster_id=hpc-a", "ada"), 400);
  EXPECT_EQ(status("cluster_id=hpc-b&uuid=3", "root"), 200);
  // What the load balancer takes for "no rows were counted".
  const std::string both = "/api/v1/units/verify?cluster_id=hpc-a&uuid=1&uuid=2";
  EXPECT_EQ(header(get(both, "ada"), "X-Ceems-Verified"), "each");
  EXPECT_EQ(header(get("/api/v1/units?uuid=1", "ada"), "X-Ceems-Verified"), "(none)");
}

TEST_F(ServerTest, UsersAndProjects) {
  EXPECT_EQ(
      body("users?cluster_id=hpc-a", "ada"),
      R"({"status":"success","data":[{"cluster_id":"hpc-a","resource_manager":"slurm","name":"ada","projects":["fluids"]}]})"
      "\n");
  EXPECT_EQ(
      body("projects", "ada"),
      R"({"status":"success","data":[{"cluster_id":"hpc-a","resource_manager":"slurm","name":"fluids","users":["ada","bob"]}]})"
      "\n");
  EXPECT_EQ(body("projects?project=optics", "ada"), "{\"status\":\"success\",\"data\":[]}\n");
  EXPECT_EQ(
      body("users/admin?user=bob&cluster_id=hpc-b", "root"),
      R"({"status":"success","data":[{"cluster_id":"hpc-b","resource_manager":"slurm","name":"bob","projects":["fluids"]}]})"
      "\n");
  EXPECT_EQ(body("users/admin?role=admin", "root"),
            R"({"status":"success","data":[{"cluster_id":"all","name":"root","tags":["ceems"]},)"
            R"({"cluster_id":"all","name":"ceems-int-svc","tags":["ceems"]}]})"
            "\n");
  EXPECT_EQ(body("users?role=admin&cluster_id=hpc-a", "ada"),
            body("users?cluster_id=hpc-a", "ada"));
}

TEST_F(ServerTest, ClustersAndCounts) {
  EXPECT_EQ(
      body("clusters/admin", "ceems-int-svc"),
      R"({"status":"success","data":[{"id":"hpc-a","manager":"slurm"},{"id":"hpc-b","manager":"slurm"}]})"
      "\n");
  const std::string counts =
      R"({"status":"success","data":[{"cluster_id":"hpc-a","resource_manager":"slurm","num_units":5,"num_inactive_units":4,"num_active_units":1,"num_projects":2,"num_users":4}]})"
      "\n";
  EXPECT_EQ(body("stats/global/admin?cluster_id=hpc-a", "root"), counts);
  EXPECT_EQ(body("stats/current/admin?cluster_id=hpc-a", "root"), counts);
  EXPECT_THAT(body("stats/current/admin?cluster_id=hpc-a&to=1700000000", "root"),
              HasSubstr(R"("num_units":1,"num_inactive_units":0)"));
}

TEST_F(ServerTest, UsageOfOwnProjects) {
  EXPECT_EQ(
      body("usage/"
           "global?field=username&field=project&field=num_units&field=avg_cpu_usage&cluster_id=hpc-"
           "a",
           "bob"),
      R"({"status":"success","data":[)"
      R"({"cluster_id":"","resource_manager":"","num_units":2,"project":"fluids","groupname":"","username":"ada","avg_cpu_usage":{"global":41.25000000}},)"
      R"({"cluster_id":"","resource_manager":"","num_units":1,"project":"fluids","groupname":"","username":"bob","avg_cpu_usage":{"global":41.25000000}},)"
      R"({"cluster_id":"","resource_manager":"","num_units":1,"project":"fluids","groupname":"","username":"fluids:svc","avg_cpu_usage":{"global":41.25000000}}]})"
      "\n");
  // Membership in hpc-a only.
  // On hpc-b, ada is not a member: only what is her own.
  EXPECT_THAT(body("usage/global?cluster_id=hpc-b", "ada"),
              AllOf(HasSubstr(R"("username":"ada")"), Not(HasSubstr(R"("username":"bob")"))));
  // On hpc-b, ada is not a member: only what is her own.
  EXPECT_THAT(body("usage/current?cluster_id=hpc-b", "ada"),
              AllOf(HasSubstr(R"("username":"ada")"), Not(HasSubstr(R"("username":"bob")"))));
  EXPECT_THAT(body("usage/current?project=optics", "ada"), HasSubstr("\"data\":[]"));
  EXPECT_THAT(body("usage/global/admin?user=eve", "root"), Not(HasSubstr("fluids")));
  EXPECT_THAT(body("usage/global/admin?project=fluids", "root"), HasSubstr("hpc-b"));
}

TEST_F(ServerTest, CurrentUsageIsGroupedByClusterToo) {
  EXPECT_EQ(
      body("usage/current/admin?user=eve&field=cluster_id&field=num_units&field=total_time_seconds",
           "root"),
      R"({"status":"success","data":[)"
      R"({"cluster_id":"hpc-a","resource_manager":"","num_units":1,"project":"","groupname":"","username":"","total_time_seconds":{"alloc_cputime":3600,"walltime":1800}},)"
      R"({"cluster_id":"hpc-b","resource_manager":"","num_units":1,"project":"","groupname":"","username":"","total_time_seconds":{"alloc_cputime":3600,"walltime":1800}}]})"
      "\n");
  // Scalars alone are answered too.
  EXPECT_THAT(body("usage/current/admin?user=eve&field=username&cluster_id=hpc-a", "root"),
              HasSubstr(R"("username":"eve")"));
  EXPECT_THAT(body("usage/current?experimental&field=num_units&cluster_id=hpc-a", "ada"),
              HasSubstr(R"("num_units":2)"));
}

TEST_F(ServerTest, CurrentUsageIsCachedUntilTheDataChanges) {
  const std::string path = "/api/v1/usage/current?cluster_id=hpc-a";
  const auto first = get(path, "ada");
  EXPECT_EQ(header(first, "Expires"), "(none)");
  const auto second = get(path, "ada");
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(header(second, "Expires"), "Thu, 01 Jan 2026 00:15:00 GMT");
  EXPECT_EQ(header(get(path, "bob"), "Expires"), "(none)");  // each has their own
  EXPECT_NE(get(path, "eve").body, first.body);
  clock_.advance(std::chrono::minutes(14));
  EXPECT_EQ(header(get(path + "&to=1767225600&from=1767139200", "ada"), "Expires"),
            "Thu, 01 Jan 2026 00:15:00 GMT");
  // A revoked membership counts at once.
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + 1000};
  update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}}};
  ASSERT_TRUE(db_->writer().write(update));
  EXPECT_THAT(get(path, "bob").body, HasSubstr(R"("username":"ada")"));
  const std::string left = get(path, "ada").body;  // only what is ada's own
  EXPECT_THAT(left, HasSubstr(R"("username":"ada")"));
  EXPECT_THAT(left, Not(HasSubstr(R"("username":"bob")")));
}

TEST_F(ServerTest, SeriesAreForOwnersAndAdmins) {
  const std::string path = "units/series?cluster_id=hpc-a&uuid=1";
  EXPECT_EQ(
      body(path, "ada"),
      R"({"status":"success","data":[{"name":"cpu","unit":"cores","points":[[1767225600000,1.5],[1767225600001,2]]}]})"
      "\n");
  EXPECT_EQ(series_.asked, "hpc-a 1 -3600000 -1800000");
  series_.asked.clear();
  EXPECT_EQ(get("/api/v1/" + path, "bob").status, 403);
  EXPECT_EQ(get("/api/v1/units/series?cluster_id=hpc-a&uuid=nothing", "root").status, 403);
  EXPECT_EQ(get("/api/v1/units/series?uuid=1", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units/series?cluster_id=hpc-a&uuid=1&uuid=3", "ada").status, 400);
  EXPECT_EQ(series_.asked, "");
  EXPECT_EQ(get("/api/v1/" + path, "root").status, 200);
  // Times beside the unit's life are not for its owner: ids are used again.
  static_cast<void>(get("/api/v1/" + path + "&from=0&to=1800000000", "ada"));
  EXPECT_EQ(series_.asked, "hpc-a 1 -3660000 -1740000");
  series_.fails = true;
  const auto failed = get("/api/v1/" + path, "ada");
  EXPECT_EQ(failed.status, 503);
  EXPECT_THAT(failed.body, Not(HasSubstr("secret")));
}

TEST_F(ServerTest, SeriesHaveTheChartsAndLinesThatAreAskedFor) {
  const std::string path = "units/series?cluster_id=hpc-a&uuid=1";
  static_cast<void>(body(path, "ada"));
  EXPECT_EQ(series_.charts, " by sum 300 64");
  EXPECT_EQ(
      body(path + "&metric=gpu_use,ipc&by=gpu", "ada"),
      R"({"status":"success","data":[{"name":"gpu_use","unit":"percent","labels":{"hostname":"n1","index":"0","gpuuuid":"GPU-1"},"limit":100,"points":[[1767225600000,12.35]]},{"name":"ipc","unit":"","none":"too_short","collector":"perf","points":[]}]})"
      "\n");
  EXPECT_EQ(series_.charts, "gpu_use+ipc by gpu 300 64");
  static_cast<void>(body(path + "&metric=cpu&by=node&points=50", "ada"));
  EXPECT_EQ(series_.charts, "cpu by node 50 64");
  static_cast<void>(body(path + "&metric=gpu_use&by=gpu&agg=bins", "ada"));
  EXPECT_EQ(series_.charts, "gpu_use by gpu 24 4096");
  EXPECT_THAT(
      body(path + "&metric=gpu_use&by=gpu&agg=mean&from=0&to=1800000000", "ada"),
      HasSubstr(
          R"("labels":{"hostname":"n1","index":"0"},"limit":100,"points":[[1767223860000,12]]})"));
  EXPECT_EQ(series_.charts, "gpu_use by gpu 24 4096");
  series_.charts.clear();
  for (const auto* const wrong :
       {"&metric=gpu", "&metric=cpu,", "&metric=cpu&by=device", "&by=gpu", "&agg=bins",
        "&metric=cpu&agg=sum", "&metric=cpu&points=1", "&metric=cpu&points=301",
        "&metric=cpu&points=x", "&metric=cpu&agg=bins&points=25"}) {
    EXPECT_EQ(get("/api/v1/" + path + wrong, "ada").status,
              std::string_view(wrong) == "&metric=cpu," ? 200 : 400)
        << wrong;
  }
  EXPECT_EQ(series_.charts, "cpu by sum 300 64");
  EXPECT_EQ(get("/api/v1/" + path + "&metric=cpu&by=gpu", "bob").status, 403);
}

TEST_F(ServerTest, SeriesOfAnIdAreThoseOfOnesOwnLives) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + 3 * kHour};
  for (const auto& [hour, user] : {std::pair(1, "eve"), {2, "ada"}}) {
    auto unit = job("1", user, "fluids");
    unit.started_at = fmt::format("2026-01-01T0{}:00:00+0000", hour);
    unit.created_at_ts = unit.started_at_ts = kNow + hour * kHour;
    unit.ended_at_ts = kNow + hour * kHour + kHour / 2;
    update.units.push_back(unit);
  }
  write(update);
  clock_.advance(std::chrono::hours(3));
  const std::string path = "/api/v1/units/series?cluster_id=hpc-a&uuid=1";
  using Spans = std::vector<promql::TimeSpan>;
  const Spans of_ada{{kNow - kHour, kNow - kHour / 2}, {kNow + 2 * kHour, kNow + 5 * kHour / 2}};
  const Spans of_eve{{kNow + kHour, kNow + 3 * kHour / 2}};
  EXPECT_EQ(get(path, "ada").status, 200);
  EXPECT_EQ(series_.asked, "hpc-a 1 -3600000 9000000");
  EXPECT_EQ(series_.lives.own, of_ada);
  EXPECT_EQ(series_.lives.others, of_eve);
  EXPECT_EQ(get(path, "eve").status, 200);
  EXPECT_EQ(series_.lives.own, of_eve);
  EXPECT_EQ(series_.lives.others, of_ada);
  EXPECT_EQ(get(path, "root").status, 200);
  EXPECT_EQ(series_.lives.own.size(), 3U);
  EXPECT_TRUE(series_.lives.others.empty());
  EXPECT_EQ(get(path, "bob").status, 403);
  series_.refuses = true;
  EXPECT_EQ(get(path, "ada").status, 403);
}

TEST_F(ServerTest, AnUnknownCallerMayAskWhoItIs) {
  const auto response = get("/api/v1/whoami?anonymous=true");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "{\"status\":\"success\",\"data\":[]}\n");
  EXPECT_EQ(get("/api/v1/whoami").status, 401);
  EXPECT_EQ(get("/api/v1/units?anonymous=true").status, 401);
  EXPECT_THAT(get("/api/v1/whoami?anonymous=true", "ada").body, HasSubstr("\"ada\""));
}

TEST_F(ServerTest, TwoUserHeadersAreRefused) {
  for (const std::string second : {"root", "ada", ""}) {
    EXPECT_EQ(
        request("GET", "/api/v1/units", {{"X-Grafana-User", "ada"}, {"x-grafana-user", second}})
            .status,
        401)
        << second;
  }
}

TEST_F(ServerTest, WhoAmI) {
  EXPECT_EQ(
      body("whoami", "ada"),
      "{\"status\":\"success\",\"data\":[{\"user\":\"ada\",\"admin\":false,\"role\":\"user\"}]}\n");
  EXPECT_EQ(body("whoami", "root"),
            "{\"status\":\"success\",\"data\":[{\"user\":\"root\",\"admin\":true,\"role\":"
            "\"admin\"}]}\n");
}

TEST_F(ServerTest, CrossOriginHeaders) {
  const net::Headers headers{{"Origin", "https://grafana.example"}};
  for (const auto& response :
       {request("OPTIONS", "/api/v1/units", headers), request("GET", "/api/v1/units", headers)}) {
    EXPECT_EQ(header(response, "Access-Control-Allow-Headers"),
              "Accept, Authorization, Content-Type, Origin, X-Grafana-User");
    EXPECT_EQ(header(response, "Access-Control-Allow-Methods"), "GET");
    EXPECT_EQ(header(response, "Access-Control-Allow-Origin"), "https://grafana.example");
    EXPECT_EQ(header(response, "Access-Control-Expose-Headers"), "Date");
    EXPECT_EQ(header(response, "Vary"), "Origin");
  }
  EXPECT_EQ(request("OPTIONS", "/api/v1/units", headers).status, 200);
  EXPECT_EQ(request("OPTIONS", "/api/v1/units", headers).body, "");
  EXPECT_EQ(header(get("/api/v1/units", "ada"), "Vary"), "(none)");
  EXPECT_EQ(header(request("GET", "/", headers), "Access-Control-Allow-Origin"), "(none)");
  make({.cors_origin = R"(https://.*\.example)"});
  EXPECT_EQ(header(request("OPTIONS", "/api/v1/units", headers), "Access-Control-Allow-Origin"),
            "https://grafana.example");
  EXPECT_EQ(header(request("OPTIONS", "/api/v1/units", {{"Origin", "https://a.example.evil"}}),
                   "Access-Control-Allow-Origin"),
            "(none)");
}

TEST_F(ServerTest, ThePrefixMovesTheApiAndKeepsHealth) {
  make({.route_prefix = "/ceems/"});
  EXPECT_EQ(get("/ceems/api/v1/whoami", "ada").status, 200);
  EXPECT_EQ(get("/api/v1/whoami", "ada").status, 404);
  EXPECT_EQ(get("/ceemsapi/v1/whoami", "ada").status, 404);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ceems/health").body, "CEEMS API Server is healthy");
  EXPECT_EQ(get("/ceems/").status, 200);
  EXPECT_FALSE(ApiServer::create({.route_prefix = "x"}, db_->reader(), nullptr, registry_, clock_));
}

TEST_F(ServerTest, RequestsPerMinuteAreLimited) {
  make({.max_requests = 2});
  EXPECT_EQ(header(get("/health"), "X-Ratelimit-Remaining"), "1");
  EXPECT_EQ(header(get("/nothing"), "X-Ratelimit-Limit"), "(none)");
  EXPECT_EQ(get("/health").status, 200);
  const auto refused = get("/api/v1/units");  // before identity
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, "Too Many Requests\n");
  EXPECT_EQ(header(refused, "Retry-After"), "60");
  EXPECT_EQ(header(refused, "X-Ratelimit-Reset"), "1767225660");
  EXPECT_EQ(request("GET", "/health", {{"X-Real-IP", "192.0.2.99"}}).status, 200);
  clock_.advance(std::chrono::minutes(1));
  EXPECT_EQ(get("/health").status, 429);  // the minute before still counts
  clock_.advance(std::chrono::seconds(50));
  EXPECT_EQ(get("/health").status, 200);
  make({.max_requests = 1, .trusted_proxies = {"198.51.100.1"}});
  EXPECT_EQ(request("GET", "/health", {{"X-Real-IP", "192.0.2.98"}}).status, 200);
  EXPECT_EQ(request("GET", "/health", {{"X-Real-IP", "192.0.2.97"}}).status, 429);
}

TEST_F(ServerTest, TrustedRangesAreNotLimited) {
  // The peer of every request is 192.0.2.1.
  make({.max_requests = 1, .trusted_ip_prefix = {"192.0.2.0/24"}});
  for (int i = 0; i < 3; ++i) {
    const auto answer = get("/health");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(header(answer, "X-Ratelimit-Limit"), "(none)");
  }
  // An address in a header counts only behind a configured proxy: anybody can send one.
  make({.max_requests = 1, .trusted_ip_prefix = {"10.0.0.0/8"}});
  const auto from = [this](const net::Headers& headers) {
    return request("GET", "/health", headers).status;
  };
  for (const char* name : {"X-Real-IP", "True-Client-IP", "X-Forwarded-For"}) {
    EXPECT_EQ(from({{name, "10.1.2.3"}}), std::string(name) == "X-Real-IP" ? 200 : 429) << name;
  }
  make({.max_requests = 1,
        .trusted_proxies = {"192.0.2.1"},
        .trusted_ip_prefix = {"10.0.0.0/8", "2001:db8::/32"}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(from({{"X-Forwarded-For", "203.0.113.9, 10.1.2.3"}}), 200);
    EXPECT_EQ(from({{"x-forwarded-for", "2001:db8::7"}}), 200);
  }
  // What the client itself sent stands before the address that the proxy added.
  EXPECT_EQ(from({{"X-Forwarded-For", "10.1.2.3, 203.0.113.9"}}), 200);
  EXPECT_EQ(from({{"X-Forwarded-For", "10.1.2.3, 203.0.113.9"}}), 429);
  EXPECT_EQ(from({{"X-Forwarded-For", "10.1.2.3"}, {"X-Forwarded-For", "203.0.113.9"}}), 429);
  EXPECT_EQ(from({{"X-Real-IP", "10.1.2.4"}, {"True-Client-IP", "10.1.2.3"}}), 429);

  const auto refused = ApiServer::create({.trusted_ip_prefix = {"10.0.0.1/8"}}, db_->reader(),
                                         nullptr, registry_, clock_);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with("--web.trusted-ip-prefix: "))
      << refused.error().message;
}

TEST_F(ServerTest, PagesNeedNoUser) {
  const auto page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(header(page, "Content-Type"), StartsWith("text/html"));
  EXPECT_THAT(header(page, "Content-Security-Policy"), HasSubstr("default-src 'none'"));
  if (!webui::available()) {
    EXPECT_THAT(page.body, HasSubstr("CEEMS API Server"));
    return;
  }
  EXPECT_EQ(get("/ui/").body, page.body);
  EXPECT_EQ(header(page, "Cache-Control"), "no-cache");
  EXPECT_EQ(request("GET", "/", {{"If-None-Match", header(page, "ETag")}}).status, 304);
  const auto small = request("GET", "/", {{"Accept-Encoding", "gzip"}});
  if (header(small, "Content-Encoding") == "gzip") {
    EXPECT_LT(small.body.size(), page.body.size());
    EXPECT_THAT(header(small, "ETag"), EndsWith("-gz\""));
  }
  EXPECT_EQ(header(request("GET", "/", {{"Accept-Encoding", "gzip;q=0"}}), "Content-Encoding"),
            "(none)");
  EXPECT_EQ(get("/ui/nothing.js").status, 404);
}

TEST_F(ServerTest, PagesAreFramedOnlyWhereTheConfigurationSaysSo) {
  const auto policy = [this](const std::string& target) {
    const auto page = get(target);
    const std::string all = header(page, "Content-Security-Policy");
    return all.substr(all.find("frame-ancestors")) + ", " + header(page, "X-Frame-Options");
  };
  constexpr std::string_view kNowhere = "frame-ancestors 'none', DENY";
  EXPECT_EQ(policy("/"), kNowhere);
  EXPECT_EQ(policy("/?embed=1"), kNowhere);
  EXPECT_EQ(policy("/swagger/index.html?embed=1"), kNowhere);
  make({.site = {.embed_ancestors = {"https://portal.example.org", "https://ood.example.org"}}});
  EXPECT_EQ(policy("/swagger/index.html?embed=1"), kNowhere);
  for (const std::string target : {"/", "/ui/", "/?embed=", "/?embed=0", "/?x=embed=1"}) {
    EXPECT_EQ(policy(target), kNowhere) << target;
  }
  if (webui::available()) {
    for (const std::string target : {"/?embed=1", "/ui/?user=ada&embed=1"}) {
      EXPECT_EQ(policy(target),
                "frame-ancestors https://portal.example.org https://ood.example.org, (none)")
          << target;
    }
  }
}

TEST_F(ServerTest, DatabaseErrorsAreNotShownToClients) {
  ASSERT_TRUE(db_->close());
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_EQ(get("/health").body, "KO");
  const auto response = get("/api/v1/units", "ada");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, Not(HasSubstr("ceems.db")));
}

TEST_F(ServerTest, NobodyGetsALowerRoleWhileTheListsCannotBeRead) {
  ASSERT_TRUE(db_->close());
  for (const std::string path : {"whoami", "whoami?anonymous=true", "units/admin", "site"}) {
    for (const std::string user : {"root", "ada"}) {
      const auto response = get("/api/v1/" + path, user);
      EXPECT_EQ(response.status, 503) << path << " as " << user;
      EXPECT_THAT(response.body, Not(HasSubstr("role")));
      EXPECT_EQ(header(response, "Retry-After"), "10");
    }
  }
  EXPECT_EQ(get("/api/v1/whoami").status, 401);  // an anonymous request needs no list
}

TEST_F(ServerTest, LongListsAreStreamedWhole) {
  store::ClusterUpdate update;
  update.cluster = {.id = "big", .manager = "slurm", .updaters = {}};
  update.window = {kNow - kHour, kNow};
  for (int i = 0; i < 3000; ++i) {
    update.units.push_back(job(fmt::format("{:05}", i), "ada", "fluids"));
  }
  ASSERT_TRUE(db_->writer().write(update));
  net::Request request;
  request.method = "GET";
  request.path = "/api/v1/units";
  request.query = "cluster_id=big";
  request.headers = {{"X-Grafana-User", "ada"}};
  net::Response response;
  server_->handle(request, response);
  ASSERT_TRUE(response.next_chunk);
  std::string body;
  std::size_t pieces = 0;
  while (response.next_chunk(body)) {
    ++pieces;
  }
  EXPECT_GT(pieces, 3U);
  EXPECT_THAT(body, StartsWith(R"({"status":"success","data":[{)"));
  EXPECT_THAT(body, EndsWith("}]}\n"));
  std::size_t count = 0;
  for (std::size_t at = body.find("\"uuid\""); at != std::string::npos;
       at = body.find("\"uuid\"", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 3000U);
}

}  // namespace
}  // namespace ceems::api
