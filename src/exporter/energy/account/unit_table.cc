#include "exporter/energy/account/unit_table.h"

namespace ceems::exporter::energy {
namespace {

template <typename Duration>
double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double positive(double value) {
  return value > 0 && std::isfinite(value) ? value : 0;
}

void make_key(std::string& key,
              std::string_view manager,
              std::string_view cgrouphostname,
              std::string_view uuid) {
  key.assign(manager);
  key.push_back('\0');
  key.append(cgrouphostname);
  key.push_back('\0');
  key.append(uuid);
}

}  // namespace

void UnitUse::take(const UnitStats& stats) {
  if (stats.memory_shmem_bytes) {
    shmem_bytes_ = static_cast<double>(*stats.memory_shmem_bytes);
  }
  peak_bytes_ = std::max(peak_bytes_, stats.memory_held_bytes);
}

std::optional<double> UnitUse::memory_peak_bytes() const {
  // Every process holds some memory, so 0 means that it is not counted.
  return peak_bytes_ > 0 ? std::optional(static_cast<double>(peak_bytes_)) : std::nullopt;
}

double UnitEntry::joules(Domain domain) const {
  if (domain != Domain::kNode) {
    return parts.at(index(domain)).value();
  }
  double sum = 0;
  for (const JouleCounter& part : parts) {
    sum += part.value();
  }
  return sum;
}

double UnitEntry::idle_joules(Domain domain) const {
  const auto part = [this](std::size_t i) {
    return std::min(idle_parts.at(i).value(), parts.at(i).value());
  };
  if (domain != Domain::kNode) {
    return part(index(domain));
  }
  double sum = 0;
  for (std::size_t i = 0; i < kPartCount; ++i) {
    sum += part(i);
  }
  return sum;
}

double UnitEntry::unused_idle_joules(Domain domain) const {
  const auto part = [this](std::size_t i) {
    return std::min({unused_parts.at(i).value(), idle_parts.at(i).value(), parts.at(i).value()});
  };
  if (domain != Domain::kNode) {
    return part(index(domain));
  }
  double sum = 0;
  for (std::size_t i = 0; i < kPartCount; ++i) {
    sum += part(i);
  }
  return sum;
}

double UnitEntry::unused_cpus() const {
  const double reserved = cpus * presence;
  return reserved > 0 ? 1 - std::clamp(busy_cpus / reserved, 0.0, 1.0) : 0;
}

double UnitEntry::unused_memory(double memory_total_bytes) const {
  const double touched = std::max(use.memory_peak_bytes().value_or(0), memory_used_bytes);
  const bool limited = memory_limit_bytes > 0 && memory_limit_bytes < memory_total_bytes;
  return limited && touched > 0 ? 1 - std::clamp(touched / memory_limit_bytes, 0.0, 1.0) : 0;
}

UnitEntry* UnitTable::find_or_add(std::string_view manager, const Unit& unit, bool& added) {
  make_key(key_, manager, unit.cgrouphostname, unit.uuid);
  added = false;
  if (const auto found = by_key_.find(std::string_view(key_)); found != by_key_.end()) {
    return found->second;
  }
  auto& entry = entries_.emplace_back(std::make_unique<UnitEntry>());
  entry->manager = manager;
  entry->cgrouphostname = unit.cgrouphostname;
  entry->uuid = unit.uuid;
  entry->serial = ++serial_;
  by_key_.emplace(key_, entry.get());
  added = true;
  return entry.get();
}

const UnitEntry* UnitTable::find(std::string_view manager,
                                 std::string_view cgrouphostname,
                                 std::string_view uuid) {
  make_key(key_, manager, cgrouphostname, uuid);
  const auto found = by_key_.find(std::string_view(key_));
  return found == by_key_.end() ? nullptr : found->second;
}

void UnitTable::take_unit(std::size_t manager,
                          const ManagerUnits& units,
                          const Unit& unit,
                          double gap_seconds,
                          double cpus_online) {
  const UnitSnapshot& snapshot = *units.snapshot;
  const bool baseline = gap_seconds <= 0;  // first snapshot of this manager
  if (unit.ended && baseline) {
    return;  // it ended before this program started
  }
  bool added = false;
  UnitEntry* entry = find_or_add(units.manager, unit, added);
  if (entry->seen_ == round_) {
    return;
  }
  if (unit.ended && entry->ended) {
    entry->seen_ = round_;
    return;
  }
  entry->seen_ = round_;
  entry->manager_index_ = manager;

  const double cpu = positive(unit.stats.cpu_seconds());
  if (baseline) {
    entry->busy_cpus = 0;
    entry->presence = 1;
  } else {
    const double used = added || cpu < entry->cpu_seconds_ ? cpu : cpu - entry->cpu_seconds_;
    entry->busy_cpus = used / gap_seconds;
    if (cpus_online > 0) {
      entry->busy_cpus = std::min(entry->busy_cpus, cpus_online);
    }
    // The wall clock may have jumped, so the presence is limited to 0...1.
    double begin = 0;
    double end = gap_seconds;
    if ((added || entry->ended) && unit.started != Clock::SystemTime{}) {
      begin = gap_seconds - seconds(snapshot.wall - unit.started);
    }
    if (unit.ended && unit.last_seen != Clock::SystemTime{}) {
      end = gap_seconds - seconds(snapshot.wall - unit.last_seen);
    }
    entry->presence = std::clamp(end, 0.0, gap_seconds) - std::clamp(begin, 0.0, gap_seconds);
    entry->presence = std::clamp(entry->presence / gap_seconds, 0.0, 1.0);
  }
  entry->cpu_seconds_ = cpu;
  const UnitStats& stats = unit.stats;
  entry->cpus = positive(stats.reserved_cpus);
  entry->cpu_set = stats.cpu_set;
  entry->memory_limit_bytes = stats.memory_reserved ? positive(stats.memory_total_bytes) : 0;
  entry->memory_used_bytes =
      stats.memory_used_bytes > stats.memory_inactive_file_bytes
          ? static_cast<double>(stats.memory_used_bytes - stats.memory_inactive_file_bytes)
          : 0;
  entry->use.take(stats);
  if (unit.ended) {
    entry->ended = snapshot.taken;
    entry->scraped_since_end = false;
  } else {
    entry->ended.reset();
  }
}

void UnitTable::take(std::size_t manager, const ManagerUnits& units, double cpus_online) {
  ManagerState& state = managers_[manager];
  const UnitSnapshot& snapshot = *units.snapshot;
  const double gap = state.taken ? seconds(snapshot.taken - *state.taken) : 0;
  // Live units come first, because a unit that was restarted under the id of an ended one takes its
  // place.
  for (const bool ended : {false, true}) {
    for (const Unit& unit : snapshot.units) {
      if (unit.ended == ended) {
        take_unit(manager, units, unit, gap, cpus_online);
      }
    }
  }
  for (const auto& entry : entries_) {
    if (entry->manager_index_ == manager && entry->seen_ != round_ && !entry->ended) {
      entry->ended = snapshot.taken;
      entry->scraped_since_end = false;
      entry->presence = 0;
      entry->busy_cpus = 0;
    }
  }
  state.taken = snapshot.taken;
  state.wall = snapshot.wall;
  state.round = round_;
}

void UnitTable::update(Clock::SteadyTime now,
                       double cpus_online,
                       std::span<const ManagerUnits> managers,
                       const std::function<void(const UnitEntry&)>& dropped) {
  ++round_;
  managers_.resize(managers.size());
  for (const auto& entry : entries_) {
    entry->presence = entry->ended ? 0 : 1;
    if (entry->ended) {  // its last interval has been accounted
      entry->busy_cpus = 0;
    }
  }
  for (std::size_t i = 0; i < managers.size(); ++i) {
    const UnitSnapshot* snapshot = managers[i].snapshot;
    const ManagerState& state = managers_[i];
    if (snapshot != nullptr && (!state.taken || snapshot->taken > *state.taken)) {
      take(i, managers[i], cpus_online);
    } else if (state.taken && now - *state.taken > kHold) {
      for (const auto& entry : entries_) {
        if (entry->manager_index_ != i) {
          continue;
        }
        entry->busy_cpus = 0;
        if (!entry->ended && now - *state.taken > keep_ended_) {
          entry->ended =
              state.taken;  // it was in no snapshot for the time that ended units are kept
          entry->presence = 0;
        }
      }
    }
  }
  // A unit that ended in this update still gets its share of this interval.
  const auto is_over = [](const std::unique_ptr<UnitEntry>& entry) {
    return entry->ended && entry->presence <= 0 && entry->busy_cpus <= 0;
  };
  // One that is still in the snapshots would be taken for a new unit if it were dropped.
  const auto is_gone = [&](const std::unique_ptr<UnitEntry>& entry) {
    return is_over(entry) && entry->seen_ < managers_[entry->manager_index_].round;
  };
  const auto over =
      static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), is_gone));
  std::size_t excess = over > kMaxEnded ? over - kMaxEnded : 0;
  std::erase_if(entries_, [&](const std::unique_ptr<UnitEntry>& entry) {
    if (!is_over(entry)) {
      return false;
    }
    const auto age = now - *entry->ended;
    if (excess > 0 && is_gone(entry)) {
      --excess;
    } else if (age < keep_ended_ && !(entry->scraped_since_end && age >= kMinKeep)) {
      return false;
    }
    dropped(*entry);
    make_key(key_, entry->manager, entry->cgrouphostname, entry->uuid);
    by_key_.erase(by_key_.find(std::string_view(key_)));
    return true;
  });
}

void UnitTable::mark_scraped() {
  for (const auto& entry : entries_) {
    entry->scraped_since_end = entry->ended.has_value();
  }
}

}  // namespace ceems::exporter::energy
