// What the server adds around the rows: pages, entity tags, metrics, its description.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/server_test_support.h"

namespace ceems::api {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AnswersTest : public ServerTest {
 protected:
  /// All bodies of a listing, page by page as the header Link leads.
  std::vector<std::string> pages(const std::string& path,
                                 std::string query,
                                 const std::string& user) {
    std::vector<std::string> bodies;
    while (bodies.size() < 100) {
      const auto answer = get(path + query, user);
      EXPECT_EQ(answer.status, 200) << query << answer.body;
      bodies.push_back(answer.body);
      const std::string link = header(answer, "Link");
      if (link == "(none)") {
        EXPECT_THAT(answer.body, Not(HasSubstr("\"next\"")));
        break;
      }
      EXPECT_THAT(link, AllOf(StartsWith("<?"), EndsWith(">; rel=\"next\"")));
      query = link.substr(1, link.find('>') - 1);
      const std::string cursor = query.substr(query.rfind("cursor=") + 7);
      EXPECT_THAT(answer.body, EndsWith(",\"next\":\"" + cursor + "\"}\n"));
    }
    return bodies;
  }

  /// The rows of the bodies in one array, as the answer without pages has them.
  static std::string joined(const std::vector<std::string>& bodies) {
    std::string rows;
    for (const std::string& body : bodies) {
      const std::size_t begin = body.find('[') + 1;
      const std::size_t end = body.rfind(']');
      rows += (rows.empty() || begin == end ? "" : ",") + body.substr(begin, end - begin);
    }
    return "{\"status\":\"success\",\"data\":[" + rows + "]}\n";
  }

  void add_units(int count) {
    store::ClusterUpdate update;
    update.cluster = {.id = "many", .manager = "slurm", .updaters = {}};
    update.window = {kNow - kHour, kNow};
    for (int i = 0; i < count; ++i) {
      update.units.push_back(job(std::to_string(i), i % 3 == 0 ? "bob" : "ada", "fluids"));
    }
    ASSERT_TRUE(db_->writer().write(update));
  }

  net::Response again(const std::string& target, const std::string& user, const std::string& tag) {
    return request("GET", target, {{"X-Grafana-User", user}, {"If-None-Match", tag}});
  }
};

TEST_F(AnswersTest, PagesOfUnitsHoldEveryUnitOnce) {
  add_units(30);
  const std::string query = "?running&field=username&field=state";
  const std::string whole = get("/api/v1/units" + query, "ada").body;
  EXPECT_THAT(whole, Not(HasSubstr("next")));
  for (const int limit : {1, 2, 7, 24, 25, 100}) {
    const auto bodies = pages("/api/v1/units", query + "&limit=" + std::to_string(limit), "ada");
    EXPECT_EQ(joined(bodies), whole) << limit;
    EXPECT_EQ(bodies.size(), static_cast<std::size_t>((24 + limit - 1) / limit)) << limit;
  }
}

TEST_F(AnswersTest, UnitsAreSortedAsAskedFor) {
  add_units(10);
  const auto ids = [this](const std::string& query) {
    return get("/api/v1/units?running&field=uuid" + query, "ada").body;
  };
  for (const std::string sorting :
       {"&sort=ended_at", "&sort=ended_at&order=asc", "&order=desc", "&sort=id&order=asc"}) {
    const std::string query = "?running&field=uuid" + sorting;
    EXPECT_EQ(joined(pages("/api/v1/units", query + "&limit=3", "ada")), ids(sorting)) << sorting;
  }
  EXPECT_NE(ids("&order=desc"), ids(""));
  EXPECT_EQ(ids("&sort=id&order=asc"), ids(""));
  EXPECT_NE(ids("&sort=ended_at"), ids("&sort=ended_at&order=asc"));
  for (const char* wrong : {"&sort=name", "&order=up", "&sort=ENDED_AT"}) {
    EXPECT_EQ(get("/api/v1/units?limit=1" + std::string(wrong), "ada").status, 400) << wrong;
  }
  // A cursor is a place in one order only.
  const auto first = get("/api/v1/units?running&limit=1&sort=ended_at", "ada");
  const std::string link = header(first, "Link");
  std::string next = link.substr(1, link.find('>') - 1);
  EXPECT_EQ(get("/api/v1/units" + next, "ada").status, 200);
  EXPECT_EQ(get("/api/v1/units" + next + "&order=asc", "ada").status, 400);
}

TEST_F(AnswersTest, UnitsWithTheSameIdDifferByStart) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + kHour};
  for (int i = 0; i < 3; ++i) {
    auto unit = job("1", "ada", "fluids");
    unit.started_at = fmt::format("2025-12-31T23:0{}:00+0000", i + 1);
    unit.started_at_ts += (i + 1) * 60'000;
    update.units.push_back(unit);
  }
  ASSERT_TRUE(db_->writer().write(update));
  const std::string query = "?cluster_id=hpc-a&uuid=1&field=started_at";
  EXPECT_EQ(joined(pages("/api/v1/units", query + "&limit=1", "ada")),
            get("/api/v1/units" + query, "ada").body);
}

