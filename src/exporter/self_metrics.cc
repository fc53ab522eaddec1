#include "exporter/self_metrics.h"

#include "metrics/build_info.h"

namespace ceems::exporter {
namespace {

using metrics::Desc;
using metrics::Type;

const Desc kBuildInfo = metrics::build_info("ceems_exporter");
const Desc kRequests{"promhttp_metric_handler_requests_total",
                     "Scrapes that were answered, by HTTP status.",
                     Type::kCounter,
                     {"code"}};
const Desc kInFlight{"promhttp_metric_handler_requests_in_flight",
                     "Scrapes being served now, this one included.",
                     Type::kGauge,
                     {}};
const Desc kErrors{"promhttp_metric_handler_errors_total",
                   "Series or pages lost to an internal error, by cause.",
                   Type::kCounter,
                   {"cause"}};
constexpr std::array<std::string_view, 3> kCodes{"200", "500", "503"};

}  // namespace

SelfMetrics::SelfMetrics(bool full) : full_(full), process_("the exporter") {}

void SelfMetrics::request_finished(int status) {
  in_flight_.fetch_sub(1);
  finished_.at(status == 200 ? 0 : status == 503 ? 2 : 1).fetch_add(1);
}

void SelfMetrics::add(metrics::Sink& sink) {
  metrics::add_build_info(sink, kBuildInfo);
  if (!full_) {
    return;
  }
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    sink.add(kRequests, static_cast<double>(finished_.at(i).load()), {kCodes.at(i)});
  }
  sink.add(kInFlight, static_cast<double>(in_flight_.load()));
  sink.add(kErrors, static_cast<double>(gathering_errors_.load()), {"gathering"});
  sink.add(kErrors, 0, {"encoding"});
  process_.add(sink);
}

}  // namespace ceems::exporter
