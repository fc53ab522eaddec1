#include "bench/fleet/shared_nodes.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace ceems::bench::fleet {
namespace {

using ceems::fleet::FileSystem;
using ceems::fleet::FileSystemUse;
using ceems::fleet::WindowValues;

constexpr std::size_t kNodeMinutes = 120;
constexpr double kMissingShare = 0.01;

double between(double low, double high, std::mt19937_64& random) {
  return std::uniform_real_distribution<>(low, high)(random);
}

std::size_t minutes(std::size_t low, std::size_t high, std::mt19937_64& random) {
  return std::uniform_int_distribution<std::size_t>(low, high)(random);
}

/// Whether a unit is active in each minute, in turns.
std::vector<bool> turns(std::size_t on_low,
                        std::size_t on_high,
                        double duty,
                        std::mt19937_64& random) {
  std::vector<bool> active;
  bool on = between(0, 1, random) < duty;
  while (active.size() < kNodeMinutes) {
    const auto turn = static_cast<double>(minutes(on_low, on_high, random));
    const double length = on ? turn : turn * (1 - duty) / duty;
    active.insert(active.end(), std::max<std::size_t>(1, static_cast<std::size_t>(length)), on);
    on = !on;
  }
  active.resize(kNodeMinutes);
  return active;
}

/// The cycles per instruction of a program by itself.
std::vector<double> cycles(std::mt19937_64& random) {
  const double base = between(0.5, 2, random);
  const bool phases = between(0, 1, random) < 0.5;
  std::normal_distribution<> noise(0, 0.03);
  std::normal_distribution<> step(0, 0.005);
  std::vector<double> values;
  double phase = 1;
  double drift = 0;
  std::size_t left = 0;
  while (values.size() < kNodeMinutes) {
    if (left == 0) {
      phase = phases ? between(0.7, 1.3, random) : 1;
      left = minutes(10, 60, random);
    }
    --left;
    drift = 0.98 * drift + step(random);
    values.push_back(base * phase * (1 + drift + noise(random)));
  }
  return values;
}

WindowValues with_gaps(const std::vector<double>& values, std::mt19937_64& random) {
  WindowValues out;
  for (const double value : values) {
    out.push_back(between(0, 1, random) < kMissingShare ? std::nullopt : std::optional(value));
  }
  return out;
}

}  // namespace

SharedNode simulate_node(double coupling, std::mt19937_64& random) {
  SharedNode node;
  const std::size_t units = minutes(2, 6, random);
  std::vector<std::vector<double>> cpi(units);
  std::vector<bool> active_suspect;
  for (std::size_t i = 0; i < units; ++i) {
    cpi[i] = cycles(random);
    const auto active = turns(3, 15, i == 1 ? 0.33 : between(0.2, 0.8, random), random);
    // The first computes all the time, as do half of the others that no one suspects.
    const bool steady = i == 0 || (i > 1 && between(0, 1, random) < 0.5);
    const double rate = between(1e8, 2e9, random);
    std::vector<double> cpus;
    std::vector<double> bytes;
    std::vector<double> requests;
    for (std::size_t k = 0; k < kNodeMinutes; ++k) {
      const double does = steady || active[k] ? 1 : 0.1;
      cpus.push_back(8 * does * between(0.9, 1, random));
      bytes.push_back(rate * does * between(0.7, 1.3, random));
      requests.push_back(rate / 1e6 * does * between(0.7, 1.3, random));
    }
    if (i == 1) {
      active_suspect = active;
    }
    node.units.push_back({.uuid = fmt::format("{}", 100 + i),
                          .cpus = with_gaps(cpus, random),
                          .bytes = with_gaps(bytes, random),
                          .requests = with_gaps(requests, random)});
  }
  for (std::size_t k = 0; k < kNodeMinutes; ++k) {
    cpi[0][k] *= active_suspect[k] ? 1 + coupling : 1;
  }
  for (std::size_t i = 0; i < units; ++i) {
    node.units[i].cpi = with_gaps(cpi[i], random);
  }
  node.victim = "100";
  node.suspect = "101";
  return node;
}

Storm simulate_storm(bool storm, std::mt19937_64& random) {
  constexpr std::size_t kUnits = 60;
  Storm out;
  const std::size_t lasts = minutes(15, 60, random);
  const std::size_t first = minutes(5, kNodeMinutes - lasts - 5, random);
  const std::size_t culprit = minutes(0, kUnits - 1, random);
  const std::size_t reader = (culprit + minutes(1, kUnits - 1, random)) % kUnits;
  for (const std::string name : {"home", "scratch"}) {
    FileSystem system{.name = name};
    for (std::size_t i = 0; i < kUnits; ++i) {
      FileSystemUse use{.uuid = fmt::format("{}", 100 + i)};
      const bool faulty = storm && i == culprit && name == "scratch";
      const double size = between(0, 1, random);  // most ask for little
      for (std::size_t k = 0; k < kNodeMinutes; ++k) {
        const bool now = faulty && k >= first && k < first + lasts;
        const double busy = between(0, 1, random) < 0.3 ? 1 : 0.1;
        use.metadata.emplace_back(now ? between(2e4, 4e4, random)
                                      : 100 * size * size * busy * between(0.5, 1.5, random));
        use.requests.emplace_back((i == reader ? 2e4 : 500 * size * busy) *
                                  between(0.8, 1.2, random));
        use.bytes.emplace_back(use.requests.back().value_or(0) * 1e5);
      }
      system.units.push_back(std::move(use));
    }
    out.systems.push_back(std::move(system));
  }
  constexpr std::size_t kOthers = 3;
  for (std::size_t i = 0; i < kUnits + kOthers; ++i) {
    const std::string uuid = fmt::format("{}", 100 + i);
    if (i < kUnits) {
      out.waits.users["home"].insert(uuid);
      out.waits.users["scratch"].insert(uuid);
    }
    WindowValues& waits = out.waits.stalled[uuid];
    const double own = between(0, 0.1, random);
    const bool hit = storm && i != culprit && (i % 2 == 0 || i >= kUnits);
    for (std::size_t k = 0; k < kNodeMinutes; ++k) {
      const double more = hit && k >= first && k < first + lasts ? between(3, 8, random) : 1;
      const double value = own * more * between(0.5, 1.5, random);
      waits.push_back(value < 0.02 ? std::nullopt : std::optional(value));
    }
  }
  out.at_fault = storm ? fmt::format("{}", 100 + culprit) : "";
  return out;
}

}  // namespace ceems::bench::fleet