TEST_F(AnswersTest, ADefaultWindowDoesNotMoveBetweenPages) {
  add_units(4);
  const auto first = get("/api/v1/units?limit=1&field=uuid", "ada");
  const std::string link = header(first, "Link");
  EXPECT_THAT(link, HasSubstr("from=1767139200&to=1767225600"));
  clock_.advance(std::chrono::hours(48));  // everything has left the last 24 hours
  EXPECT_EQ(get("/api/v1/units?limit=1&field=uuid", "ada").body,
            "{\"status\":\"success\",\"data\":[]}\n");
  EXPECT_THAT(get("/api/v1/units" + link.substr(1, link.find('>') - 1), "ada").body,
              HasSubstr("\"uuid\""));
}

TEST_F(AnswersTest, PagesOfOtherListings) {
  for (const auto& [path, query] : std::vector<std::pair<std::string, std::string>>{
           {"units/admin", "?running&project=fluids"},
           {"users/admin", "?"},
           {"projects/admin", "?"},
           {"usage/global/admin", "?field=num_units"},
           {"usage/current/admin", "?from=0&to=1767225600"},
           {"usage/current/admin", "?groupby=groupname&groupby=resource_manager"}}) {
    const std::string target = "/api/v1/" + path;
    const auto bodies = pages(target, query + "&limit=1", "root");
    EXPECT_GT(bodies.size(), 3U) << path;
    EXPECT_EQ(joined(bodies), get(target + query, "root").body) << path;
  }
  EXPECT_EQ(pages("/api/v1/users", "?limit=1", "ada").size(), 2U);
  EXPECT_EQ(pages("/api/v1/projects", "?limit=1", "bob").size(), 2U);
  EXPECT_EQ(pages("/api/v1/usage/global", "?limit=2", "bob").size(), 3U);
}

TEST_F(AnswersTest, TheCursorOfAnotherUserShowsOnlyOwnRows) {
  const auto of_root = get("/api/v1/units/admin?limit=1&running", "root");
  const std::string link = header(of_root, "Link");
  const std::string next = link.substr(1, link.find('>') - 1);
  EXPECT_EQ(get("/api/v1/units" + next, "eve").status, 400);
  const auto of_bob = get("/api/v1/units?limit=1&running", "bob");
  const std::string bobs = header(of_bob, "Link");
  const auto seen = get("/api/v1/units" + bobs.substr(1, bobs.find('>') - 1), "eve");
  EXPECT_EQ(seen.status, 200);
  EXPECT_THAT(seen.body, Not(HasSubstr("bob")));
  EXPECT_THAT(seen.body, HasSubstr("eve"));
}

