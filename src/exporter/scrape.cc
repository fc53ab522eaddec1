#include "exporter/scrape.h"

#include <exception>
#include <utility>

#include "base/log.h"
#include "exporter/scrape_duration.h"

namespace ceems::exporter {
namespace {

const metrics::Desc kSuccess{"ceems_scrape_collector_success",
                             "Whether the collector succeeded in this scrape.",
                             metrics::Type::kGauge,
                             {"collector"}};
const metrics::Desc kAge{"ceems_exporter_source_age_seconds",
                         "Age of the value that a collector serves from a slow source, in seconds.",
                         metrics::Type::kGauge,
                         {"collector", "source"}};

/// The last stop of whatever a collector throws: one must not spoil the page of the others.
Result<> collect(Collector& collector, metrics::Sink& sink) {
  try {
    return collector.collect(sink);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInternal, "exception: {}", error.what());
  } catch (...) {
    return fail(ErrorCode::kInternal, "exception of an unknown kind");
  }
}

void log_change(const CollectorStatus& status, ErrorCode code) {
  if (status.success) {
    log::info("collector succeeds again", {{"collector", status.name}});
  } else if (code == ErrorCode::kNoData) {
    log::debug("collector has no data", {{"collector", status.name}, {"err", status.message}});
  } else {
    log::error("collector failed", {{"collector", status.name}, {"err", status.message}});
  }
}

}  // namespace

Scraper::Scraper(std::vector<NamedCollector> collectors, const Clock& clock)
    : collectors_(std::move(collectors)), clock_(clock) {
  for (const NamedCollector& collector : collectors_) {
    statuses_.push_back({collector.name, false, {}, {}});
  }
}

void Scraper::start() {
  for (const NamedCollector& named : collectors_) {
    named.collector->start();
  }
}

void Scraper::run(metrics::Sink& sink, Clock::SteadyTime deadline) {
  auto before = clock_.steady_now();
  for (std::size_t i = 0; i < collectors_.size(); ++i) {
    const NamedCollector& named = collectors_[i];
    Result<> result = fail(ErrorCode::kTimeout, "left out: collectors before it took too long");
    if (before < deadline) {
      result = collect(*named.collector, sink);
    }
    const auto after = clock_.steady_now();
    add_scrape_duration(sink, named.name, {}, after - before);
    sink.add(kSuccess, result ? 1 : 0, {named.name});
    {
      const std::scoped_lock lock(mutex_);
      CollectorStatus& status = statuses_[i];
      status.duration = after - before;
      const std::string_view message = result ? std::string_view() : result.error().message;
      if (status.message != message) {
        status.message = message;
        status.success = result.has_value();
        log_change(status, result ? ErrorCode::kInternal : result.error().code);
      }
      status.success = result.has_value();
    }
    before = after;
  }
}

void Scraper::add_ages(metrics::Sink& sink) const {
  for (const NamedCollector& named : collectors_) {
    for (const SourceAge& source : named.collector->source_ages()) {
      sink.add(kAge, std::chrono::duration<double>(source.age).count(),
               {named.name, source.source});
    }
  }
}

std::vector<CollectorStatus> Scraper::statuses() const {
  const std::scoped_lock lock(mutex_);
  return statuses_;
}

}  // namespace ceems::exporter
