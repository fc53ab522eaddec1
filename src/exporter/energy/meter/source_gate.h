#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// Why a reading is not believed.
enum class Doubt : std::uint8_t {
  kInvalid,     ///< zero, negative or no number
  kSentinel,    ///< all bits set in 15, 16, 31 or 32 bits: the device has no value
  kTooHigh,     ///< above what the node can draw
  kTooLow,      ///< below what a node draws, or the whole node below its parts
  kJump,        ///< nothing else on the node changed, and the next reading does not confirm it
  kFrozen,      ///< stands still while the node works
  kMirrored,    ///< the same counter as that of another source
  kUnreadable,  ///< no value for longer than a gap
};
inline constexpr std::size_t kDoubtCount = 8;

/// Value of the label `reason`.
std::string_view to_string(Doubt doubt);
/// The same in words, for the log and for people.
std::string_view explain(Doubt doubt);

/// One reading of a power meter.
struct PowerReading {
  double watts = 0;
  Clock::SteadyTime time{};  ///< time of the measurement; at the latest, when the answer arrived
  /// The most that the node can draw by the meter itself: a cap, or the rating of the supplies.
  std::optional<double> capacity_watts = {};
};

/// More than any node draws.
inline constexpr double kMaxNodeWatts = 50'000;

/// What the value alone says about a power of a running node or package: kInvalid, kSentinel,
/// kTooHigh or nothing.
std::optional<Doubt> judge_watts(double watts, double most_watts = kMaxNodeWatts);

/// A line through load and power, with exponentially fading memory. Where the load hardly varied,
/// it has the slope that is assumed. Loads and powers are in any unit, times in seconds.
class PowerLine {
 public:
  static constexpr double kMemory = 600;

  void add(double load, double watts, double seconds);
  /// `slope` is assumed with the weight of a load that varies by `spread`.
  [[nodiscard]] double at(double load, double slope, double spread) const;
  /// Seconds in memory.
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
  double load_ = 0, watts_ = 0;           // means
  double variance_ = 0, covariance_ = 0;  // of the load, and of both
};

/// What the rest of the node says about one source.
struct Expected {
  double most_watts = kMaxNodeWatts;
  double least_watts = 0;
  double parts_watts = 0;  ///< packages, memory and GPUs; 0 if not known
  /// What follows the load of the node, mean of some seconds: watts of its parts or of the model.
  std::optional<double> load_watts = {};
  /// The same of this moment.
  std::optional<double> load_now = {};
  /// Between which `load_now` can be.
  std::pair<double, double> load_range = {};
  /// The range of this source's power by its line, at the load now and the mean of some seconds.
  std::optional<std::pair<double, double>> watts = {};
  /// Without `watts`, a jump needs no second reading: the part may have begun to work.
  bool by_line_only = false;
};

/// The judgement on one source. believes() judges each power before it is integrated; the rest is
/// judged by ReadingGate. Only the const functions are safe for concurrent use.
class SourceGate {
 public:
  /// The least time for which a power must stand still, in seconds in which the load is another
  /// than that for which it showed this value first. Longer for meters that are slower.
  static constexpr double kPatience = 180;
  static constexpr double kMaxPatience = 900;
  /// The node is not below this part of its parts, even if its meter is late.
  static constexpr double kLeastOfParts = 0.5;
  static constexpr double kStale = 60;
  /// Factor by which a power must leave what is expected to need a second reading.
  static constexpr double kJump = 1.8;
  /// After this time without doubt, a source is said to be believed again.
  static constexpr auto kQuiet = std::chrono::seconds(60);

  explicit SourceGate(std::string_view name) : name_(name) {}

  /// Judges and counts one reading of a power meter. Readings come in the order of their times.
  bool believes(const PowerReading& reading);
  /// Counts a reading that is not believed.
  void exclude(Doubt doubt);
  /// Logs what has begun or ended. `instead`: what counts in place of the source.
  void report(Clock::SteadyTime now, std::string_view instead);

  void expect(const Expected& expected) { expected_ = expected; }
  [[nodiscard]] const Expected& expected() const { return expected_; }
  /// Since when no power was believed; nothing if the newest one was.
  [[nodiscard]] std::optional<Clock::SteadyTime> refused_since() const { return refused_since_; }

  /// The source is made of others' powers, one of which has shown the same since the start.
  void set_never_changed(bool never) { frozen_ = never; }
  /// Whether the power stands still, and whether it ever changed.
  [[nodiscard]] bool frozen() const { return frozen_; }
  /// Whether it shows the same as before although the load is another: its meter may be late, or it
  /// stands still. No line is learned from it.
  [[nodiscard]] bool same() const { return stale_ || run_.moved_seconds > 0; }
  /// Nothing else is learned from it, either. Where packages show the power, MeterLag knows more
  /// about a late meter, and learns from it for kStale.
  [[nodiscard]] bool stale() const { return stale_; }
  [[nodiscard]] bool changed() const { return changed_; }

  /// Number of readings that were not believed.
  [[nodiscard]] std::uint64_t excluded(Doubt doubt) const {
    return counts_.at(static_cast<std::size_t>(doubt));
  }
  /// The reason while the source is not believed, or was not less than kQuiet ago.
  [[nodiscard]] std::optional<Doubt> doubt() const;

 private:
  static constexpr std::uint8_t kNone = kDoubtCount;

  [[nodiscard]] bool stands_still(const PowerReading& reading);
  [[nodiscard]] bool jumps(double watts);

  /// The readings in a row that show one power.
  struct Run {
    double watts = std::numeric_limits<double>::quiet_NaN();
    std::optional<double> load;
    std::optional<double> first_load;  // when it was first shown
    Clock::SteadyTime begin{};
    Clock::SteadyTime last{};
    double moved_seconds = 0;  // in which the load was another
    int moved_readings = 0;
  };

  std::string_view name_;
  Expected expected_;
  Run run_;
  double longest_ = 0;  // Run::moved_seconds
  bool frozen_ = false;
  bool stale_ = false;
  bool changed_ = false;
  double believed_ = 0;  // the last power; 0: none yet
  std::optional<double> unconfirmed_;
  std::optional<Clock::SteadyTime> refused_since_;
  bool fresh_ = false;  // excluded since the last report
  std::optional<Clock::SteadyTime> last_doubt_;
  bool logged_ = false;
  std::atomic<std::uint8_t> doubt_ = kNone;
  std::array<std::atomic<std::uint64_t>, kDoubtCount> counts_{};
};

}  // namespace ceems::exporter::energy