TEST_F(AnswersTest, OnlyListingsHavePages) {
  EXPECT_EQ(get("/api/v1/stats/global/admin?limit=x&cursor=y", "root").status, 200);
  EXPECT_EQ(get("/api/v1/usage/current?limit=x", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units?limit=x", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units?cursor=x", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units?cursor=&limit=", "ada").status, 200);
  EXPECT_THAT(get("/api/v1/users/admin?role=admin&limit=1", "root").body,
              HasSubstr("ceems-int-svc"));
}

TEST_F(AnswersTest, AnAnswerThatTheClientHasIsNotSentAgain) {
  for (const std::string path : {"units?from=0&to=1767225600", "usage/current", "usage/global",
                                 "users", "projects", "units/verify?cluster_id=hpc-a&uuid=1"}) {
    const std::string target = "/api/v1/" + path;
    const auto first = get(target, "ada");
    ASSERT_EQ(first.status, 200) << path;
    const std::string tag = header(first, "ETag");
    EXPECT_THAT(tag, StartsWith("W/\"")) << path;
    EXPECT_EQ(header(first, "Cache-Control"), "private, no-cache");
    const auto second = again(target, "ada", "\"x\", " + tag);
    EXPECT_EQ(second.status, 304) << path;
    EXPECT_EQ(second.body, "");
    EXPECT_EQ(header(second, "ETag"), tag);
    EXPECT_EQ(header(second, "Cache-Control"), "private, no-cache");
    EXPECT_EQ(again(target, "ada", "W/\"x\"").status, 200);
    // What is right for one caller is nothing for another.
    EXPECT_NE(again(target, "bob", tag).status, 304) << path;
    EXPECT_NE(
        again(target + (path.find('?') == std::string::npos ? "?" : "&") + "a", "ada", tag).status,
        304)
        << path;
  }
}

TEST_F(AnswersTest, ACommitInvalidatesEveryTag) {
  const std::string tag = header(get("/api/v1/projects", "ada"), "ETag");
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + 1000};
  update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}}};
  ASSERT_TRUE(db_->writer().write(update));
  const auto answer = again("/api/v1/projects", "ada", tag);
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("[]"));
}

TEST_F(AnswersTest, ATagDependsOnWindowAndServer) {
  const std::string tag = header(get("/api/v1/units", "ada"), "ETag");
  EXPECT_EQ(again("/api/v1/units", "ada", tag).status, 304);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(again("/api/v1/units", "ada", tag).status, 200);  // the default window has moved
  const std::string other = header(get("/api/v1/users", "ada"), "ETag");
  make();
  EXPECT_EQ(again("/api/v1/users", "ada", other).status, 200);
}

TEST_F(AnswersTest, ErrorsDemosAndSeriesAreNotCached) {
  for (const std::string target :
       {"/api/v1/units?field=x", "/api/v1/units/admin", "/api/v1/demo/units",
        "/api/v1/units/verify?uuid=1", "/api/v1/units/series?cluster_id=hpc-a&uuid=1"}) {
    const auto answer = get(target, "ada");
    EXPECT_EQ(header(answer, "Cache-Control"), "no-store") << target;
    EXPECT_EQ(header(answer, "ETag"), "(none)") << target;
    EXPECT_NE(again(target, "ada", "*").status, 304) << target;
  }
  EXPECT_EQ(header(get("/api/v1/units"), "Cache-Control"), "no-store");
}

TEST_F(AnswersTest, TheServerCountsWhatItDoes) {
  make({.max_requests = 6});
  registry_.gauge("other", "Help.").set(7);
  static_cast<void>(get("/api/v1/units?running", "ada"));
  static_cast<void>(get("/api/v1/usage/current", "ada"));
  static_cast<void>(get("/api/v1/usage/current", "ada"));
  static_cast<void>(get("/api/v1/usage/current", "bob"));
  static_cast<void>(get("/nothing"));
  static_cast<void>(get("/api/v1/units/admin", "ada"));
  const auto page = get("/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(header(page, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const std::string line :
       {"ceems_api_server_http_requests_total{route=\"units\",status=\"2xx\"} 1",
        "ceems_api_server_http_requests_total{route=\"units/admin\",status=\"4xx\"} 1",
        "ceems_api_server_http_requests_total{route=\"other\",status=\"4xx\"} 1",
        "ceems_api_server_http_request_duration_seconds_count{route=\"usage/current\"} 3",
        "ceems_api_server_http_requests_in_flight 1",
        "ceems_api_server_http_requests_limited_total 0",
        "ceems_api_server_usage_cache_lookups_total{result=\"hit\"} 1",
        "ceems_api_server_usage_cache_lookups_total{result=\"miss\"} 2",
        "ceems_api_server_db_rows_total{query=\"units\"} 4",
        // One for each user, and one for the names of the window.
        "ceems_api_server_db_query_duration_seconds_count{query=\"current_usage\"} 3",
        "ceems_api_server_db_query_failures_total{query=\"units\"} 0", "other 7"}) {
    EXPECT_THAT(page.body, HasSubstr("\n" + line + "\n"));
  }
  EXPECT_THAT(page.body, HasSubstr("\nprocess_resident_memory_bytes "));
  EXPECT_THAT(page.body, HasSubstr("ceems_api_server_build_info{branch="));
  EXPECT_EQ(get("/metrics").status, 429);
  make();
  ASSERT_TRUE(db_->close());
  static_cast<void>(get("/api/v1/units", "ada"));
  EXPECT_THAT(get("/metrics").body,
              AllOf(HasSubstr("\nceems_api_server_db_query_failures_total{query=\"identity\"} 1\n"),
                    HasSubstr("{route=\"units\",status=\"5xx\"} 1\n")));
}

