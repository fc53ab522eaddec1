#include "api/figures.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "metrics/build_info.h"

namespace ceems::api {
namespace {

using metrics::Desc;
using metrics::Type;

const Desc kBuildInfo = metrics::build_info("ceems_api_server");
const Desc kRequests{"ceems_api_server_http_requests_total",
                     "Requests that were answered, by class of HTTP status.",
                     Type::kCounter,
                     {"route", "status"}};
const Desc kInFlight{"ceems_api_server_http_requests_in_flight",
                     "Requests being answered now, this one included.",
                     Type::kGauge,
                     {}};
const Desc kLimited{"ceems_api_server_http_requests_limited_total",
                    "Requests refused with 429.",
                    Type::kCounter,
                    {}};
const Desc kCache{"ceems_api_server_usage_cache_lookups_total",
                  "Requests for usage/current, by whether the answer was at hand (hit) or not.",
                  Type::kCounter,
                  {"result"}};
const Desc kRows{"ceems_api_server_db_rows_total",
                 "Rows read from the data base for answers.",
                 Type::kCounter,
                 {"query"}};
const Desc kFailures{"ceems_api_server_db_query_failures_total",
                     "Queries of the data base that failed.",
                     Type::kCounter,
                     {"query"}};
constexpr std::string_view kRequestSeconds = "ceems_api_server_http_request_duration_seconds";
constexpr std::string_view kQuerySeconds = "ceems_api_server_db_query_duration_seconds";

constexpr std::array<std::string_view, 5> kClassNames{"1xx", "2xx", "3xx", "4xx", "5xx"};
constexpr std::array<std::string_view, kQueryCount> kQueryNames{
    "units",    "usage", "current_usage", "users",    "projects",
    "clusters", "stats", "verify",        "identity", "ping"};

double in_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Figures::Request::Request(Figures& figures, std::size_t route)
    : figures_(figures), route_(route), start_(figures.clock_.steady_now()) {
  figures_.in_flight_.fetch_add(1);
}

Figures::Request::~Request() {
  constexpr int kPerClass = 100;
  const int status_class = std::clamp(status_ / kPerClass, 1, static_cast<int>(kClasses));
  OfRoute& route = figures_.of_route_.at(route_);
  route.answers.at(static_cast<std::size_t>(status_class - 1)).fetch_add(1);
  route.seconds.observe(in_seconds(figures_.clock_.steady_now() - start_));
  figures_.in_flight_.fetch_sub(1);
}

QueryMeter::~QueryMeter() {
  if (figures_ == nullptr) {
    return;
  }
  const auto index = static_cast<std::size_t>(query_);
  auto& query = figures_->of_query_.at(index);
  query.rows.fetch_add(rows_);
  query.failures.fetch_add(failed_ ? 1U : 0U);
  query.seconds.observe(in_seconds(spent_));
  const bool was_failing = query.failing.exchange(failed_);
  if (failed_ && !was_failing) {
    log::error("queries of the data base fail",
               {{"query", kQueryNames.at(index)}, {"err", error_}});
  } else if (!failed_ && was_failing) {
    log::info("queries of the data base succeed again", {{"query", kQueryNames.at(index)}});
  }
}

Figures::Figures(std::vector<std::string> routes, const Clock& clock, Others others)
    : routes_(std::move(routes)),
      clock_(clock),
      others_(std::move(others)),
      of_route_(routes_.size()),
      process_("the API server") {}

void Figures::add_counters(metrics::Sink& sink) const {
  metrics::add_build_info(sink, kBuildInfo);
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    for (std::size_t status = 1; status < kClasses; ++status) {
      sink.add(kRequests, static_cast<double>(of_route_[i].answers.at(status).load()),
               {routes_[i], kClassNames.at(status)});
    }
  }
  sink.add(kInFlight, static_cast<double>(in_flight_.load()));
  sink.add(kLimited, static_cast<double>(limited_.load()));
  sink.add(kCache, static_cast<double>(cache_hits_.load()), {"hit"});
  sink.add(kCache, static_cast<double>(cache_misses_.load()), {"miss"});
  for (std::size_t i = 0; i < kQueryCount; ++i) {
    sink.add(kRows, static_cast<double>(of_query_.at(i).rows.load()), {kQueryNames.at(i)});
    sink.add(kFailures, static_cast<double>(of_query_.at(i).failures.load()), {kQueryNames.at(i)});
  }
}

void Figures::append_histograms(std::string& out) const {
  metrics::append_histogram_header(
      out, kRequestSeconds,
      "Time from the routing of a request to the last piece of its answer, in seconds.");
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    of_route_[i].seconds.append(out, kRequestSeconds, fmt::format("route=\"{}\"", routes_[i]));
  }
  metrics::append_histogram_header(
      out, kQuerySeconds, "Time the data base took for a query and all its rows, in seconds.");
  for (std::size_t i = 0; i < kQueryCount; ++i) {
    of_query_.at(i).seconds.append(out, kQuerySeconds,
                                   fmt::format("query=\"{}\"", kQueryNames.at(i)));
  }
}

void Figures::append_page(std::string& out) {
  {
    const std::scoped_lock lock(page_mutex_);
    sink_.clear();
    add_counters(sink_);
    if (others_) {
      others_(sink_);
    }
    process_.add(sink_);
    sink_.render(metrics::Exposition::kText, out);
  }
  append_histograms(out);
}

}  // namespace ceems::api
