#include "exporter/page.h"

namespace ceems::exporter {

Result<> MetricsPage::get(metrics::Exposition exposition,
                          Clock::SteadyTime deadline,
                          std::string& out) {
  const auto asked = clock_.steady_now();
  const std::unique_lock lock(mutex_, deadline - asked);
  if (!lock) {
    return fail(ErrorCode::kTimeout, "a scrape under way did not end in time");
  }
  if (!any_ || made_ < asked) {
    made_ = clock_.steady_now();
    any_ = true;
    sink_.clear();
    scraper_.run(sink_, deadline);
    self_.count_gathering_errors(sink_.dropped());
    self_.add(sink_);
  }
  sink_.render(exposition, out);
  return {};
}

}  // namespace ceems::exporter