TEST_F(AnswersTest, AFailureIsLoggedWhenItBegins) {
  ASSERT_TRUE(db_->close());
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(get("/api/v1/projects", "ada").status, 503);
    EXPECT_EQ(get("/health").status, 503);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  for (const std::string query : {"query=identity", "query=ping"}) {
    const std::size_t first = log.find(query);
    EXPECT_NE(first, std::string::npos) << log;
    EXPECT_EQ(log.find(query, first + 1), std::string::npos) << log;
  }
}

TEST_F(AnswersTest, AStreamIsInFlightUntilItsLastChunk) {
  add_units(3000);
  net::Request request;
  request.method = "GET";
  request.path = "/api/v1/units";
  request.query = "cluster_id=many";
  request.headers = {{"X-Grafana-User", "ada"}};
  {
    net::Response response;
    server_->handle(request, response);
    ASSERT_TRUE(response.next_chunk);
    EXPECT_THAT(get("/metrics").body, HasSubstr("requests_in_flight 2\n"));
  }
  EXPECT_THAT(get("/metrics").body, HasSubstr("requests_in_flight 1\n"));
}

TEST_F(AnswersTest, TheDocumentIsServedAtThePathOfTheReference) {
  make({.route_prefix = "/ceems"});
  const auto document = get("/openapi.json");
  EXPECT_EQ(document.status, 200);
  EXPECT_EQ(header(document, "Content-Type"), "application/json");
  EXPECT_THAT(document.body, StartsWith(R"({"openapi":"3.1.0")"));
  EXPECT_THAT(document.body, HasSubstr(R"("servers":[{"url":"/ceems/api/v1"}])"));
  for (const std::string prefix : {"", "/ceems"}) {
    EXPECT_EQ(get(prefix + "/swagger/doc.json").body, document.body);
    EXPECT_EQ(get(prefix + "/openapi.json").body, document.body);
    EXPECT_EQ(get(prefix + "/metrics").status, 200);
    const auto page = get(prefix + "/swagger/index.html");
    EXPECT_EQ(header(page, "Content-Type"), "text/html; charset=utf-8");
    EXPECT_THAT(header(page, "Content-Security-Policy"),
                AllOf(HasSubstr("default-src 'none'"), HasSubstr("form-action 'self'")));
    EXPECT_EQ(header(get(prefix + "/swagger/style.css"), "Content-Type"),
              "text/css; charset=utf-8");
    EXPECT_EQ(header(get(prefix + "/swagger/"), "Location"), "index.html");
    EXPECT_EQ(header(get(prefix + "/swagger"), "Location"), "swagger/index.html");
    EXPECT_EQ(get(prefix + "/swagger/").status, 301);
  }
  EXPECT_EQ(request("GET", "/openapi.json", {{"If-None-Match", header(document, "ETag")}}).status,
            304);
  EXPECT_EQ(get("/swagger/nothing").status, 404);
  const auto posted = request("POST", "/swagger/doc.json");
  EXPECT_EQ(posted.status, 405);
  EXPECT_EQ(posted.body, "Method not allowed\n");
  EXPECT_EQ(header(posted, "Allow"), "GET, HEAD");
  EXPECT_EQ(request("HEAD", "/metrics").status, 200);
  // No headers for other origins, as the reference has it.
  EXPECT_EQ(header(request("GET", "/swagger/doc.json", {{"Origin", "https://a.example"}}),
                   "Access-Control-Allow-Origin"),
            "(none)");
}

