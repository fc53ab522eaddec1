#include "tsdb/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::tsdb {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kEmptyVector =
    R"({"status":"success","data":{"resultType":"vector","result":[]}})";

struct Fixture {
  explicit Fixture(FakeTransport::Answer answer) {
    auto owned = std::make_unique<FakeTransport>(std::move(answer));
    transport = owned.get();
    client = std::make_unique<Client>("http://tsdb:9090/", std::move(owned), clock);
  }
  testing::FakeClock clock;
  FakeTransport* transport = nullptr;
  std::unique_ptr<Client> client;
};

TEST(TsdbClient, SendsAnInstantQueryAsAForm) {
  Fixture f([](const auto&) { return FakeTransport::ok(kEmptyVector); });
  const auto answer = f.client->query({.query = "up{a=\"b&c\"}",
                                       .time_ms = 1767225600500,
                                       .lookback = seconds(15),
                                       .timeout = seconds(120)});
  ASSERT_TRUE(answer) << answer.error().message;
  const auto request = f.transport->requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "http://tsdb:9090/api/v1/query");
  EXPECT_EQ(request.first("query"), "up{a=\"b&c\"}");
  EXPECT_EQ(request.first("time"), "1767225600.5");
  EXPECT_EQ(request.first("lookback_delta"), "15s");
  EXPECT_EQ(request.first("timeout"), "120s");
}

TEST(TsdbClient, RetriesWithGetIfPostIsNotAllowed) {
  for (const int status : {405, 501}) {
    Fixture f([status](const FakeTransport::Request& request) {
      return request.method == "POST" ? FakeTransport::status(status, "no")
                                      : FakeTransport::ok(kEmptyVector);
    });
    ASSERT_TRUE(f.client->query({.query = "up", .time_ms = 1000}));
    ASSERT_EQ(f.transport->requests().size(), 2U);
    EXPECT_EQ(f.transport->requests()[1].method, "GET");
    EXPECT_EQ(f.transport->requests()[1].first("query"), "up");
  }
}

TEST(TsdbClient, DistinguishesPermanentFromTemporaryErrors) {
  struct Case {
    int status;
    ErrorCode code;
    const char* body;
    const char* message;
  };
  const Case cases[] = {
      {400, ErrorCode::kInvalidArgument,
       R"({"status":"error","errorType":"bad_data","error":"parse error"})",
       "TSDB: bad_data: parse error (HTTP status 400)"},
      {422, ErrorCode::kInvalidArgument,
       R"({"status":"error","errorType":"execution","error":"too many samples"})",
       "TSDB: execution: too many samples (HTTP status 422)"},
      {503, ErrorCode::kUnavailable, R"({"status":"error","errorType":"timeout","error":"slow"})",
       "TSDB: timeout: slow (HTTP status 503)"},
      {502, ErrorCode::kUnavailable, "<html>bad gateway</html>",
       "TSDB: HTTP status 502: '<html>bad gateway</html>'"},
      {401, ErrorCode::kPermissionDenied, "Unauthorized\n",
       "TSDB: HTTP status 401: 'Unauthorized'"},
      {404, ErrorCode::kNotFound, "404 page not found\n",
       "TSDB: HTTP status 404: '404 page not found'"},
      {200, ErrorCode::kParse, "<html>login</html>",
       "TSDB response is not complete JSON: '<html>login</html>'"},
  };
  for (const auto& c : cases) {
    Fixture f([&c](const auto&) { return FakeTransport::status(c.status, c.body); });
    const auto answer = f.client->query({.query = "up", .time_ms = 0});
    ASSERT_FALSE(answer) << c.status;
    EXPECT_EQ(answer.error().code, c.code) << c.status;
    EXPECT_EQ(answer.error().message, c.message);
  }
}

TEST(TsdbClient, RejectsAMatrixWhereAVectorIsExpected) {
  Fixture f([](const auto&) {
    return FakeTransport::ok(
        R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]]}]}})");
  });
  const auto answer = f.client->query({.query = "up[5m]", .time_ms = 0});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "TSDB response: expected a vector, got a matrix");
  EXPECT_TRUE(f.client->query_samples({.query = "up[5m]", .time_ms = 0}));
  EXPECT_TRUE(f.client->query_range("up", 0, 1000, seconds(1)));
}

