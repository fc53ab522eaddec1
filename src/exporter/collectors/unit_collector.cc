#include "exporter/collectors/unit_collector.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "exporter/scrape.h"
#include "exporter/source/outcome.h"

namespace ceems::exporter {
namespace {

// A walk of the cgroups that a sampler made within this time is shared.
constexpr auto kUnitsSharedAge = std::chrono::milliseconds(100);

Result<> collect(SubCollector& sub, const UnitSnapshot& snapshot, metrics::Sink& sink) {
  try {
    return sub.collect(snapshot, sink);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInternal, "exception: {}", error.what());
  }
}

class UnitCollector final : public Collector {
 public:
  UnitCollector(UnitCollectorParts parts, const Clock& clock)
      : parts_(std::move(parts)), clock_(clock), outcomes_(parts_.subs.size()) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(snapshot, parts_.source->snapshot(kUnitsSharedAge));
    parts_.metrics.add(*snapshot, sink);
    if (parts_.extra) {
      parts_.extra(*snapshot, sink);
    }
    for (std::size_t i = 0; i < parts_.subs.size(); ++i) {
      run(i, *snapshot, sink);
    }
    parts_.source->mark_exported(*snapshot);
    return {};
  }

  [[nodiscard]] Sources sources() const override { return {.units = {parts_.source}}; }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    std::vector<os::Capability> all = parts_.capabilities;
    for (const auto& sub : parts_.subs) {
      const auto needed = sub->capabilities();
      all.insert(all.end(), needed.begin(), needed.end());
    }
    return all;
  }

  [[nodiscard]] std::vector<SourceAge> source_ages() const override {
    std::vector<SourceAge> all;
    for (const auto& sub : parts_.subs) {
      std::ranges::move(sub->source_ages(), std::back_inserter(all));
    }
    return all;
  }

  [[nodiscard]] std::optional<std::size_t> hints() const override {
    std::optional<std::size_t> all;
    for (const auto& sub : parts_.subs) {
      if (const auto some = sub->hints()) {
        all = all.value_or(0) + *some;
      }
    }
    return all;
  }

  void start() override {
    for (const auto& sub : parts_.subs) {
      sub->start();
    }
  }

  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    for (const auto& sub : parts_.subs) {
      sub->wait_first(deadline);
    }
  }

 private:
  void run(std::size_t i, const UnitSnapshot& snapshot, metrics::Sink& sink) {
    SubCollector& sub = *parts_.subs[i];
    const auto before = clock_.steady_now();
    const auto result = exporter::collect(sub, snapshot, sink);
    if (!sub.name().empty()) {
      add_scrape_duration(sink, parts_.name, sub.name(), clock_.steady_now() - before);
    }
    Outcome& outcome = outcomes_[i];
    switch (outcome.note(result)) {
      case Outcome::News::kNone:
        break;
      case Outcome::News::kFails:
        log::error(
            "sub-collector failed",
            {{"collector", parts_.name}, {"subcollector", sub.name()}, {"err", outcome.message()}});
        break;
      case Outcome::News::kOtherwise:
        log::debug(
            "sub-collector has no data or still fails",
            {{"collector", parts_.name}, {"subcollector", sub.name()}, {"err", outcome.message()}});
        break;
      case Outcome::News::kSucceeds:
        log::info("sub-collector succeeds again",
                  {{"collector", parts_.name}, {"subcollector", sub.name()}});
        break;
    }
  }

  UnitCollectorParts parts_;
  const Clock& clock_;
  std::vector<Outcome> outcomes_;
};

}  // namespace

std::unique_ptr<Collector> make_unit_collector(UnitCollectorParts parts, const Clock& clock) {
  return std::make_unique<UnitCollector>(std::move(parts), clock);
}

}  // namespace ceems::exporter
