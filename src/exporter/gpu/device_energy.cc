#include "exporter/gpu/device_energy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.h"
#include "exporter/energy/meter/apu_power.h"

namespace ceems::exporter::gpu {
namespace {

using energy::DeviceHolder;
using energy::DeviceSample;

/// A GPU or an instance, as a unit may hold it.
struct Place {
  const InstanceState* instance = nullptr;  // null for the whole GPU
  double part = 1;                          // fraction of the GPU, by SMs
  std::optional<double> activity = {};      // of the instance, 0...1
};

bool is_there(const ProcessUse& use, const Place& place) {
  if (place.instance == nullptr) {
    return true;
  }
  return use.gpu_instance == place.instance->gpu_instance &&
         (!use.compute_instance || *use.compute_instance == place.instance->compute_instance);
}

bool names(const Assignment& assignment, const DeviceState& device, const Place& place) {
  if (assignment.vendor != device.vendor || assignment.device_uuid != device.uuid) {
    return false;
  }
  if (place.instance == nullptr) {
    return assignment.gpu_instance.empty();
  }
  if (assignment.gpu_instance != std::to_string(place.instance->gpu_instance)) {
    return false;
  }
  // Several compute instances may share a GPU instance. Their index distinguishes them.
  return assignment.index == place.instance->index ||
         std::count_if(device.instances.begin(), device.instances.end(),
                       [&](const InstanceState& other) {
                         return other.gpu_instance == place.instance->gpu_instance;
                       }) == 1;
}

std::vector<Place> places(const DeviceState& device) {
  if (!device.split) {
    return {Place{.instance = nullptr, .part = 1, .activity = device.activity.sm_active}};
  }
  const bool sized = std::all_of(device.instances.begin(), device.instances.end(),
                                 [](const InstanceState& i) { return i.sm_count > 0; });
  double sum = 0;
  for (const InstanceState& instance : device.instances) {
    sum += sized ? static_cast<double>(instance.sm_count) : 1;
  }
  const double all = sized ? std::max(sum, static_cast<double>(device.sm_count)) : sum;
  std::vector<Place> list;
  list.reserve(device.instances.size());
  for (const InstanceState& instance : device.instances) {
    list.push_back({.instance = &instance,
                    .part = (sized ? static_cast<double>(instance.sm_count) : 1) / all,
                    .activity = instance.activity.sm_active});
  }
  return list;
}

DeviceHolder holder_of(const UnitProcess& process) {
  return {.manager = std::string(process.manager),
          .cgrouphostname = process.unit->cgrouphostname,
          .uuid = process.unit->uuid};
}

bool same_unit(const DeviceHolder& a, const DeviceHolder& b) {
  return a.uuid == b.uuid && a.manager == b.manager && a.cgrouphostname == b.cgrouphostname;
}

/// The holder that is this unit, added to the list if it is missing.
DeviceHolder& entry(std::vector<DeviceHolder>& list, const DeviceHolder& unit) {
  const auto found = std::find_if(
      list.begin(), list.end(), [&](const DeviceHolder& known) { return same_unit(known, unit); });
  return found != list.end() ? *found : list.emplace_back(unit);
}

std::span<const UnitProcess> units_of(int pid, std::span<const UnitProcess> processes) {
  const auto [begin, end] = std::ranges::equal_range(processes, pid, {}, &UnitProcess::pid);
  return {begin, end};
}

/// The holders of one place. `alloc` is a fraction of the place.
std::vector<DeviceHolder> holders_of(const DeviceState& device,
                                     const Place& place,
                                     const Assignments::List& assignments,
                                     std::span<const UnitProcess> processes) {
  std::vector<DeviceHolder> holders;
  for (const Assignment& assignment : assignments) {
    if (names(assignment, device, place)) {
      DeviceHolder& holder = entry(holders, {.manager = assignment.manager,
                                             .cgrouphostname = assignment.cgrouphostname,
                                             .uuid = assignment.uuid});
      holder.alloc += std::clamp(assignment.share, 0.0, 1.0);
    }
  }
  if (!holders.empty()) {
    return holders;
  }
  for (const ProcessUse& use : device.processes) {
    if (is_there(use, place)) {
      for (const UnitProcess& process : units_of(use.pid, processes)) {
        entry(holders, holder_of(process));
      }
    }
  }
  for (DeviceHolder& holder : holders) {
    holder.alloc = 1 / static_cast<double>(holders.size());
  }
  return holders;
}

/// The part of the time in which the GPU had a kernel, as well as the library knows it.
std::optional<double> busy_part(const DeviceState& device) {
  return device.busy ? device.busy : device.utilisation;
}

/// Sets `use` to the utilisation of the holders' processes. Returns that of all processes; 0 if
/// nothing is known.
double use_of_processes(const DeviceState& device,
                        const Place& place,
                        std::span<const UnitProcess> processes,
                        std::vector<DeviceHolder>& holders) {
  double total = 0;
  for (const ProcessUse& use : device.processes) {
    const double part = use.utilisation.value_or(0);
    if (part <= 0 || !is_there(use, place)) {
      continue;
    }
    total += part;
    for (const UnitProcess& process : units_of(use.pid, processes)) {
      entry(holders, holder_of(process)).use += part;
    }
  }
  return total;
}

/// Memory that the unit has there; nothing if it has no process or that is not known.
std::optional<double> memory_of(const DeviceHolder& holder,
                                bool only_holder,
                                const DeviceState& device,
                                const Place& place,
                                std::span<const UnitProcess> processes) {
  std::optional<double> sum;
  bool any = false;
  for (const ProcessUse& use : device.processes) {
    const auto units = units_of(use.pid, processes);
    if (!is_there(use, place) || std::ranges::none_of(units, [&](const UnitProcess& process) {
          return same_unit(holder_of(process), holder);
        })) {
      continue;
    }
    any = true;
    if (use.memory_bytes) {
      sum = sum.value_or(0) + *use.memory_bytes;
    }
  }
  if (!sum && any && only_holder) {
    return place.instance != nullptr ? place.instance->memory_used_bytes : device.memory_used_bytes;
  }
  return sum;
}

/// One meter and the GPUs that it measures together.
struct Meter {
  std::string name;
  const DeviceState* shown_by = nullptr;  // one of the dies
  std::vector<const DeviceState*> dies;
};

bool shows_energy(const DeviceState& device) {
  return device.energy_joules.value_or(0) > 0 || device.power_watts.value_or(0) > 0;
}

/// The dies of one module have one meter if only one of them shows energy, or all show the same.
bool have_one_meter(const std::vector<const DeviceState*>& dies) {
  const auto shown = std::ranges::find_if(dies, [](const auto* die) { return shows_energy(*die); });
  return shown != dies.end() && std::ranges::all_of(dies, [&](const DeviceState* die) {
           return die == *shown || !shows_energy(*die) ||
                  (die->energy_joules && die->energy_joules == (*shown)->energy_joules);
         });
}

/// The meters of all GPUs that answer.
std::vector<Meter> meters_of(const std::vector<DeviceState>& devices) {
  std::vector<Meter> meters;
  std::set<std::string_view> done;
  for (const DeviceState& device : devices) {
    if (!device.lost.empty()) {
      continue;
    }
    std::vector<const DeviceState*> dies;
    for (const DeviceState& other : devices) {
      if (!device.module.empty() && other.module == device.module && other.lost.empty()) {
        dies.push_back(&other);
      }
    }
    if (dies.size() < 2 || !have_one_meter(dies)) {
      meters.push_back({.name = device.uuid, .shown_by = &device, .dies = {&device}});
    } else if (done.insert(device.module).second) {
      const auto shown =
          std::ranges::find_if(dies, [](const auto* die) { return shows_energy(*die); });
      meters.push_back({.name = "module " + device.module, .shown_by = *shown, .dies = dies});
    }
  }
  return meters;
}

}  // namespace

std::vector<UnitProcess> unit_processes(const std::vector<DeviceState>& devices,
                                        std::span<const energy::ManagerUnits> managers) {
  std::vector<int> pids;
  for (const DeviceState& device : devices) {
    for (const ProcessUse& use : device.processes) {
      pids.push_back(use.pid);
    }
  }
  std::vector<UnitProcess> found;
  if (pids.empty()) {
    return found;
  }
  std::ranges::sort(pids);
  for (const energy::ManagerUnits& manager : managers) {
    if (manager.snapshot == nullptr) {
      continue;
    }
    for (const Unit& unit : manager.snapshot->units) {
      for (const int pid : unit.pids) {
        if (!unit.ended && std::ranges::binary_search(pids, pid)) {
          found.push_back({.pid = pid, .manager = manager.manager, .unit = &unit});
        }
      }
    }
  }
  std::ranges::stable_sort(found, {}, &UnitProcess::pid);
  return found;
}

Assignments::List live_assignments(const Assignments::List& assignments,
                                   std::span<const energy::ManagerUnits> managers) {
  Assignments::List list;
  std::ranges::copy_if(assignments, std::back_inserter(list), [&](const Assignment& assignment) {
    const auto manager = std::ranges::find(managers, std::string_view(assignment.manager),
                                           &energy::ManagerUnits::manager);
    return manager == managers.end() || manager->snapshot == nullptr ||
           std::ranges::any_of(manager->snapshot->units, [&](const Unit& unit) {
             return !unit.ended && unit.uuid == assignment.uuid &&
                    unit.cgrouphostname == assignment.cgrouphostname;
           });
  });
  return list;
}

bool find_holders(const DeviceState& device,
                  const Assignments::List& assignments,
                  std::span<const UnitProcess> processes,
                  DeviceSample& sample) {
  const std::vector<Place> all = places(device);
  double active = 0;
  bool known = false;
  for (const Place& place : all) {
    active += place.part * place.activity.value_or(0);
    known = known || place.activity.has_value();
  }
  sample.utilisation = known ? std::optional(std::min(active, 1.0)) : busy_part(device);
  sample.holders.clear();
  sample.total_use = 0;
  known = device.split;
  for (const Place& place : all) {
    auto holders = holders_of(device, place, assignments, processes);
    const double by_processes =
        device.split ? 0 : use_of_processes(device, place, processes, holders);
    if (by_processes > 0) {
      known = true;
      sample.total_use += by_processes;
    } else {
      const double weight =
          device.split && active > 0 ? place.part * place.activity.value_or(0) : place.part;
      for (DeviceHolder& holder : holders) {
        holder.use = weight * holder.alloc;
      }
      sample.total_use += weight;
    }
    for (DeviceHolder& holder : holders) {
      holder.alloc *= place.part;
      sample.holders.push_back(std::move(holder));
    }
  }
  return known;
}

void find_uses(const DeviceState& device,
               const Assignments::List& assignments,
               std::span<const UnitProcess> processes,
               double seconds,
               std::vector<energy::DeviceUse>& uses) {
  for (const Place& place : places(device)) {
    auto holders = holders_of(device, place, assignments, processes);
    const double total = use_of_processes(device, place, processes, holders);
    std::optional<double> busy =
        place.instance != nullptr ? place.instance->utilisation : busy_part(device);
    if (!busy) {
      busy =
          place.instance != nullptr ? place.instance->activity.graphics : device.activity.graphics;
    }
    double held = 0;
    for (const DeviceHolder& holder : holders) {
      held += holder.alloc;
    }
    for (const DeviceHolder& holder : holders) {
      const bool alone = holders.size() == 1 && total <= holder.use;
      double part = 1;
      if (!alone) {
        part = total > 0 ? holder.use / total : (held > 0 ? holder.alloc / held : 0);
      }
      energy::DeviceUse& use = uses.emplace_back();
      use.manager = holder.manager;
      use.cgrouphostname = holder.cgrouphostname;
      use.uuid = holder.uuid;
      use.device = device.uuid;
      use.instance = place.instance != nullptr ? std::to_string(place.instance->gpu_instance) : "";
      use.index = place.instance != nullptr ? place.instance->index : device.index;
      use.seconds = seconds;
      if (total > 0 && (!alone || !busy)) {
        use.busy = std::min(1.0, holder.use);
      } else if (busy) {
        use.busy = *busy * part;
      }
      if (place.activity) {
        use.sms = *place.activity * part;
      }
      use.memory_bytes = memory_of(holder, holders.size() == 1, device, place, processes);
    }
  }
}

std::optional<double> DeviceCounter::line_watts(std::optional<double> use, double limit) const {
  constexpr double kSpread = 0.05;  // of a utilisation that does not teach a slope
  return use && line_.seconds() >= kLine ? std::optional(line_.at(*use, limit, kSpread))
                                         : std::nullopt;
}

DeviceCounter::ByPower DeviceCounter::by_power(const DeviceState& device,
                                               Clock::SteadyTime taken,
                                               double seconds) {
  const double limit = device.power_limit_watts.value_or(0);
  const auto use = busy_part(device);
  const auto line = line_watts(use, limit);
  energy::Expected expected{
      .most_watts = limit > 0 ? std::min(kMaxWatts, kMaxPower * limit) : kMaxWatts,
      .least_watts = kLeastPower * line_watts(0, limit).value_or(0)};
  if (use && limit > 0) {
    expected.load_watts = expected.load_now = *use * limit;
  }
  if (line) {
    expected.watts = std::minmax(*line, watts_.value_or(*line));
  }
  expected.by_line_only = true;
  gate_.expect(expected);
  if (device.power_watts && gate_.believes({.watts = *device.power_watts, .time = taken})) {
    const double now = *device.power_watts;
    const double before = std::exchange(watts_, now).value_or(now);
    const bool first = !std::exchange(believed_, taken);
    // One that was never seen to change is no better than none.
    if (!gate_.same() || (!line && gate_.changed())) {
      return {.joules = first ? std::nullopt : std::optional((now + before) / 2 * seconds),
              .shown = true};
    }
  }
  const bool holds = watts_ && !gate_.same() && taken - believed_.value_or(taken) <= kHold;
  const auto watts = holds ? watts_ : line;
  return {.joules = watts ? std::optional(*watts * seconds) : std::nullopt};
}

bool DeviceCounter::advance(const DeviceState& device,
                            Clock::SteadyTime taken,
                            DeviceSample& sample) {
  const auto use = busy_part(device);
  // One that returns to 0 may return from there, too.
  const auto shown =
      device.energy_joules == 0.0 && joules_.value_or(0) > 0 ? std::nullopt : device.energy_joules;
  if (!device.energy_joules && !device.power_watts &&
      !line_watts(use, device.power_limit_watts.value_or(0))) {
    return false;
  }
  sample.fresh = taken;
  const double limit = device.power_limit_watts.value_or(0);
  const double max_watts = limit > 0 ? std::min(kMaxWatts, kMaxOfLimit * limit) : kMaxWatts;
  if (!taken_ || taken > *taken_) {
    const auto last_taken = std::exchange(taken_, taken);
    const double seconds =
        last_taken ? std::chrono::duration<double>(taken - *last_taken).count() : 0;
    const ByPower power = by_power(device, taken, seconds);
    Amount amount;
    bool counts = false;
    if (!last_taken || taken - *last_taken > kMaxGap) {
      restart(shown);
      held_ = {};
    } else if (joules_) {
      amount = count(shown, power.joules, seconds, max_watts);
      counts = !still_ && moved_ > 1;
    } else {
      restart(shown);
      amount = {.joules = power.joules.value_or(0), .seconds = power.joules ? seconds : 0};
    }
    if (use && amount.joules > 0 && (counts || (power.shown && gate_.changed()))) {
      line_.add(*use, amount.joules / amount.seconds, amount.seconds);
    }
    sample.joules = amount.joules;
    sample.seconds = amount.seconds;
    gate_.report(taken, shown && !still_ ? "its counter" : "an estimate");
  }
  const bool measured = joules_ && shown && !still_;
  sample.source.method = measured ? energy::Method::kMeasured : energy::Method::kDerived;
  return true;
}

void DeviceCounter::restart(std::optional<double> shown) {
  joules_ = shown;
  impossible_.reset();
  ahead_ = {};
  waited_ = 0;
}

/// The energy of an interval at whose end the counter showed this, or could not be read.
DeviceCounter::Amount DeviceCounter::count(std::optional<double> shown,
                                           std::optional<double> by_power,
                                           double seconds,
                                           double max_watts) {
  constexpr double kLeastJoules = 0.5;  // a GPU that draws less may have a counter that is coarser
  waited_ += seconds;
  const auto since = [&](std::optional<double> before, double time) {
    const bool possible = shown && before && *shown >= *before &&  // false for NaN
                          *shown - *before <= max_watts * time;
    return possible ? std::optional(*shown - *before) : std::nullopt;
  };
  auto step = since(joules_, waited_);
  const auto again = since(impossible_, seconds);
  if (step && again && *again < *step - ahead_.joules) {
    step.reset();  // it did start again, or jump
  }
  const bool stopped =
      !shown || (step && *step == 0 && by_power.value_or(0) >= kLeastJoules * seconds);
  const bool moves = !stopped && (step || again);
  moved_ = moves ? moved_ + 1 : 0;
  Amount amount{.joules = by_power.value_or(0), .seconds = by_power ? seconds : 0};
  if (still_) {
    still_ = moved_ < kTrusted;
  } else if (stopped) {
    held_.joules += amount.joules;
    held_.seconds += seconds;
    still_ = by_power && held_.seconds >= std::chrono::duration<double>(kStill).count();
    amount = still_ ? std::exchange(held_, {}) : Amount{};
  } else {
    const Amount held = std::exchange(held_, {});
    if (step) {
      const bool gap = waited_ > std::chrono::duration<double>(kMaxGap).count();
      amount = gap ? Amount{}
                   : Amount{.joules = std::max(0.0, *step - ahead_.joules),
                            .seconds = waited_ - ahead_.seconds};
    } else if (again || by_power) {
      amount = {.joules = held.joules + again.value_or(by_power.value_or(0)),
                .seconds = held.seconds + seconds};
    }
  }
  if (still_ && stopped) {
    waited_ = 0;  // what it catches up with has been charged
  }
  if (moves) {
    restart(shown);
  } else if (shown && !stopped) {
    // Which of the two values is wrong, the next one shows.
    impossible_ = shown;
    ahead_.joules += amount.joules;
    ahead_.seconds += amount.seconds;
  }
  return amount;
}

bool mirrors(const std::vector<DeviceState>& devices, std::size_t place) {
  const DeviceState& device = devices[place];
  return device.energy_joules.value_or(0) > 0 &&
         std::any_of(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(place),
                     [&](const DeviceState& other) {
                       return other.lost.empty() && other.energy_joules == device.energy_joules &&
                              (device.module.empty() || other.module != device.module);
                     });
}

std::vector<double> parts_of_module(std::span<const DeviceState* const> dies) {
  // An MI250X draws 90 W idle and 560 W with both dies busy.
  constexpr double kIdle = 0.2;
  double sum = 0;
  std::vector<double> parts;
  for (const DeviceState* die : dies) {
    parts.push_back(kIdle + busy_part(*die).value_or(0));
    sum += parts.back();
  }
  for (double& part : parts) {
    part /= sum;
  }
  return parts;
}

DeviceEnergy::DeviceEnergy(std::shared_ptr<Monitor> monitor, std::shared_ptr<Inventory> inventory)
    : monitor_(std::move(monitor)), inventory_(std::move(inventory)) {}

std::map<std::string, std::uint64_t> DeviceEnergy::still_readings() const {
  const MutexLock lock(mutex_);
  return still_;
}

/// `name` is that of the meter: the GPU, or the module that its die is of.
bool DeviceEnergy::advance(const std::string& name,
                           const DeviceState& device,
                           Clock::SteadyTime taken,
                           DeviceSample& sample) {
  if (!counters_.contains(name) && counters_.size() >= kMaxCounters) {
    return false;
  }
  DeviceCounter& counter = counters_.try_emplace(name, name).first->second;
  const bool before = counter.stands_still();
  if (!counter.advance(device, taken, sample)) {
    return false;
  }
  if (counter.stands_still() && sample.seconds > 0) {
    const MutexLock lock(mutex_);
    if (++still_[device.uuid] == 1) {
      log::warn(
          "the energy counter of a GPU stands still while it draws power; its energy is taken "
          "from its power until the counter moves again",
          {{"uuid", device.uuid}, {"name", device.name}});
    }
  } else if (before && !counter.stands_still()) {
    log::info("the energy counter of a GPU moves again", {{"uuid", device.uuid}});
  }
  return true;
}

void DeviceEnergy::read(const Reading& reading,
                        const Assignments::List& assignments,
                        const energy::MeterContext& context,
                        std::span<const energy::ManagerUnits> managers,
                        std::vector<DeviceSample>& samples) {
  const auto processes = unit_processes(reading.devices, managers);
  auto meters = meters_of(reading.devices);
  for (Meter& meter : meters) {
    DeviceSample whole;
    whole.source = {.name = {}, .domain = energy::Domain::kGpu};
    const auto place = static_cast<std::size_t>(meter.shown_by - reading.devices.data());
    DeviceState without;
    if (mirrors(reading.devices, place)) {
      without = *meter.shown_by;
      without.energy_joules.reset();
      meter.shown_by = &without;
    }
    if (!advance(meter.name, *meter.shown_by, reading.taken, whole)) {
      continue;
    }
    const auto parts = parts_of_module(meter.dies);
    for (std::size_t i = 0; i < meter.dies.size(); ++i) {
      DeviceSample& sample = samples.emplace_back(whole);
      sample.source.name = meter.dies[i]->uuid;
      sample.joules *= parts[i];
      const DeviceState& die = *meter.dies[i];
      const bool known = find_holders(die, assignments, processes, sample);
      shared_.correct(die, context.utilisation, managers, context.now, sample);
      if (known && !energy::is_apu(die.name)) {  // whose CPU jobs share by an assumption
        const bool sampled = !die.split;
        watts_.try_emplace({sample.source.name, sampled}, sampled).first->second.weigh(sample);
      }
    }
  }
}

void DeviceEnergy::read(const energy::MeterContext& context,
                        std::span<const energy::ManagerUnits> managers,
                        std::vector<DeviceSample>& samples) {
  const auto reading = monitor_->latest();
  last_ = reading == nullptr ? last_ : reading;
  if (last_ == nullptr) {
    return;
  }
  const Assignments::List assignments =
      inventory_ == nullptr ? Assignments::List()
                            : live_assignments(*inventory_->assignments().all(), managers);
  const std::size_t first = samples.size();
  if (reading != nullptr) {
    read(*reading, assignments, context, managers, samples);
  }
  const auto processes = unit_processes(last_->devices, managers);
  const std::size_t shown = samples.size();
  for (const DeviceState& device : last_->devices) {
    const auto told = std::span(samples).subspan(first, shown - first);
    if (std::ranges::none_of(
            told, [&](const DeviceSample& one) { return one.source.name == device.uuid; })) {
      DeviceSample& sample = samples.emplace_back();
      sample.source = {.name = device.uuid, .domain = energy::Domain::kGpu};
      sample.silent = true;
      find_holders(device, assignments, processes, sample);
    }
  }
}

bool DeviceEnergy::read_use(std::span<const energy::ManagerUnits> managers,
                            std::vector<energy::DeviceUse>& uses) {
  const auto reading = monitor_->latest();
  if (reading == nullptr || reading->taken == used_) {
    return false;
  }
  const auto gap = used_ ? reading->taken - *used_ : Clock::SteadyTime::duration(0);
  const double seconds =
      gap <= DeviceCounter::kMaxGap ? std::chrono::duration<double>(gap).count() : 0;
  used_ = reading->taken;
  const Assignments::List assignments =
      inventory_ == nullptr ? Assignments::List()
                            : live_assignments(*inventory_->assignments().all(), managers);
  const auto processes = unit_processes(reading->devices, managers);
  for (const DeviceState& device : reading->devices) {
    if (device.lost.empty()) {
      find_uses(device, assignments, processes, seconds, uses);
    }
  }
  return true;
}

std::string DeviceEnergy::models() const {
  const auto reading = monitor_->latest();
  std::set<std::string> names;
  if (reading != nullptr) {
    for (const DeviceState& device : reading->devices) {
      names.insert(device.name);
    }
  }
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() || name.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace ceems::exporter::gpu