TEST(TsdbClient, ReportsATimeout) {
  Fixture f([](const auto&) { return fail(ErrorCode::kTimeout, "no answer in 30 s"); });
  const auto answer = f.client->query({.query = "up", .time_ms = 0});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(answer.error().message, "TSDB: no answer in 30 s");
}

TEST(TsdbClient, DeletesOnlyWithAMatcher) {
  Fixture f([](const auto&) { return FakeTransport::status(204, ""); });
  EXPECT_FALSE(f.client->delete_series({}, 0, 1000));
  EXPECT_TRUE(f.transport->requests().empty());
  EXPECT_TRUE(f.client->delete_series({R"({uuid=~"1|2"})", "up"}, 1000, 2000));
  const auto request = f.transport->requests().at(0);
  EXPECT_EQ(request.path, "http://tsdb:9090/api/v1/admin/tsdb/delete_series");
  EXPECT_EQ(request.form,
            (std::vector<std::pair<std::string, std::string>>{
                {"match[]", R"({uuid=~"1|2"})"}, {"match[]", "up"}, {"start", "1"}, {"end", "2"}}));
}

TEST(TsdbClient, ReadsSettingsEverySixHours) {
  Fixture f([](const FakeTransport::Request& request) {
    if (request.path.ends_with("/config")) {
      return FakeTransport::ok(
          R"({"status":"success","data":{"yaml":"global:\n  scrape_interval: 15s\n  scrape_timeout: 10s\n  evaluation_interval: 1m30s\nscrape_configs:\n- job_name: x\n  scrape_interval: 5s\n"}})");
    }
    if (request.path.ends_with("/flags")) {
      return FakeTransport::ok(
          R"({"status":"success","data":{"query.max-samples":"1000","query.timeout":"30s","query.lookback-delta":"1m"}})");
    }
    return FakeTransport::ok(R"({"status":"success","data":{"storageRetention":"512MiB or 15d"}})");
  });
  for (int i = 0; i < 3; ++i) {
    const auto settings = f.client->settings();
    EXPECT_EQ(settings.scrape_interval, seconds(15));
    EXPECT_EQ(settings.evaluation_interval, seconds(90));
    EXPECT_EQ(settings.rate_interval(), seconds(60));
    EXPECT_EQ(settings.query_timeout, seconds(30));
    EXPECT_EQ(settings.lookback_delta, seconds(60));
    EXPECT_EQ(settings.max_samples, 1000U);
    EXPECT_EQ(settings.retention, std::chrono::hours(15 * 24));
  }
  EXPECT_EQ(f.transport->requests().size(), 3U);
  f.clock.advance(std::chrono::hours(6));
  EXPECT_EQ(f.client->settings().scrape_interval, seconds(15));
  EXPECT_EQ(f.transport->requests().size(), 6U);
}

TEST(TsdbClient, KeepsDefaultsWithoutStatusEndpointsAndDoesNotAskAgain) {
  for (const char* body :
       {"404 page not found", R"({"status":"success","data":{"yaml":""}})", "{}"}) {
    Fixture f(
        [body](const auto&) { return FakeTransport::status(body[0] == '4' ? 404 : 200, body); });
    EXPECT_EQ(f.client->settings().scrape_interval, std::chrono::minutes(1));
    EXPECT_EQ(f.client->settings().max_samples, 50'000'000U);
    EXPECT_EQ(f.transport->requests().size(), 3U);
  }
}

