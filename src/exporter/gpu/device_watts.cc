#include "exporter/gpu/device_watts.h"

#include <algorithm>

#include <fmt/format.h>

namespace ceems::exporter::gpu {
namespace {

using energy::UnitWatts;

/// An A100 or H100 draws an eighth of its full power idle, and some 40 W more as soon as its clocks
/// are up. These are where the filter begins.
constexpr UnitWatts::Assumptions kGpu{.full_load_idle = 0.125, .wake_watts = 40, .spread = 0.4};
constexpr double kAwake = 4;  // clocks stay up between kernels that run a quarter of the time

std::string name_of(const energy::DeviceHolder& holder) {
  return fmt::format("{}\n{}\n{}", holder.manager, holder.cgrouphostname, holder.uuid);
}

}  // namespace

DeviceWatts::DeviceWatts() : watts_(kGpu) {}

void DeviceWatts::weigh(energy::DeviceSample& sample) {
  if (sample.seconds <= 0 || sample.total_use <= 0) {
    return;
  }
  uses_.clear();
  std::vector<std::size_t> places;  // of each holder in uses_: a unit may hold several instances
  std::map<std::string, std::uint64_t> keys;
  std::map<std::string, std::size_t> seen;
  for (const energy::DeviceHolder& holder : sample.holders) {
    const std::string name = name_of(holder);
    const auto [place, first] = seen.try_emplace(name, uses_.size());
    if (first) {
      const auto known = keys_.find(name);
      const std::uint64_t key = known != keys_.end() ? known->second : ++last_key_;
      keys.emplace(name, key);
      uses_.push_back({.key = key});
    }
    places.push_back(place->second);
    uses_[place->second].cores += std::max(0.0, holder.use);
  }
  keys_ = std::move(keys);
  const double use = sample.total_use;
  watts_.observe({.joules = sample.joules,
                  .seconds = sample.seconds,
                  .cores_max = std::max(1.0, use),
                  .cores = use,
                  .awake = std::min(1.0, kAwake * use)},
                 uses_);
  const auto watts = watts_.watts();
  if (watts.size() != uses_.size() || watts_.total_watts() <= 0) {
    return;
  }
  for (std::size_t i = 0; i < sample.holders.size(); ++i) {
    energy::DeviceHolder& holder = sample.holders[i];
    const double all = uses_[places[i]].cores;
    holder.use = all > 0 ? watts[places[i]] * std::max(0.0, holder.use) / all : 0;
  }
  sample.total_use = watts_.total_watts();
}

}  // namespace ceems::exporter::gpu
