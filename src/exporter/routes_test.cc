#include "exporter/routes.h"

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/html.h"
#include "testing/fake_clock.h"

namespace ceems::exporter {
namespace {

const metrics::Desc kFake{"ceems_fake_total", "Fake.", metrics::Type::kCounter, {}};

/// A collector that runs a function.
class Calling final : public Collector {
 public:
  using Function = std::function<Result<>(metrics::Sink&)>;
  explicit Calling(Function function) : function_(std::move(function)) {}
  Result<> collect(metrics::Sink& sink) override { return function_(sink); }

 private:
  Function function_;
};

/// The exporter without sockets.
struct Exporter {
  testing::FakeClock clock;
  Scraper scraper;
  SelfMetrics self{true};
  MetricsPage page{scraper, self, clock};
  Routes routes;

  explicit Exporter(std::vector<std::pair<std::string, Calling::Function>> functions,
                    RouteOptions options = {},
                    const AlloyTargets* targets = nullptr)
      : scraper(collectors(std::move(functions)), clock),
        routes(std::move(options), page, self, scraper, clock, targets) {}

  static std::vector<NamedCollector> collectors(
      std::vector<std::pair<std::string, Calling::Function>> functions) {
    std::vector<NamedCollector> named;
    for (auto& [name, function] : functions) {
      named.push_back({.name = name, .collector = std::make_unique<Calling>(std::move(function))});
    }
    return named;
  }

