#include "admission/review_metrics.h"

#include <array>

#include "metrics/web_certificate.h"

namespace ceems::admission {
namespace {

constexpr std::array kBounds{1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1.0};

}  // namespace

std::string_view to_string(ReviewOutcome outcome) {
  switch (outcome) {
    case ReviewOutcome::kPatched:
      return "patched";
    case ReviewOutcome::kUnchanged:
      return "unchanged";
    case ReviewOutcome::kUnmarked:
      return "unmarked";
    case ReviewOutcome::kSkipped:
      return "skipped";
    case ReviewOutcome::kRefused:
      return "refused";
    case ReviewOutcome::kInvalid:
      return "invalid";
    case ReviewOutcome::kError:
      return "error";
  }
  return "unknown";
}

ReviewMetrics::ReviewMetrics()
    : reviews_(registry_.counters("ceems_k8s_admission_controller_reviews_total",
                                  "Reviews by webhook and by what became of them.",
                                  {"hook", "outcome"})),
      dropped_(
          registry_
              .counters("ceems_k8s_admission_controller_dropped_requests_total",
                        "Requests that the server gave up because of too much load, by reason.",
                        {"reason"})
              .hide_zeros()),
      durations_(registry_.histograms("ceems_k8s_admission_controller_review_duration_seconds",
                                      "Time from the complete request to the answer, in seconds.",
                                      {"hook"},
                                      kBounds)) {
  for (const std::string_view hook : {"mutate", "validate"}) {
    durations_.with({hook});
    for (int i = 0; i <= static_cast<int>(ReviewOutcome::kError); ++i) {
      reviews_.with({hook, to_string(static_cast<ReviewOutcome>(i))});
    }
  }
}

void ReviewMetrics::count(std::string_view hook, ReviewOutcome outcome, double seconds) {
  reviews_.with({hook, to_string(outcome)}).add();
  durations_.with({hook}).observe(seconds);
}

std::function<void(std::int64_t)> ReviewMetrics::on_certificate() {
  // The name that this program had before all servers had one.
  metrics::Gauge& gauge =
      registry_
          .gauges("ceems_k8s_admission_controller_certificate_end_timestamp_seconds",
                  "When the certificate of the server ends, in epoch seconds.", {})
          .hide_zeros()
          .with({});
  return [&gauge, set = metrics::web_certificate_gauge(registry_)](std::int64_t end) {
    gauge.set(static_cast<double>(end));
    set(end);
  };
}

std::string ReviewMetrics::page() {
  std::string out;
  registry_.append_page(out);
  return out;
}

}  // namespace ceems::admission
