#include "lb/request_metrics.h"

#include <algorithm>

#include "metrics/web_certificate.h"

namespace ceems::lb {
namespace {

using metrics::Desc;
using metrics::Type;

const Desc kUp{"ceems_lb_backend_up",
               "Whether requests are sent to the backend (1) or not (0).",
               Type::kGauge,
               {"backend", "backend_type", "cluster_id"}};
const Desc kInFlight{"ceems_lb_backend_requests_in_flight",
                     "Requests that wait for the backend or for the end of its answer.",
                     Type::kGauge,
                     {"backend", "backend_type", "cluster_id"}};

constexpr std::array<std::string_view, 6> kStatusClassNames{"0xx", "1xx", "2xx",
                                                            "3xx", "4xx", "5xx"};

/// Decisions take microseconds, or as long as the database.
constexpr std::array kDecisionBounds{5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0};

}  // namespace

TypeMetrics::TypeMetrics(metrics::Registry& registry, gate::BackendType type)
    : type_(gate::type_name(type)),
      decisions_(
          registry
              .counters("ceems_lb_decisions_total",
                        "Requests that were let through (allowed, admin) or refused, by reason.",
                        {"backend_type", "reason"})
              .hide_zeros()),
      allowed_(decisions_.with({type_, "allowed"})),
      admin_(decisions_.with({type_, "admin"})),
      bytes_(registry
                 .counters("ceems_lb_answer_bytes_total",
                           "Bytes of the bodies of answers.",
                           {"backend_type"})
                 .with({type_})),
      broken_(registry
                  .counters("ceems_lb_answers_broken_total",
                            "Answers that broke off because the backend or the client went away.",
                            {"backend_type"})
                  .with({type_})),
      dropped_(
          registry
              .counters("ceems_lb_dropped_requests_total",
                        "Requests that the server gave up because of too much load, by reason.",
                        {"backend_type", "reason"})
              .hide_zeros()),
      decision_seconds_(
          registry
              .histograms("ceems_lb_decision_duration_seconds",
                          "Time from receiving the whole request to the decision, in seconds.",
                          {"backend_type"},
                          kDecisionBounds)
              .with({type_})),
      answer_seconds_(
          registry
              .histograms("ceems_lb_answer_duration_seconds",
                          "Time from the decision to the last byte of the answer, in seconds.",
                          {"backend_type"},
                          metrics::Histogram::latencies())
              .with({type_})) {
  auto& answers = registry.counters(
      "ceems_lb_answers_total",
      "Requests that were passed on, by class of the answer's HTTP status; 0xx: the client left "
      "before there was an answer.",
      {"backend_type", "status"});
  for (std::size_t i = 0; i < kStatusClasses; ++i) {
    answers_.at(i) = &answers.with({type_, kStatusClassNames.at(i)});
  }
}

void TypeMetrics::count_dropped(net::Dropped what) {
  dropped_.with({type_, net::to_string(what)}).add();
}

void TypeMetrics::count_answer(const net::RelayEnd& end, double seconds) {
  constexpr int kPerClass = 100;
  const int status_class =
      std::clamp(end.status / kPerClass, 0, static_cast<int>(kStatusClasses) - 1);
  answers_.at(static_cast<std::size_t>(status_class))->add();
  bytes_.add(end.body_bytes);
  if (!end.error.empty() && end.upstream != nullptr) {
    broken_.add();
  }
  answer_seconds_.observe(seconds);
}

std::function<void(std::int64_t)> RequestMetrics::on_certificate() {
  return metrics::web_certificate_gauge(registry_);
}

std::string RequestMetrics::page(gate::BackendType type, const Backends& backends) {
  std::string out;
  registry_.append_page(out, [&](metrics::Sink& sink) {
    const std::string_view type_name = gate::type_name(type);
    for (const auto& [cluster, pool] : backends.pools()) {
      for (const Backend& backend : pool.backends()) {
        const std::string address = backend.upstream->address();
        sink.add(kUp, backend.upstream->alive() ? 1 : 0, {address, type_name, cluster});
        sink.add(kInFlight, backend.upstream->in_flight(), {address, type_name, cluster});
      }
    }
  });
  return out;
}

}  // namespace ceems::lb