  net::Response get(const std::string& path,
                    net::Headers headers = {},
                    std::string method = "GET") {
    net::Request request;
    request.method = std::move(method);
    request.path = path;
    request.headers = std::move(headers);
    net::Response response;
    routes.handle(request, response);
    return response;
  }
};

std::string header(const net::Response& response, std::string_view name) {
  const std::string* value = net::find_header(response.headers, name);
  return value != nullptr ? *value : "";
}

bool has(const net::Response& response, std::string_view text) {
  return response.body.find(text) != std::string::npos;
}

Result<> one(metrics::Sink& sink) {
  sink.add(kFake, 1);
  return {};
}

TEST(Routes, ServesThePageInBothForms) {
  Exporter exporter({{"fake", one}});
  auto text = exporter.get("/metrics");
  EXPECT_EQ(text.status, 200);
  EXPECT_EQ(header(text, "Content-Type"),
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
  EXPECT_TRUE(has(text, "ceems_fake_total 1\n"));
  EXPECT_TRUE(has(text, "\nceems_scrape_collector_success{collector=\"fake\"} 1\n"));
  EXPECT_TRUE(has(text, "\nceems_scrape_collector_duration_seconds{collector=\"fake\"} 0\n"));
  EXPECT_TRUE(has(text, "\npromhttp_metric_handler_requests_in_flight 1\n"));
  const auto open = exporter.get("/metrics", {{"Accept", "application/openmetrics-text"}});
  EXPECT_TRUE(has(open, "# TYPE ceems_fake counter\n"));
  EXPECT_TRUE(open.body.ends_with("# EOF\n"));
}

TEST(Routes, AnswersHealthLandingAndNothingElse) {
  Exporter exporter({});
  const auto health = exporter.get("/health");
  EXPECT_EQ(health.body, "CEEMS Exporter is healthy");
  EXPECT_EQ(header(health, "X-Content-Type-Options"), "nosniff");
  const auto landing = exporter.get("/");
  EXPECT_EQ(header(landing, "Content-Type"), "text/html; charset=UTF-8");
  EXPECT_TRUE(has(landing, "<a href=\"/metrics\">Metrics</a>"));
  EXPECT_FALSE(has(landing, "/debug/"));
  for (const char* path : {"/metrics/", "/x", "/debug/", "/alloy-targets", "/-/healthy"}) {
    EXPECT_EQ(exporter.get(path).status, 404) << path;
  }
}

TEST(Routes, RedirectsUncleanPaths) {
  Exporter exporter({});
  net::Request request;
  request.path = "/a/..//metrics";
  request.query = "x=1";
  net::Response response;
  exporter.routes.handle(request, response);
  EXPECT_EQ(response.status, 301);
  EXPECT_EQ(header(response, "Location"), "/metrics?x=1");
  EXPECT_EQ(header(exporter.get("//a\r\nSet-Cookie: b"), "Location"), "/a%0D%0ASet-Cookie%3A%20b");
}

TEST(CleanPath, RemovesDotsAndDoubledSlashes) {
  EXPECT_EQ(clean_path("/"), "/");
  EXPECT_EQ(clean_path(""), "/");
  EXPECT_EQ(clean_path("//metrics"), "/metrics");
  EXPECT_EQ(clean_path("/a/./b/../c"), "/a/c");
  EXPECT_EQ(clean_path("/../.."), "/");
  EXPECT_EQ(clean_path("/metrics/"), "/metrics/");
  EXPECT_EQ(clean_path("/a/b/.."), "/a/");
}

TEST(Routes, AcceptsTelemetryPathsWithoutSlashAndTheRoot) {
  Exporter other({{"fake", one}}, {.telemetry_path = "other"});
  EXPECT_TRUE(has(other.get("/other"), "ceems_fake_total 1\n"));
  EXPECT_TRUE(has(other.get("/"), "\"/other\""));
  EXPECT_EQ(other.get("/metrics").status, 404);
  Exporter root({{"fake", one}}, {.telemetry_path = "/"});
  EXPECT_TRUE(has(root.get("/"), "ceems_fake_total 1\n"));
  EXPECT_EQ(root.get("/metrics").status, 404);
}

TEST(Routes, KeepsThePageWhenACollectorFailsOrThrows) {
  int calls = 0;
  Exporter exporter(
      {{"failing",
        [&](metrics::Sink& sink) -> Result<> {
          sink.add(kFake, 7);
          if (++calls == 1) {
            return fail(ErrorCode::kParse, "bad file");
          }
          return {};
        }},
       {"throwing", [](metrics::Sink&) -> Result<> { throw std::runtime_error("x"); }},
       {"odd", [](metrics::Sink&) -> Result<> { throw 1; }}});
  const auto first = exporter.get("/metrics");
  EXPECT_EQ(first.status, 200);
  EXPECT_TRUE(has(first, "ceems_fake_total 7\n"));
  EXPECT_TRUE(has(first, "success{collector=\"failing\"} 0\n"));
  EXPECT_TRUE(has(first, "success{collector=\"throwing\"} 0\n"));
  EXPECT_TRUE(has(first, "success{collector=\"odd\"} 0\n"));
  exporter.clock.advance(std::chrono::seconds(1));
  EXPECT_TRUE(has(exporter.get("/metrics"), "success{collector=\"failing\"} 1\n"));
  const auto statuses = exporter.scraper.statuses();
  EXPECT_EQ(statuses[0].message, "");
  EXPECT_EQ(statuses[1].message, "exception: x");
}

TEST(Routes, AnswersInTimeWithoutLateCollectors) {
  testing::FakeClock* clock = nullptr;
  Exporter exporter({{"slow",
                      [&](metrics::Sink&) -> Result<> {
                        clock->advance(std::chrono::seconds(3));
                        return {};
                      }},
                     {"late", one}});
  clock = &exporter.clock;
  const auto page = exporter.get("/metrics", {{"X-Prometheus-Scrape-Timeout-Seconds", "3"}});
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(has(page, "success{collector=\"slow\"} 1\n"));
  EXPECT_TRUE(has(page, "duration_seconds{collector=\"slow\"} 3\n"));
  EXPECT_TRUE(has(page, "success{collector=\"late\"} 0\n"));
  EXPECT_FALSE(has(page, "ceems_fake_total"));
}

TEST(ScrapeBudget, LeavesTimeForTheWayBack) {
  const auto budget = [](const char* text) {
    const std::string header = text;
    return scrape_budget(&header).count();
  };
  EXPECT_EQ(scrape_budget(nullptr).count(), 9500);
  EXPECT_EQ(budget("10"), 9500);
  EXPECT_EQ(budget("5"), 4500);
  EXPECT_EQ(budget("1"), 900);
  EXPECT_EQ(budget("120"), 9500);
  for (const char* nonsense : {"", "0", "-1", "nan", "inf", "1e300", "ten"}) {
    EXPECT_EQ(budget(nonsense), 9500) << nonsense;
  }
}

TEST(Routes, RefusesMoreScrapesThanAllowed) {
  Exporter exporter({{"fake", one}}, {.max_requests = 1});
  exporter.self.request_started();
  const auto refused = exporter.get("/metrics");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body, "limit of 1 concurrent scrapes reached, try again later\n");
  exporter.self.request_finished(200);
  const auto page = exporter.get("/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(has(page, "requests_total{code=\"503\"} 1\n"));
  Exporter unlimited({{"fake", one}}, {.max_requests = 0});
  unlimited.self.request_started();
  EXPECT_EQ(unlimited.get("/metrics").status, 200);
}

TEST(Routes, SharesAScrapeBetweenRequestsThatOverlap) {
  std::atomic<int> calls{0};
  std::atomic<bool> inside{false};
  std::atomic<bool> go{false};
  Exporter exporter({{"slow", [&](metrics::Sink&) -> Result<> {
                        ++calls;
                        inside = true;
                        inside.notify_all();
                        go.wait(false);
                        return {};
                      }}});
  std::vector<std::jthread> clients;
  clients.emplace_back([&] { exporter.get("/metrics"); });
  inside.wait(false);
  exporter.clock.advance(std::chrono::milliseconds(1));
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] { EXPECT_EQ(exporter.get("/metrics").status, 200); });
  }
  while (exporter.self.in_flight() < 4) {
    std::this_thread::yield();
  }
  go = true;
  go.notify_all();
  clients.clear();
  // One scrape for the first request. The others arrived during it, so they must not get its page
  // but share the next one.
  EXPECT_EQ(calls.load(), 2);
}

