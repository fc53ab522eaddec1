#include "exporter/doctor/meter_check.h"

#include <cstddef>
#include <utility>

#include "base/clock.h"
#include "exporter/energy/meter/reading_gate.h"

namespace ceems::exporter {
namespace {

using energy::Doubt;
using energy::SourceInfo;

/// As many steps as show that two dies have one counter.
constexpr int kRounds = energy::ReadingGate::kEqualSteps;

/// A power of the whole node.
bool is_wall_power(const SourceInfo& source) {
  return source.domain == energy::Domain::kNode && source.rank != energy::kPsysRank &&
         source.method != energy::Method::kModelled;
}

/// The readings of one meter so far.
struct Watched {
  bool shown = false;    // has had a value
  bool counter = false;  // and it was that of a counter
  bool moved = false;
};

}  // namespace

void keep_busy(std::chrono::milliseconds period) {
  const auto end = std::chrono::steady_clock::now() + period;
  volatile double value = 1;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1000; ++i) {
      value = value * 1.0000001 + 1e-9;
    }
  }
}

std::vector<MeterCheck> check_meters(const energy::Meters& meters,
                                     const host::Paths& paths,
                                     std::chrono::milliseconds watch) {
  energy::ReadingGate gate(meters, energy::node_limits(meters, paths));
  std::vector<Watched> watched(meters.size());
  std::vector<std::optional<energy::Reading>> readings(meters.size());
  const auto read = [&](std::size_t place, Clock::SteadyTime now) {
    auto reading = meters[place]->read({.now = now, .utilisation = {}, .gate = &gate.gate(place)});
    Watched& meter = watched[place];
    readings[place] = reading ? std::optional(*std::move(reading)) : std::nullopt;
    if (const auto& got = readings[place]) {
      meter.shown = true;
      meter.counter = meter.counter || !got->watts;
      meter.moved = meter.moved || got->joules > 0;
    }
  };
  const int rounds = watch.count() > 0 ? kRounds : 0;
  for (int round = 0; round <= rounds; ++round) {
    if (round > 0) {
      keep_busy(watch / kRounds);
    }
    const auto now = real_clock().steady_now();
    for (std::size_t i = 0; i < meters.size(); ++i) {
      if (!is_wall_power(meters[i]->source())) {
        read(i, now);
      }
    }
    gate.judge({.time = now, .sockets = {}, .readings = readings});
  }
  const auto now = real_clock().steady_now();
  std::vector<MeterCheck> checks(meters.size());
  for (std::size_t i = 0; i < meters.size(); ++i) {
    const SourceInfo& source = meters[i]->source();
    if (source.method == energy::Method::kModelled) {
      continue;
    }
    if (is_wall_power(source)) {
      read(i, now);
    }
    const auto rejected = meters[i]->rejected();
    auto doubt = gate.source(i).doubt();
    if (!doubt && rejected && rejected->steps > 0) {
      doubt = Doubt::kTooHigh;
    } else if (!doubt && !watched[i].shown) {
      doubt = Doubt::kUnreadable;
    }
    checks[i] = {.doubt = doubt, .unmoved = rounds > 0 && watched[i].counter && !watched[i].moved};
  }
  return checks;
}

}  // namespace ceems::exporter
