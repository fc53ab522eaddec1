#include "fleet/io_storms.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace ceems::fleet {
namespace {

constexpr double kHalfOfRequests = 0.5;
constexpr double kLeastRate = 10;  // requests a second: less holds no one up
constexpr double kLeastStalled = 0.02;
constexpr double kTimesOwn = 2;

struct StormKind {
  std::string_view name;
  WindowValues FileSystemUse::* of_unit;
  WindowValues FileSystem::* of_all;
};
constexpr std::array<StormKind, 2> kStormKinds{
    {{"requests", &FileSystemUse::requests, &FileSystem::requests},
     {"metadata", &FileSystemUse::metadata, &FileSystem::metadata}}};

double value_in(const WindowValues& values, std::size_t i) {
  return i < values.size() ? values[i].value_or(0) : 0;
}

/// What all units asked for in each window.
std::vector<double> totals_of(const FileSystem& system, const StormKind& kind) {
  std::size_t windows = (system.*kind.of_all).size();
  for (const FileSystemUse& unit : system.units) {
    windows = std::max(windows, (unit.*kind.of_unit).size());
  }
  std::vector<double> totals(windows);
  for (std::size_t i = 0; i < windows; ++i) {
    double sum = 0;
    for (const FileSystemUse& unit : system.units) {
      sum += value_in(unit.*kind.of_unit, i);
    }
    totals[i] = std::max(sum, value_in(system.*kind.of_all, i));
  }
  return totals;
}

/// Whether the unit waits longer in the windows of the storm than in the others.
bool waits_longer(const WindowValues& stalled,
                  std::size_t first,
                  std::size_t end,
                  std::size_t all) {
  std::vector<double> inside;
  std::vector<double> outside;
  for (std::size_t i = 0; i < all; ++i) {
    (i >= first && i < end ? inside : outside).push_back(value_in(stalled, i));
  }
  const double now = median_of(inside);
  return !outside.empty() && now >= kLeastStalled && now > kTimesOwn * median_of(outside);
}

/// The longest time, its first and end, in which the unit has most of the requests.
std::pair<std::size_t, std::size_t> longest_of(const WindowValues& own,
                                               const std::vector<double>& totals) {
  std::pair<std::size_t, std::size_t> longest;
  std::size_t first = 0;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const double rate = value_in(own, i);
    if (rate < kLeastRate || rate <= kHalfOfRequests * totals[i]) {
      first = i + 1;
    } else if (i + 1 - first > longest.second - longest.first) {
      longest = {first, i + 1};
    }
  }
  return longest;
}

}  // namespace

std::vector<std::string> loaded_file_systems(std::span<const FileSystem> systems) {
  std::vector<std::string> names;
  for (const FileSystem& system : systems) {
    if (std::ranges::any_of(kStormKinds, [&system](const StormKind& kind) {
          const std::vector<double> totals = totals_of(system, kind);
          return std::ranges::any_of(system.units, [&](const FileSystemUse& unit) {
            const auto [first, end] = longest_of(unit.*kind.of_unit, totals);
            return end - first >= kLeastStorm;
          });
        })) {
      names.push_back(system.name);
    }
  }
  return names;
}

std::vector<IoStorm> find_io_storms(std::span<const FileSystem> systems, const Waits& waits) {
  std::vector<IoStorm> storms;
  for (const FileSystem& system : systems) {
    const auto users = waits.users.find(system.name);
    const bool shared = users != waits.users.end();
    for (const StormKind& kind : kStormKinds) {
      const std::vector<double> totals = totals_of(system, kind);
      for (const FileSystemUse& unit : system.units) {
        const WindowValues& own = unit.*kind.of_unit;
        const auto [first, end] = longest_of(own, totals);
        if (end - first < kLeastStorm) {
          continue;
        }
        IoStorm storm{.file_system = system.name,
                      .uuid = unit.uuid,
                      .kind = kind.name,
                      .first = first,
                      .windows = end - first,
                      .victims = {},
                      .shared = shared};
        for (const auto& [uuid, stalled] : waits.stalled) {
          if (uuid != unit.uuid && (!shared || users->second.contains(uuid)) &&
              waits_longer(stalled, first, end, totals.size())) {
            storm.victims.push_back(uuid);
          }
        }
        if (storm.victims.size() < kLeastVictims) {
          continue;
        }
        std::vector<double> shares;
        std::vector<double> rates;
        for (std::size_t i = first; i < end; ++i) {
          rates.push_back(value_in(own, i));
          shares.push_back(rates.back() / totals[i]);
        }
        storm.share = median_of(shares);
        storm.rate = median_of(rates);
        storms.push_back(std::move(storm));
      }
    }
  }
  std::ranges::stable_sort(storms, std::ranges::greater(), [](const IoStorm& storm) {
    return std::tuple(storm.victims.size(), storm.share);
  });
  return storms;
}

}  // namespace ceems::fleet
