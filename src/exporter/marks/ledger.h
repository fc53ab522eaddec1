#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "exporter/energy/account/account.h"
#include "exporter/marks/unit_marks.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter::marks {

/// The marks of all units of this node. Their energy is what the account of energy charges the
/// units with. Marks of a unit are kept as long as its energy. Safe for concurrent use.
class Ledger {
 public:
  /// More units with marks at a time are refused.
  static constexpr std::size_t kMaxUnits = 512;

  struct Entry {
    std::string manager;
    std::string cgrouphostname;
    std::string uuid;
    UnitMarks marks;

    // State of the ledger.
    std::uint64_t cgroup_id = 0;
    std::uint64_t serial = 0;  // of the unit in the account; 0 while it is not in it
    Clock::SteadyTime begun{};
    bool gone = false;  // no longer in the ledger
  };

  /// The marks of the unit, which begin now if it has none. Null with kMaxUnits.
  std::shared_ptr<Entry> open(const UnitSnapshot& snapshot, const Unit& unit, Clock::SteadyTime now)
      CEEMS_EXCLUDES(mutex_);
  /// Takes a message of a connection. False if the unit is gone.
  bool take(Entry& entry, const Message& message, Stream& stream, Clock::SteadyTime now)
      CEEMS_EXCLUDES(mutex_);
  /// Ends the regions of a connection.
  void close(Entry& entry, Stream& stream, Clock::SteadyTime now) CEEMS_EXCLUDES(mutex_);
  /// Ends all regions: the units have ended. Call it before the last advance().
  void end_all(Clock::SteadyTime now) CEEMS_EXCLUDES(mutex_);
  void count_dropped(Drop drop, std::uint64_t messages = 1) CEEMS_EXCLUDES(mutex_);

  /// Takes the energy of an interval of the account, which ends at `now`.
  void advance(const energy::Account& account, Clock::SteadyTime now) CEEMS_EXCLUDES(mutex_);

  /// What a page shows.
  struct View {
    const std::vector<std::shared_ptr<Entry>>& units;
    const std::array<bool, energy::kDomainCount>& known;  ///< domains of the account
    std::uint64_t taken;                                  ///< messages
    const std::array<std::uint64_t, kDropCount>& dropped;
  };
  /// Calls `use` under the lock.
  void read(const std::function<void(const View&)>& use) const CEEMS_EXCLUDES(mutex_);

 private:
  /// Parts of a unit's energy at the end of the last interval, by its serial.
  using Known = std::vector<std::pair<std::uint64_t, Parts>>;
  bool advance(Entry& entry, const energy::Account& account, double seconds, Clock::SteadyTime now)
      CEEMS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Entry>> units_ CEEMS_GUARDED_BY(mutex_);
  Known energies_ CEEMS_GUARDED_BY(mutex_);  // sorted
  std::optional<Clock::SteadyTime> last_ CEEMS_GUARDED_BY(mutex_);
  std::array<bool, energy::kDomainCount> known_ CEEMS_GUARDED_BY(mutex_){};
  std::uint64_t taken_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::array<std::uint64_t, kDropCount> dropped_ CEEMS_GUARDED_BY(mutex_){};
};

}  // namespace ceems::exporter::marks
