#include "exporter/marks/ledger.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace ceems::exporter::marks {
namespace {

/// How long marks are kept of a unit that the account does not know.
constexpr auto kUnknown = std::chrono::seconds(60);

using Units = std::span<const std::unique_ptr<energy::UnitEntry>>;

/// The unit in the account, which has its units in the order of their serials.
const energy::UnitEntry* find(Units units, const Ledger::Entry& entry) {
  if (entry.serial != 0) {
    const auto found = std::ranges::lower_bound(units, entry.serial, {},
                                                [](const auto& unit) { return unit->serial; });
    return found != units.end() && (*found)->serial == entry.serial ? found->get() : nullptr;
  }
  const auto found = std::ranges::find_if(units, [&entry](const auto& unit) {
    return unit->uuid == entry.uuid && unit->manager == entry.manager &&
           unit->cgrouphostname == entry.cgrouphostname;
  });
  return found == units.end() ? nullptr : found->get();
}

Parts parts_of(const energy::UnitEntry& unit) {
  Parts parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts.at(i) = unit.parts.at(i).value();
  }
  return parts;
}

Clock::SteadyTime later(Clock::SteadyTime time, double seconds) {
  return time + std::chrono::duration_cast<Clock::SteadyTime::duration>(
                    std::chrono::duration<double>(seconds));
}

}  // namespace

std::shared_ptr<Ledger::Entry> Ledger::open(const UnitSnapshot& snapshot,
                                            const Unit& unit,
                                            Clock::SteadyTime now) {
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(units_, [&](const auto& entry) {
    return entry->uuid == unit.uuid && entry->manager == snapshot.manager &&
           entry->cgrouphostname == unit.cgrouphostname;
  });
  if (found != units_.end()) {
    if ((*found)->cgroup_id != unit.cgroup_id) {
      // It was started again under the same name.
      (*found)->marks.end_all(now);
      (*found)->cgroup_id = unit.cgroup_id;
    }
    return *found;
  }
  if (units_.size() >= kMaxUnits) {
    return nullptr;
  }
  return units_.emplace_back(std::make_shared<Entry>(Entry{.manager = snapshot.manager,
                                                           .cgrouphostname = unit.cgrouphostname,
                                                           .uuid = unit.uuid,
                                                           .marks = UnitMarks(now),
                                                           .cgroup_id = unit.cgroup_id,
                                                           .begun = now}));
}

bool Ledger::take(Entry& entry, const Message& message, Stream& stream, Clock::SteadyTime now) {
  const MutexLock lock(mutex_);
  if (entry.gone) {
    return false;
  }
  ++taken_;
  if (message.kind == Message::Kind::kAttach) {
    stream.attached = true;
  } else if (const auto drop =
                 entry.marks.take(message, stream.attached ? stream : entry.marks.detached, now)) {
    ++dropped_.at(static_cast<std::size_t>(*drop));
  }
  return true;
}

void Ledger::close(Entry& entry, Stream& stream, Clock::SteadyTime now) {
  const MutexLock lock(mutex_);
  if (stream.attached) {
    entry.marks.close(stream, now);
  }
}

void Ledger::end_all(Clock::SteadyTime now) {
  const MutexLock lock(mutex_);
  for (const auto& entry : units_) {
    entry->marks.end_all(now);
  }
}

void Ledger::count_dropped(Drop drop, std::uint64_t messages) {
  const MutexLock lock(mutex_);
  dropped_.at(static_cast<std::size_t>(drop)) += messages;
}

/// False if the unit is no longer in the account.
bool Ledger::advance(Entry& entry,
                     const energy::Account& account,
                     double seconds,
                     Clock::SteadyTime now) {
  const energy::UnitEntry* unit = find(account.units(), entry);
  if (unit == nullptr) {
    return entry.serial == 0 && now - entry.begun < kUnknown;
  }
  entry.serial = unit->serial;
  const auto before = std::ranges::lower_bound(energies_, unit->serial, {},
                                               [](const auto& pair) { return pair.first; });
  const bool seen = before != energies_.end() && before->first == unit->serial;
  Parts joules = parts_of(*unit);
  for (std::size_t i = 0; seen && i < joules.size(); ++i) {
    joules.at(i) = std::max(0.0, joules.at(i) - before->second.at(i));
  }
  const double existed = seconds * unit->presence;
  if (unit->ended) {
    entry.marks.end_all(seen ? later(now, existed - seconds) : now);
  }
  entry.marks.charge(joules, existed, now);
  return true;
}

void Ledger::advance(const energy::Account& account, Clock::SteadyTime now) {
  const MutexLock lock(mutex_);
  const double seconds = last_ ? std::chrono::duration<double>(now - *last_).count() : 0;
  for (const energy::Domain domain : energy::kDomains) {
    known_.at(index(domain)) = account.known(domain);
  }
  std::erase_if(units_, [&](const std::shared_ptr<Entry>& entry) CEEMS_REQUIRES(mutex_) {
    entry->gone = !advance(*entry, account, seconds, now);
    return entry->gone;
  });
  energies_.clear();
  for (const auto& unit : account.units()) {
    energies_.emplace_back(unit->serial, parts_of(*unit));
  }
  last_ = now;
}

void Ledger::read(const std::function<void(const View&)>& use) const {
  const MutexLock lock(mutex_);
  use({.units = units_, .known = known_, .taken = taken_, .dropped = dropped_});
}

}  // namespace ceems::exporter::marks
