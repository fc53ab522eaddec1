#include "exporter/self_metrics.h"

#include "metrics/web_certificate.h"

namespace ceems::exporter {
namespace {

metrics::Counter& requests(metrics::Registry& registry, std::string_view code) {
  return registry
      .counters("promhttp_metric_handler_requests_total",
                "Scrapes that were answered, by HTTP status.", {"code"})
      .with({code});
}

metrics::Counter& errors(metrics::Registry& registry, std::string_view cause) {
  return registry
      .counters("promhttp_metric_handler_errors_total",
                "Series or pages lost to an internal error, by cause.", {"cause"})
      .with({cause});
}

}  // namespace

SelfMetrics::SelfMetrics(bool full)
    : full_(full),
      registry_("ceems_exporter", "the exporter"),
      succeeded_(requests(registry_, "200")),
      failed_(requests(registry_, "500")),
      unavailable_(requests(registry_, "503")),
      gathering_errors_(errors(registry_, "gathering")),
      in_flight_(registry_.gauge("promhttp_metric_handler_requests_in_flight",
                                 "Scrapes being served now, this one included.")) {
  errors(registry_, "encoding");  // The reference has it; writing the page cannot fail here.
}

void SelfMetrics::request_finished(int status) {
  in_flight_.add(-1);
  (status == 200 ? succeeded_ : status == 503 ? unavailable_ : failed_).add();
}

std::function<void(std::int64_t)> SelfMetrics::on_certificate() {
  return metrics::web_certificate_gauge(registry_);
}

void SelfMetrics::add(metrics::Sink& sink) {
  if (full_) {
    registry_.add_to(sink);
  } else {
    registry_.add_build_info(sink);
  }
}

}  // namespace ceems::exporter
