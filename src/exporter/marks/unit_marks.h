#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/marks/message.h"

namespace ceems::exporter::marks {

/// Joules by domain without kNode.
using Parts = std::array<double, energy::kPartCount>;

double sum(const Parts& parts);

/// The sender of marks whose `begin` and `end` belong together: a connection that has sent
/// `attach`, or all other connections of the unit.
struct Stream {
  std::uint32_t open = 0;  ///< bit i: it has begun region i
  bool attached = false;
  std::uint32_t life = 0;  ///< of the unit, to which `open` belongs
};

/// Why a message changed nothing.
enum class Drop : std::uint8_t {
  kRate,       ///< too many messages
  kMalformed,  ///< not a message
  kNames,      ///< too many names
  kDepth,      ///< too many regions are open
  kUnmatched,  ///< the end of a region that has not begun
};
inline constexpr std::size_t kDropCount = 5;
std::string_view to_string(Drop drop);

/// The marks of one unit on this node, and the energy that its regions used. A region is open while
/// at least one stream has begun it. Of several open regions, the one that was opened last is the
/// innermost.
///
/// The energy of an interval is divided by the time of its parts. So for every unit, the energy of
/// regions while they were innermost (`self`) and the energy outside of all regions sum to what
/// charge() was given.
///
/// A period of a region that is shorter than kShort has an energy that says little, because power
/// is sampled once a second. It is shown only as a part of the sum of at least kMinShort periods.
///
/// Allocates only for a new name. Not thread-safe.
class UnitMarks {
 public:
  static constexpr std::size_t kMaxNames = 32;  ///< of regions, results and figures of merit
  static constexpr std::size_t kMaxOpen = 8;
  static constexpr auto kShort = std::chrono::seconds(1);
  static constexpr std::size_t kMinShort = 10;

  struct Energy {
    Parts joules{};   ///< while the region was open
    double self = 0;  ///< of all domains, while it was the innermost
  };
  struct Region {
    std::string name;
    double seconds = 0;       ///< while it was open
    std::uint64_t count = 0;  ///< ends
    [[nodiscard]] const Energy& energy() const { return shown_.energy; }
    /// Whether it has an energy that may be shown.
    [[nodiscard]] bool has_energy() const { return has_energy_; }
    /// With what may not be shown.
    [[nodiscard]] double all_self_joules() const {
      return shown_.energy.self + hidden_.energy.self + current_.energy.self;
    }

   private:
    friend class UnitMarks;
    /// Seconds that have no energy yet, and the energy of earlier ones.
    struct Account {
      double seconds = 0;
      double self_seconds = 0;
      Energy energy;
      void take(Account& other);
      void charge(const Parts& joules, double total, double seconds_of_interval);
    };
    Account current_;  // of the present period
    Account hidden_;   // of periods that were too short
    Account shown_;
    std::size_t short_periods_ = 0;
    bool has_energy_ = false;
    unsigned streams_ = 0;  // that have it open
    Clock::SteadyTime since_{};
  };
  struct Result {
    std::string name;
    std::string measure;
    double total = 0;
    double first = -1;  ///< first number of `progress`; negative without
    double last = 0;    ///< highest number of `progress`
  };
  struct Fom {
    std::string name;
    std::string measure;
    double value = 0;
  };

  explicit UnitMarks(Clock::SteadyTime now) : cursor_(now) {}

  /// kAttach is left to the caller. Nothing if the message was used.
  std::optional<Drop> take(const Message& message, Stream& stream, Clock::SteadyTime now);
  /// Ends the regions that an attached connection has left open.
  void close(Stream& stream, Clock::SteadyTime now);
  /// Ends all regions of all streams: the unit has ended.
  void end_all(Clock::SteadyTime now);
  /// Divides the energy of the interval that ends at `now`, in which the unit existed for
  /// `seconds`.
  void charge(const Parts& joules, double seconds, Clock::SteadyTime now);

  [[nodiscard]] std::span<const Region> regions() const { return regions_; }
  [[nodiscard]] std::span<const Result> results() const { return results_; }
  [[nodiscard]] std::span<const Fom> foms() const { return foms_; }
  /// Energy outside of all regions.
  [[nodiscard]] double unmarked_joules() const { return unmarked_joules_; }

  /// The stream of connections that are not attached.
  Stream detached;

 private:
  [[nodiscard]] bool is_full() const {
    return regions_.size() + results_.size() + foms_.size() >= kMaxNames;
  }
  void run_to(Clock::SteadyTime now);
  void renew(Stream& stream) const;
  std::optional<Drop> begin(std::string_view name, Stream& stream);
  std::optional<Drop> end(std::string_view name, Stream& stream);
  void leave(std::size_t index);
  void end_period(Region& region);
  std::optional<Drop> count(const Message& message);
  std::optional<Drop> set(const Message& message);

  std::vector<Region> regions_;
  std::vector<Result> results_;
  std::vector<Fom> foms_;
  std::array<std::uint8_t, kMaxOpen> open_{};  // indexes of regions, the innermost last
  std::size_t open_count_ = 0;
  std::uint32_t life_ = 0;     // counts end_all()
  Clock::SteadyTime cursor_;   // to when time has been counted
  double marked_seconds_ = 0;  // of the interval, with at least one region open
  double ahead_ = 0;           // seconds of the interval that were counted in the one before
  double unmarked_joules_ = 0;
};

}  // namespace ceems::exporter::marks
