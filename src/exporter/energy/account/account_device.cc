// Devices in the account: readings that come at their own pace, cease and return.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "exporter/energy/account/account.h"

namespace ceems::exporter::energy {
namespace {

double plausible_joules(double joules) {
  return joules > 0 && std::isfinite(joules) ? joules : 0;
}

}  // namespace

double Account::device_idle_watts(std::size_t device) const {
  const auto& given = options_.idle_watts.at(index(device_sources_[device].info.domain));
  const double watts = given ? *given / static_cast<double>(device_sources_.size())
                             : devices_[device].idle.watts().value_or(0);
  return watts * idle_scale();
}

std::optional<std::size_t> Account::find_device(std::string_view name) const {
  for (std::size_t i = 0; i < device_sources_.size(); ++i) {
    if (device_sources_[i].info.name == name) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> Account::find_or_add_device(const SourceInfo& info) {
  if (const auto found = find_device(info.name)) {
    return found;
  }
  if (device_sources_.size() == kMaxDevices) {
    return std::nullopt;
  }
  CEEMS_CHECK(info.domain != Domain::kOther && info.domain != Domain::kNode);
  SourceAccount& source = device_sources_.emplace_back();
  source.info = info;
  Device& device = devices_.emplace_back();
  device.place = known_set_.add(info.domain, info.name);
  device.idle.restore(restored_.bins_of({.domain = info.domain, .device = info.name}));
  return device_sources_.size() - 1;
}

void Account::take_devices(const Sample& sample, Interval& interval) {
  corrections_.clear();
  for (const DeviceSample& reading : sample.devices) {
    if (reading.silent) {
      hold_missing(reading);
      continue;
    }
    const auto position = find_or_add_device(reading.source);
    if (!position) {
      continue;
    }
    SourceAccount& source = device_sources_[*position];
    source.fresh = reading.fresh;
    const double joules = plausible_joules(reading.joules);
    source.joules.add(joules);
    const std::size_t domain = index(source.info.domain);
    interval.device_joules.at(domain) += joules;
    interval.known_joules += joules;
    interval.known_source = interval.known_source || source.joules.value() > 0;
    known_.at(domain) = true;
    Device& device = devices_[*position];
    if (joules > 0 && reading.seconds > 0) {
      known_set_.see(device.place);
      const double watts = joules / reading.seconds;
      const auto length = std::chrono::duration<double>(reading.seconds);
      if (shown(device)) {
        corrections_.push_back(
            {.watts = watts - device.watts,
             .from =
                 reading.fresh - std::chrono::duration_cast<Clock::SteadyTime::duration>(length)});
      }
      device.watts = watts;
      device.highest_watts = std::max(device.highest_watts, device.watts);
      device.utilisation = reading.utilisation;
      device.holders = reading.holders;
      device.total_use = reading.total_use;
    }
  }
}

/// Units come and go while a device is silent. What each of them does there is not known.
void Account::hold_missing(const DeviceSample& silent) {
  const auto position = find_device(silent.source.name);
  if (!position) {
    return;
  }
  Device& device = devices_[*position];
  device.holders = silent.holders;
  device.total_use = 0;
  for (DeviceHolder& holder : device.holders) {
    holder.use = holder.alloc;
    device.total_use += holder.use;
  }
}

/// Whether the power of its last reading holds.
bool Account::shown(const Device& device) const {
  return known_set_.member(device.place) && !known_set_.missing(device.place);
}

/// Adds what devices draw between their readings.
void Account::hold_devices(Interval& interval) {
  for (const Device& device : devices_) {
    interval.even_joules += shown(device) ? device.watts * interval.seconds : 0;
  }
}

void Account::claim_device(std::span<const DeviceHolder> holders) {
  device_claims_.assign(units_.entries().size(), Claim{});
  for (const DeviceHolder& holder : holders) {
    const UnitEntry* unit = units_.find(holder.manager, holder.cgrouphostname, holder.uuid);
    if (unit == nullptr) {
      continue;
    }
    Claim& claim = device_claims_[unit->position];
    claim.alloc += std::max(0.0, holder.alloc) * unit->presence;
    claim.use += std::max(0.0, holder.use) * unit->presence;
  }
}

/// A unit was busy for as much of the device's busy time as it has of the use. Where busy time is
/// not known, nothing is called unused.
void Account::find_unused_device(std::optional<double> utilisation, double total_use) {
  unused_device_.assign(device_claims_.size(), 0);
  for (std::size_t i = 0; utilisation && i < device_claims_.size(); ++i) {
    const Claim& claim = device_claims_[i];
    const double share = total_use > 0 ? claim.use / total_use : claim.alloc;
    if (claim.alloc > 0) {
      unused_device_[i] = 1 - std::clamp(*utilisation * share / claim.alloc, 0.0, 1.0);
    }
  }
}

void Account::charge_device(Domain domain, double joules, double idle_joules, double total_use) {
  const double idle = std::min(joules, idle_joules);
  charge(domain, split_, split(idle, idle, 0, device_claims_, split_));
  note_idle(domain, unused_device_);
  charge(domain, split_, split(joules - idle, 0, total_use, device_claims_, split_));
}

void Account::split_devices(const Sample& sample) {
  for (const DeviceSample& device : sample.devices) {
    const double joules = plausible_joules(device.joules);
    const auto position = joules > 0 ? find_or_add_device(device.source) : std::nullopt;
    if (!position) {
      continue;
    }
    devices_[*position].idle.observe(
        joules, device.seconds,
        device.utilisation.value_or(std::numeric_limits<double>::quiet_NaN()));
    claim_device(device.holders);
    find_unused_device(device.utilisation, device.total_use);
    charge_device(device_sources_[*position].info.domain, joules,
                  device_idle_watts(*position) * device.seconds, device.total_use);
  }
}

/// Adds the active energy of devices to that of the known domains. Their readings come once in a
/// while, and in the intervals between them the rest of the node is not all the CPUs' doing.
void Account::note_active_devices(const Interval& interval) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const double active = (devices_[i].watts - device_idle_watts(i)) * interval.seconds;
    if (!shown(devices_[i]) || active <= 0) {
      continue;
    }
    claim_device(devices_[i].holders);
    active_system_ += split(active, 0, devices_[i].total_use, device_claims_, split_).system;
    for (std::size_t unit = 0; unit < split_.size(); ++unit) {
      active_units_[unit] += split_[unit];
    }
    active_joules_ += active;
  }
}

/// What the rest of the node draws beside `comparable_watts` of the known domains, as was learned
/// while none of them was missing.
std::optional<double> Account::expected_rest(double comparable_watts) const {
  if (known(Domain::kPackage)) {
    const auto wall = lag_.watts_at(comparable_watts);
    return wall ? std::optional(std::max(0.0, *wall - comparable_watts)) : std::nullopt;
  }
  const auto idle = learned_until_ ? wall_estimate() : std::nullopt;
  return idle ? std::optional(idle->watts + wall_watts_.losses() * comparable_watts +
                              wall_watts_.total_watts())
              : std::nullopt;
}

/// What the supply loses for devices at rest goes to those that hold them. Where no meter shows the
/// packages, so does what it loses for their work: else it goes by the known domains' active
/// energy.
Account::Losses Account::split_losses(const Interval& interval, double other, double idle_joules) {
  const bool alone = !known(Domain::kPackage);
  const double part = alone ? wall_watts_.losses() : kIdleLosses;
  Losses all;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const Device& device = devices_[i];
    if (!known_set_.member(device.place)) {
      continue;
    }
    const double idle_watts = device_idle_watts(i);
    const double watts = alone && shown(device) ? std::max(device.watts, idle_watts) : idle_watts;
    const double idle =
        std::min(part * idle_watts * interval.seconds, idle_joules - all.idle_joules);
    const double joules =
        std::min(std::max(idle, part * watts * interval.seconds), other - all.joules);
    claim_device(device.holders);
    find_unused_device(device.utilisation, device.total_use);
    charge_device(Domain::kOther, joules, idle, device.total_use);
    all.joules += joules;
    all.idle_joules += std::min(idle, joules);
  }
  return all;
}

