#include "exporter/scrape.h"

#include <exception>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"

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
const metrics::Desc kHints{"ceems_exporter_unit_gpu_hints",
                           "GPU assignments that rest only on what the unit's user controls.",
                           metrics::Type::kGauge,
                           {"collector"}};

metrics::Desc duration_desc(std::vector<std::string> labels) {
  return {"ceems_scrape_collector_duration_seconds",
          "Wall-clock time that the collector or a part of it took in this scrape, in seconds.",
          metrics::Type::kGauge, std::move(labels)};
}
const metrics::Desc kDuration = duration_desc({"collector"});
const metrics::Desc kPartDuration = duration_desc({"collector", "subcollector"});

/// Catches everything a collector throws, because one collector must not break the page of the
/// others.
Result<> collect(Collector& collector, metrics::Sink& sink) {
  try {
    return collector.collect(sink);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInternal, "exception: {}", error.what());
  } catch (...) {
    return fail(ErrorCode::kInternal, "exception of an unknown kind");
  }
}

void log_news(const std::string& name, Outcome& outcome, const Result<>& result) {
  switch (outcome.note(result)) {
    case Outcome::News::kNone:
      break;
    case Outcome::News::kFails:
      log::error("collector failed", {{"collector", name}, {"err", outcome.message()}});
      break;
    case Outcome::News::kOtherwise:
      log::debug("collector has no data or still fails",
                 {{"collector", name}, {"err", outcome.message()}});
      break;
    case Outcome::News::kSucceeds:
      log::info("collector succeeds again", {{"collector", name}});
      break;
  }
}

}  // namespace

void add_scrape_duration(metrics::Sink& sink,
                         std::string_view collector,
                         std::string_view subcollector,
                         std::chrono::nanoseconds duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (subcollector.empty()) {
    sink.add(kDuration, seconds, {collector});
  } else {
    sink.add(kPartDuration, seconds, {collector, subcollector});
  }
}

Scraper::Scraper(std::vector<NamedCollector> collectors, const Clock& clock)
    : collectors_(std::move(collectors)), outcomes_(collectors_.size()), clock_(clock) {
  for (const NamedCollector& collector : collectors_) {
    statuses_.push_back({collector.name, false, {}, {}});
  }
}

void Scraper::start(std::chrono::steady_clock::time_point deadline) {
  const auto samples_others = [](const NamedCollector& named) {
    return named.stage == Stage::kEnergy;
  };
  for (const bool last : {false, true}) {
    for (const NamedCollector& named : collectors_) {
      if (samples_others(named) == last) {
        named.collector->start();
      }
    }
    for (const NamedCollector& named : collectors_) {
      if (samples_others(named) == last) {
        named.collector->wait_first(deadline);
      }
    }
  }
}

void Scraper::run(metrics::Sink& sink, Clock::SteadyTime deadline) {
  auto before = clock_.steady_now();
  for (std::size_t i = 0; i < collectors_.size(); ++i) {
    const NamedCollector& named = collectors_[i];
    Result<> result =
        fail(ErrorCode::kTimeout, "left out because earlier collectors took too long");
    if (before < deadline) {
      result = collect(*named.collector, sink);
    }
    const auto after = clock_.steady_now();
    add_scrape_duration(sink, named.name, {}, after - before);
    sink.add(kSuccess, result ? 1 : 0, {named.name});
    log_news(named.name, outcomes_[i], result);
    {
      const MutexLock lock(mutex_);
      CollectorStatus& status = statuses_[i];
      status.duration = after - before;
      status.message = outcomes_[i].message();
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

void Scraper::add_hints(metrics::Sink& sink) const {
  for (const NamedCollector& named : collectors_) {
    if (const auto hints = named.collector->hints()) {
      sink.add(kHints, static_cast<double>(*hints), {named.name});
    }
  }
}

std::vector<CollectorStatus> Scraper::statuses() const {
  const MutexLock lock(mutex_);
  return statuses_;
}

/// Ends the turn of the thread that set busy_ and wakes the next one, even after an exception.
class MetricsPage::Turn {
 public:
  explicit Turn(MetricsPage& page) : page_(page) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    {
      const MutexLock lock(page_.mutex_);
      page_.busy_ = false;
    }
    page_.idle_.notify_one();
  }

 private:
  MetricsPage& page_;
};

Result<> MetricsPage::get(metrics::Exposition exposition,
                          Clock::SteadyTime deadline,
                          std::string& out) {
  const auto begin = clock_.steady_now();
  {
    MutexLock lock(mutex_);
    if (!idle_.wait_for(lock, deadline - begin,
                        [this]() CEEMS_REQUIRES(mutex_) { return !busy_; })) {
      return fail(ErrorCode::kTimeout, "a scrape under way did not end in time");
    }
    busy_ = true;
  }
  const Turn turn(*this);
  if (!made_ || *made_ < begin) {
    made_ = clock_.steady_now();
    sink_.clear();
    scraper_.run(sink_, deadline);
    if (self_.full()) {
      scraper_.add_ages(sink_);
      scraper_.add_hints(sink_);
    }
    self_.count_gathering_errors(sink_.dropped());
    self_.add(sink_);
  }
  sink_.render(exposition, out);
  return {};
}

}  // namespace ceems::exporter
