#include "metrics/web_certificate.h"

namespace ceems::metrics {

std::function<void(std::int64_t)> web_certificate_gauge(Registry& registry) {
  Gauge& gauge = registry
                     .gauges("ceems_web_certificate_not_after_timestamp_seconds",
                             "When the first of the certificates that this server presents ends, "
                             "in seconds since the epoch.",
                             {})
                     .hide_zeros()
                     .with({});
  return [&gauge](std::int64_t end) { gauge.set(static_cast<double>(end)); };
}

}  // namespace ceems::metrics