/// While devices are missing, what the wall meter shows beyond the expected rest of the node is
/// theirs, up to the most that any ever drew: they work on where only their library hangs. It is
/// charged as part of `other`, because it was not measured, to those that hold them. Returns it.
double Account::split_missing(const Interval& interval, double other, double comparable_watts) {
  const auto expected = expected_rest(comparable_watts);
  double busy = 0;
  for (const Device& device : devices_) {
    busy = std::max(busy, device.highest_watts);
  }
  // One that no unit holds is at rest; one that was never busy may be so now, like the others.
  const auto most_watts = [this, busy](std::size_t device) {
    return devices_[device].holders.empty()
               ? std::min(devices_[device].highest_watts, device_idle_watts(device))
               : busy;
  };
  double highest = 0;
  double weights = 0;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (known_set_.missing(devices_[i].place)) {
      highest += std::max(devices_[i].highest_watts, most_watts(i));
      weights += most_watts(i);
    }
  }
  if (!expected || weights <= 0) {
    return 0;
  }
  const double most = std::min(other, highest * interval.seconds);
  const double joules = std::clamp(other - *expected * interval.seconds, 0.0, most);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const Device& device = devices_[i];
    if (known_set_.missing(device.place)) {
      claim_device(device.holders);
      find_unused_device(device.utilisation, device.total_use);
      charge_device(Domain::kOther, joules * most_watts(i) / weights,
                    device_idle_watts(i) * interval.seconds, device.total_use);
    }
  }
  return joules;
}

}  // namespace ceems::exporter::energy
