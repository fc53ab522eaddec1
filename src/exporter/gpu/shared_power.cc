#include "exporter/gpu/shared_power.h"

#include <algorithm>

#include <fmt/format.h>

#include "exporter/energy/meter/socket_rails.h"

namespace ceems::exporter::gpu {
namespace {

using energy::UnitWatts;

/// An A100 or H100 draws an eighth of its full power idle, and some 40 W more as soon as its clocks
/// are up. These are where the filter begins.
constexpr UnitWatts::Assumptions gpu(bool sampled) {
  return {.full_load_idle = 0.125,
          .wake_watts = 40,
          .spread = 0.4,
          .window = sampled ? UnitWatts::kSteady : UnitWatts::kWindow};
}
constexpr double kAwake = 4;  // clocks stay up between kernels that run a quarter of the time

std::string name_of(const energy::DeviceHolder& holder) {
  return fmt::format("{}\n{}\n{}", holder.manager, holder.cgrouphostname, holder.uuid);
}

using energy::DeviceHolder;
using energy::DeviceSample;

constexpr double kMaxModuleWatts = 10'000;

bool counts_module(const DeviceState& device) {
  return device.vendor == Vendor::kNvidia && device.name.contains("GH200");
}

/// The holder that is this unit, added to the list if it is missing.
DeviceHolder& holder_entry(std::vector<DeviceHolder>& list,
                           std::string_view manager,
                           const Unit& unit) {
  const auto found = std::ranges::find_if(list, [&](const DeviceHolder& known) {
    return known.uuid == unit.uuid && known.manager == manager &&
           known.cgrouphostname == unit.cgrouphostname;
  });
  return found != list.end() ? *found
                             : list.emplace_back(DeviceHolder{.manager = std::string(manager),
                                                              .cgrouphostname = unit.cgrouphostname,
                                                              .uuid = unit.uuid});
}

}  // namespace

DeviceWatts::DeviceWatts(bool sampled) : watts_(gpu(sampled)) {}

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

SharedPower::Card& SharedPower::card_of(const std::string& uuid,
                                        std::map<std::string, Card>& cards) {
  const std::size_t next = cards.size();
  const auto [card, fresh] = cards.try_emplace(uuid);
  if (fresh) {
    card->second.place = next;
  }
  return card->second;
}

void SharedPower::take_module(Card& card, DeviceSample& sample) const {
  const auto gpu = host_.rails->gpu_joules(card.place);
  const auto grace = host_.rails->grace_joules(card.place);
  if (sample.seconds <= 0 && card.total_of_grace) {
    return;
  }
  const double grace_more = grace.value_or(0) - card.total_of_grace.value_or(grace.value_or(0));
  const double more = gpu.value_or(0) - card.total.value_or(gpu.value_or(0));
  card.total_of_grace = grace;
  if (sample.seconds <= 0 || grace_more <= 0) {
    card.total = gpu;
    return;
  }
  sample.source.method = energy::Method::kDerived;
  if (!gpu) {
    const double rest = sample.joules - grace_more - card.debt;
    sample.joules = std::max(0.0, rest);
    card.debt = std::max(0.0, -rest);
    return;
  }
  const bool possible = more <= kMaxModuleWatts * sample.seconds;
  sample.joules = possible ? std::max(0.0, more) : 0;
  card.total = possible ? card.total.value_or(*gpu) + sample.joules : *gpu;
}

void SharedPower::add_cpu_jobs(Card& card,
                               std::optional<double> utilisation,
                               std::span<const energy::ManagerUnits> managers,
                               DeviceSample& sample) const {
  const double gpu_scale =
      sample.total_use > 0 ? sample.utilisation.value_or(1) / sample.total_use * (1 - kCpuPart) : 0;
  for (DeviceHolder& holder : sample.holders) {
    holder.alloc *= 1 - kCpuPart;
    holder.use *= gpu_scale;
  }
  sample.total_use *= gpu_scale;
  double used = 0;
  std::map<std::string, double> seconds_of;
  for (const energy::ManagerUnits& manager : managers) {
    if (manager.snapshot == nullptr) {
      continue;
    }
    for (const Unit& unit : manager.snapshot->units) {
      const std::string key =
          std::string(manager.manager) + '/' + unit.cgrouphostname + '/' + unit.uuid;
      const double total = unit.stats.cpu_seconds();
      seconds_of[key] = total;
      const auto before = card.cpu_seconds.find(key);
      const auto part = host_.apu->part_of(unit.stats.cpu_set.get(), card.place, apus_.size());
      if (unit.ended || part.of_unit <= 0 || part.cpus <= 0) {
        continue;
      }
      const double cores = sample.seconds > 0 && before != card.cpu_seconds.end()
                               ? std::max(0.0, total - before->second) / sample.seconds
                               : 0;
      const double reserved = std::min(1.0, unit.stats.reserved_cpus * part.of_unit / part.cpus);
      const double busy = std::min(1.0, cores * part.of_unit / part.cpus);
      DeviceHolder& holder = holder_entry(sample.holders, manager.manager, unit);
      holder.alloc += reserved * kCpuPart;
      holder.use += busy * kCpuPart;
      used += busy;
    }
  }
  if (sample.seconds > 0 || card.cpu_seconds.empty()) {
    card.cpu_seconds = std::move(seconds_of);
  }
  sample.total_use += std::max(used, utilisation.value_or(used)) * kCpuPart;
}

void SharedPower::correct(const DeviceState& device,
                          std::optional<double> utilisation,
                          std::span<const energy::ManagerUnits> managers,
                          Clock::SteadyTime now,
                          DeviceSample& sample) {
  if (host_.rails != nullptr && counts_module(device)) {
    take_module(card_of(device.uuid, modules_), sample);
  } else if (host_.apu != nullptr && energy::is_apu(device.name)) {
    host_.apu->note_gpus(now);
    add_cpu_jobs(card_of(device.uuid, apus_), utilisation, managers, sample);
  }
}

}  // namespace ceems::exporter::gpu