TEST_F(AnswersTest, UnreadAnswersHoldFewReadersAndNotThoseOfShortQuestions) {
  add_units(2000);
  std::vector<net::Response> held;
  std::size_t streams = 0;
  std::size_t refused = 0;
  const auto ask = [&](const std::string& user, const std::string& path) {
    net::Response& response = held.emplace_back();
    server_->handle(request_for("GET", path, {{"X-Grafana-User", user}}), response);
    streams += response.next_chunk ? 1U : 0U;
    refused += response.status == 503 && header(response, "Retry-After") == "1" ? 1U : 0U;
  };
  for (int i = 0; i < 12; ++i) {
    ask("root", "/api/v1/units/admin");
  }
  EXPECT_EQ(streams, 6U);
  EXPECT_EQ(refused, 6U);
  for (int i = 0; i < 12; ++i) {
    ask("ada", "/api/v1/units");
    ask("bob", "/api/v1/units");
  }
  EXPECT_EQ(streams, 10U);
  EXPECT_EQ(refused, 26U);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/api/v1/whoami", "root").status, 200);
  EXPECT_EQ(get("/api/v1/units?limit=1", "ada").status, 200);
  held.clear();
  const auto again = get("/api/v1/units/admin", "root");
  EXPECT_EQ(again.status, 200);
  EXPECT_THAT(again.body, EndsWith("]}\n"));
}

TEST_F(AnswersTest, PeopleWhomNoClusterKnowsAreToldSo) {
  for (const std::string path : {"units", "usage/current", "usage/global", "projects", "whoami"}) {
    const auto answer = get("/api/v1/" + path, "Ada");
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_THAT(answer.body, HasSubstr(R"("warnings":["No cluster knows the user 'Ada'.)")) << path;
    EXPECT_TRUE(answer.body.ends_with("\"]}\n")) << answer.body;
    for (const std::string known : {"ada", "root", "fluids:svc"}) {
      EXPECT_THAT(body(path, known), Not(HasSubstr("warnings"))) << path;
    }
  }
  // Once a unit of this name ends, the warning ends as well.
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + 1000};
  update.units = {job("11", "Ada", "fluids")};
  ASSERT_TRUE(db_->writer().write(update));
  EXPECT_THAT(body("units", "Ada"), Not(HasSubstr("warnings")));
}

// ceems_lb asks for these before every chart, so nothing that waits for a TSDB may delay them.
TEST_F(AnswersTest, WhatNeedsNoTsdbDoesNotWait) {
  const auto waits = [this](const std::string& path) {
    return server_->waits(request_for("GET", "/api/v1/" + path));
  };
  for (const std::string path :
       {"whoami", "units", "units/admin", "units/verify", "units/list", "units/summary",
        "users/admin", "projects", "usage/current", "usage/global", "usage/series",
        "usage/series?step=day", "clusters/admin", "stats/global/admin", "site"}) {
    EXPECT_FALSE(waits(path)) << path;
  }
  for (const std::string path :
       {"grid", "grid/forecast", "nodes/map/admin", "gpus", "gpus/admin", "units/profile",
        "units/regions", "units/series", "units/report", "units/compare/admin", "nodes/admin",
        "nodes/series/admin", "units/on-node/admin", "insight/idle", "insight/bill/admin",
        "insight/neighbours", "insight/stragglers", "insight/nodes/admin",
        "usage/series?step=hour"}) {
    EXPECT_TRUE(waits(path)) << path;
  }
  EXPECT_FALSE(server_->waits(request_for("GET", "/health")));
  EXPECT_FALSE(server_->waits(request_for("GET", "/metrics")));
}

}  // namespace
}  // namespace ceems::api