TEST(TsdbClient, RetriesSettingsEveryHalfMinuteWhileTheTsdbIsDown) {
  bool down = true;
  Fixture f([&down](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
    if (down) {
      return fail(ErrorCode::kUnavailable, "connection refused");
    }
    return FakeTransport::ok(
        request.path.ends_with("/config")
            ? R"({"status":"success","data":{"yaml":"global:\n  scrape_interval: 30s\n"}})"
            : R"({"status":"success","data":{}})");
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(f.client->settings().scrape_interval, std::chrono::minutes(1));
  }
  EXPECT_EQ(f.transport->requests().size(), 1U);
  down = false;
  EXPECT_EQ(f.client->settings().scrape_interval, std::chrono::minutes(1));
  f.clock.advance(seconds(30));
  EXPECT_EQ(f.client->settings().scrape_interval, seconds(30));
}

TEST(TsdbSettings, IgnoresInvalidValues) {
  Settings settings;
  apply_flag("query.max-samples", "0", settings);
  apply_flag("query.max-samples", "many", settings);
  apply_flag("query.timeout", "0s", settings);
  apply_config("global:\n  scrape_interval: 0s\n  evaluation_interval: soon\n", settings);
  EXPECT_EQ(settings.max_samples, 50'000'000U);
  EXPECT_EQ(settings.query_timeout, std::chrono::minutes(2));
  EXPECT_EQ(settings.scrape_interval, std::chrono::minutes(1));
  EXPECT_EQ(settings.evaluation_interval, std::chrono::minutes(1));
}

TEST(TsdbSettings, ReadsDurationsAsPrometheusWritesThem) {
  EXPECT_EQ(parse_duration("1d12h"), std::chrono::hours(36));
  EXPECT_EQ(parse_duration("1m30s500ms"), milliseconds(90500));
  EXPECT_EQ(parse_duration("0"), milliseconds(0));
  for (const char* bad :
       {"", "5", "s", "5x", "1s1m", "1s1s", "-1s", "1.5s", "99999999999999999y"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(TsdbText, EscapesForRegexAndForQuotes) {
  EXPECT_EQ(exact_regex({"12", "a.b", "x|y*", "p-q"}), "12|a[.]b|x[|]y[*]|p-q");
  EXPECT_EQ(quote_text("a\\.b\"c\nd"), "a\\\\.b\\\"c\\nd");
  EXPECT_EQ(seconds_text(1500), "1.5");
  EXPECT_EQ(seconds_text(2000), "2");
  EXPECT_EQ(seconds_text(-1), "-0.001");
  EXPECT_EQ(seconds_text(0), "0");
  EXPECT_EQ(duration_text(milliseconds(1500)), "1500ms");
  EXPECT_EQ(duration_text(milliseconds(90000)), "90s");
}

TEST(TsdbClient, ReadsLabelValuesAndTargetsWithGet) {
  Fixture f([](const FakeTransport::Request& request) {
    if (request.path == "http://tsdb:9090/api/v1/label/job/values") {
      return FakeTransport::ok(R"({"status":"success","data":["b","a"]})");
    }
    return FakeTransport::ok(R"({"status":"success","data":{"activeTargets":[
      {"discoveredLabels":{"__scrape_interval__":"15s","job":"cpu"},"labels":{"instance":"n1:9010"},
       "scrapeUrl":"http://n1:9010/metrics","health":"down","lastError":"refused",
       "lastScrapeDuration":0.5}],"droppedTargets":[{"discoveredLabels":{}}]}})");
  });
  const auto jobs = f.client->label_values("job", {"up{a=\"b&c\"}"}, 1000, 2500);
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(*jobs, (std::vector<std::string>{"a", "b"}));
  const auto request = f.transport->requests().at(0);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.first("match[]"), "up{a=\"b&c\"}");
  EXPECT_EQ(request.first("start"), "1");
  EXPECT_EQ(request.first("end"), "2.5");

  const auto targets = f.client->targets();
  ASSERT_TRUE(targets) << targets.error().message;
  ASSERT_EQ(targets->size(), 1U);
  EXPECT_EQ(targets->front().discovered.get("__scrape_interval__"), "15s");
  EXPECT_EQ(targets->front().labels.get("instance"), "n1:9010");
  EXPECT_EQ(targets->front().url, "http://n1:9010/metrics");
  EXPECT_EQ(targets->front().health, "down");
  EXPECT_EQ(targets->front().last_error, "refused");
}

TEST(TsdbClient, RefusesTargetsOfAnotherForm) {
  for (const char* body :
       {R"({"status":"success","data":[]})", R"({"status":"success","data":{"activeTargets":{}}})",
        R"({"status":"success","data":{"activeTargets":[{"health":1}]}})"}) {
    Fixture f([body](const auto&) { return FakeTransport::ok(body); });
    const auto targets = f.client->targets();
    ASSERT_FALSE(targets) << body;
    EXPECT_EQ(targets.error().code, ErrorCode::kParse);
  }
}

}  // namespace
}  // namespace ceems::tsdb