TEST(Routes, ShowsDiagnosticsToLocalhostOnly) {
  Exporter exporter(
      {{"bad",
        [](metrics::Sink&) -> Result<> { return fail(ErrorCode::kParse, "line 1\nline 2"); }}},
      {.debug_server = true});
  exporter.get("/metrics");
  const net::Headers local{{"Host", "localhost:9010"}};
  EXPECT_EQ(exporter.get("/debug/", local).body,
            "collector success milliseconds message\nbad 0 0.000 line 1\\x0aline 2\n");
  EXPECT_EQ(exporter.get("/debug/pprof/", {{"host", "LocalHost"}}).status, 200);
  EXPECT_EQ(exporter.get("/debug/", {{"Host", "node7:9010"}}).status, 404);
  EXPECT_EQ(exporter.get("/debug/").status, 404);
  EXPECT_EQ(exporter.get("/debug/x", local).status, 404);
  EXPECT_EQ(exporter.get("/debug/", local, "POST").status, 405);
  EXPECT_TRUE(has(exporter.get("/"), "/debug/"));
}

/// A source that counts its calls or fails.
class TestUnits final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    if (broken) {
      return fail(ErrorCode::kNotFound, "no cgroups");
    }
    if (during) {
      during();
    }
    return std::make_shared<UnitSnapshot>();
  }

  std::atomic<bool> broken = false;
  std::function<void()> during;
};

TEST(Routes, ServesTargetsWhenTheyAreOn) {
  const auto units = std::make_shared<TestUnits>();
  const AlloyTargets targets({.enabled = true}, units, {});
  Exporter exporter({}, {.targets_path = "targets"}, &targets);
  const auto found = exporter.get("/targets", {}, "POST");
  EXPECT_EQ(found.status, 200);
  EXPECT_EQ(header(found, "Content-Type"), "application/json");
  EXPECT_EQ(found.body, "null\n");
  EXPECT_TRUE(has(exporter.get("/"), "<a href=\"/targets\">"));
  units->broken = true;
  const auto failed = exporter.get("/targets");
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.body, "An error has occurred while gathering targets:\n\nno cgroups\n");
}

TEST(Routes, HasNoTargetsOtherwise) {
  Exporter exporter({});
  EXPECT_EQ(exporter.get("/alloy-targets").status, 404);
  EXPECT_FALSE(has(exporter.get("/"), "alloy"));
}

TEST(Routes, RefusesMoreRequestsForTargetsThanAllowed) {
  const auto units = std::make_shared<TestUnits>();
  const AlloyTargets targets({.enabled = true}, units, {});
  Exporter exporter({}, {.max_requests = 1}, &targets);
  net::Response second;
  int nested = 0;
  units->during = [&] {
    if (++nested == 1) {
      second = exporter.get("/alloy-targets");
    }
  };
  EXPECT_EQ(exporter.get("/alloy-targets").status, 200);
  EXPECT_EQ(second.status, 503);
  EXPECT_EQ(second.body, "Limit of concurrent requests reached (1), try again later.\n");
  EXPECT_EQ(exporter.get("/alloy-targets").status, 200);
}

TEST(LandingPage, EscapesWhatItShows) {
  EXPECT_EQ(escape_html("<a href='x'>\"&\""), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;");
  EXPECT_NE(landing_page("/\"><script>", "", false).find("href=\"/&quot;&gt;&lt;script&gt;\""),
            std::string::npos);
}

constexpr const char* kText = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
constexpr const char* kOpenMetrics =
    "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores";

TEST(ChooseFormat, SelectsTextUnlessOpenMetricsIsRequested) {
  for (const char* accept :
       {"", "*/*", "text/html", "application/json;q=0.9", ";;,=,q", "text/plain",
        "application/openmetrics-text;version=2.0.0", "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.2,text/plain;q=0.3",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"}) {
    EXPECT_EQ(choose_format(accept).content_type, kText) << accept;
    EXPECT_EQ(choose_format(accept).exposition, metrics::Exposition::kText) << accept;
  }
}

TEST(ChooseFormat, SelectsOpenMetricsForPrometheus) {
  // The header of Prometheus 2.42.
  const PageFormat format = choose_format(
      "application/openmetrics-text;version=1.0.0,application/"
      "openmetrics-text;version=0.0.1;q=0.75,"
      "text/plain;version=0.0.4;q=0.5,*/*;q=0.1");
  EXPECT_EQ(format.content_type, kOpenMetrics);
  EXPECT_EQ(format.exposition, metrics::Exposition::kOpenMetrics);
}

TEST(ChooseFormat, EchoesKnownEscapings) {
  EXPECT_EQ(choose_format("text/plain; version=0.0.4; escaping=allow-utf-8").content_type,
            "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8");
  EXPECT_EQ(choose_format("application/openmetrics-text;escaping=dots").content_type,
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=dots");
  EXPECT_EQ(choose_format("text/plain;escaping=evil\r\nx").content_type, kText);
}

}  // namespace

}  // namespace ceems::exporter
