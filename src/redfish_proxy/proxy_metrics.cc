#include "redfish_proxy/proxy_metrics.h"

#include <algorithm>
#include <array>

#include "metrics/web_certificate.h"

namespace ceems::redfish_proxy {
namespace {

using metrics::Desc;
using metrics::Type;

const Desc kTargets{"redfish_proxy_targets", "Targets of the configuration.", Type::kGauge, {}};
const Desc kInFlight{"redfish_proxy_requests_in_flight",
                     "Requests that wait for a BMC or for the end of its answer.",
                     Type::kGauge,
                     {}};

Outcome outcome_of(const net::RelayEnd& end) {
  constexpr int kGatewayTimeout = 504;
  if (end.upstream != nullptr) {
    return end.error.empty() ? Outcome::kAnswered : Outcome::kBroken;
  }
  if (end.status == 0) {
    return Outcome::kClientGone;
  }
  return end.status == kGatewayTimeout ? Outcome::kTimeout : Outcome::kUnreachable;
}

/// BMCs take seconds.
constexpr std::array kBounds{0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0};

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAnswered:
      return "answered";
    case Outcome::kPathRefused:
      return "path_refused";
    case Outcome::kMethodRefused:
      return "method_refused";
    case Outcome::kNoTarget:
      return "no_target";
    case Outcome::kBadHeader:
      return "bad_header";
    case Outcome::kTargetRefused:
      return "target_refused";
    case Outcome::kTooMany:
      return "too_many";
    case Outcome::kTooFast:
      return "too_fast";
    case Outcome::kBusy:
      return "bmc_busy";
    case Outcome::kUnreachable:
      return "unreachable";
    case Outcome::kTimeout:
      return "timeout";
    case Outcome::kBroken:
      return "broken";
    case Outcome::kClientGone:
      return "client_gone";
  }
  return "unknown";
}

ProxyMetrics::ProxyMetrics()
    : requests_(registry_.counters(
          "redfish_proxy_requests_total", "Requests by what became of them.", {"outcome"})),
      answers_(registry_
                   .counters("redfish_proxy_answers_total",
                             "Answers of BMCs that were passed on, by class of their HTTP status.",
                             {"status"})
                   .hide_zeros()),
      dropped_(
          registry_
              .counters("redfish_proxy_dropped_requests_total",
                        "Requests that the server gave up because of too much load, by reason.",
                        {"reason"})
              .hide_zeros()),
      durations_(registry_.histograms(
          "redfish_proxy_request_duration_seconds",
          "Time from the request to the end of the answer of requests that were sent to a BMC, in "
          "seconds.",
          {},
          kBounds)) {
  for (int i = 0; i <= static_cast<int>(Outcome::kClientGone); ++i) {
    requests_.with({to_string(static_cast<Outcome>(i))});
  }
}

void ProxyMetrics::count_end(const net::RelayEnd& end, double seconds) {
  constexpr std::array<std::string_view, 6> kClasses{"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"};
  constexpr int kPerClass = 100;
  count(outcome_of(end));
  if (end.upstream != nullptr) {
    answers_.with({kClasses.at(static_cast<std::size_t>(std::clamp(end.status / kPerClass, 0, 5)))})
        .add();
  }
  durations_.with({}).observe(seconds);
}

std::function<void(std::int64_t)> ProxyMetrics::on_certificate() {
  return metrics::web_certificate_gauge(registry_);
}

std::string ProxyMetrics::page(std::size_t targets, std::size_t in_flight) {
  std::string out;
  registry_.append_page(out, [&](metrics::Sink& sink) {
    sink.add(kTargets, static_cast<double>(targets), {});
    sink.add(kInFlight, static_cast<double>(in_flight), {});
  });
  return out;
}

}  // namespace ceems::redfish_proxy
