#include "api/answer/request_metrics.h"

#include <algorithm>

#include "base/log.h"

namespace ceems::api {
namespace {

using metrics::Histogram;

constexpr std::array<std::string_view, 4> kStatusClassNames{"2xx", "3xx", "4xx", "5xx"};
constexpr std::array<std::string_view, kQueryCount> kQueryNames{
    "units",    "usage", "current_usage", "users",    "projects",
    "clusters", "stats", "verify",        "identity", "ping"};

double in_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

metrics::Counter& cache_lookups(metrics::Registry& registry, std::string_view result) {
  return registry
      .counters("ceems_api_server_usage_cache_lookups_total",
                "Requests for usage/current, by whether the answer was cached (hit) or not (miss).",
                {"result"})
      .with({result});
}

}  // namespace

RequestMetrics::RequestMetrics(metrics::Registry& registry,
                               const std::vector<std::string>& routes,
                               const Clock& clock)
    : clock_(clock),
      in_flight_(registry.gauge("ceems_api_server_http_requests_in_flight",
                                "Requests being answered now, this one included.")),
      limited_(registry.counter("ceems_api_server_http_requests_limited_total",
                                "Requests refused with 429.")),
      cache_hits_(cache_lookups(registry, "hit")),
      cache_misses_(cache_lookups(registry, "miss")) {
  auto& requests = registry.counters("ceems_api_server_http_requests_total",
                                     "Requests that were answered, by class of HTTP status.",
                                     {"route", "status"});
  auto& request_seconds = registry.histograms(
      "ceems_api_server_http_request_duration_seconds",
      "Time from the routing of a request to the last piece of its answer, in seconds.", {"route"},
      Histogram::latencies());
  for (const std::string& name : routes) {
    Route& route = routes_.emplace_back();
    for (std::size_t i = 0; i < route.answers.size(); ++i) {
      route.answers.at(i) = &requests.with({name, kStatusClassNames.at(i)});
    }
    route.seconds = &request_seconds.with({name});
  }

  auto& rows = registry.counters("ceems_api_server_db_rows_total",
                                 "Rows read from the database for answers.", {"query"});
  auto& failures = registry.counters("ceems_api_server_db_query_failures_total",
                                     "Database queries that failed.", {"query"});
  auto& query_seconds =
      registry.histograms("ceems_api_server_db_query_duration_seconds",
                          "Time that the database took for a query and all its rows, in seconds.",
                          {"query"}, Histogram::latencies());
  for (std::size_t i = 0; i < kQueryCount; ++i) {
    QueryKind& kind = queries_.at(i);
    kind.rows = &rows.with({kQueryNames.at(i)});
    kind.failures = &failures.with({kQueryNames.at(i)});
    kind.seconds = &query_seconds.with({kQueryNames.at(i)});
  }
}

RequestTimer::RequestTimer(RequestMetrics& metrics, std::size_t route)
    : metrics_(metrics), route_(route), start_(metrics.clock_.steady_now()) {
  metrics_.in_flight_.add(1);
}

RequestTimer::~RequestTimer() {
  constexpr int kPerClass = 100;
  const int status_class = std::clamp(status_ / kPerClass, 2, 5);
  const RequestMetrics::Route& route = metrics_.routes_.at(route_);
  route.answers.at(static_cast<std::size_t>(status_class - 2))->add();
  route.seconds->observe(in_seconds(metrics_.clock_.steady_now() - start_));
  metrics_.in_flight_.add(-1);
}

QueryTimer::~QueryTimer() {
  if (metrics_ == nullptr) {
    return;
  }
  const auto index = static_cast<std::size_t>(query_);
  RequestMetrics::QueryKind& kind = metrics_->queries_.at(index);
  kind.rows->add(rows_);
  kind.failures->add(failed_ ? 1 : 0);
  kind.seconds->observe(in_seconds(spent_));
  const bool was_failing = kind.failing.exchange(failed_);
  if (failed_ && !was_failing) {
    log::error("database queries fail", {{"query", kQueryNames.at(index)}, {"err", error_}});
  } else if (!failed_ && was_failing) {
    log::info("database queries succeed again", {{"query", kQueryNames.at(index)}});
  }
}

}  // namespace ceems::api
