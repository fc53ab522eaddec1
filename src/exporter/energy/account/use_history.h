#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "exporter/energy/account/unit_watts.h"

namespace ceems::exporter::energy {

/// How many cores each unit kept busy in the last minutes, for a wall meter whose value describes a
/// time that is over.
///
/// Keeps the core-seconds of each unit since it was first seen, at marks of kSpacing seconds or
/// more, in steps of 0.1 ms that wrap. The mean over any time between is the difference of the sums
/// at its ends, which are interpolated, by its length. One of 256 units takes 1.5 KiB.
///
/// Units: seconds, busy cores. Source: bookkeeping; nothing is modelled.
///
/// advance() takes time in proportion to the number of units, and allocates only when units come.
/// Not thread-safe.
class UseHistory {
 public:
  /// They reach back to the longest window and delay of MeterLag and a while more.
  static constexpr std::size_t kMarks = 192;
  static constexpr double kSpacing = 0.95;
  static constexpr std::size_t kMaxUnits = UnitWatts::kMaxUnits;

  /// Averages over a time.
  struct Means {
    double cores = 0;           ///< of everything
    double awake = 0;           ///< part of the sockets that had a busy core
    double beside_resting = 0;  ///< see UnitWatts::Use
  };

  /// Takes an interval with all units that may use something. Units that are missing have ended;
  /// they are kept until the oldest mark is younger. Beyond kMaxUnits, units are left out and only
  /// count in `means.cores`.
  void advance(double seconds, const Means& means, std::span<const UnitWatts::Use> units);

  /// The averages over `seconds` that ended `age` seconds ago. uses() is then what the units used
  /// in that time: all that still run, and others if they used something. Nothing if that is
  /// further back than the marks reach.
  std::optional<Means> look_back(double age, double seconds);
  [[nodiscard]] std::span<const UnitWatts::Use> uses() const { return uses_; }

  /// Seconds since the first interval began.
  [[nodiscard]] double time() const { return now_.time; }

 private:
  /// A time between two marks.
  struct Point {
    std::size_t before = 0;
    std::size_t after = 0;  // kMarks: now
    double part = 0;
  };
  /// A sum that grows, at each mark.
  class Sum {
   public:
    void add(double seconds) { now_ += seconds; }
    void mark(std::size_t place) { marks_.at(place) = steps(); }
    /// By how much it grew between two points.
    [[nodiscard]] double between(const Point& first, const Point& last) const;

   private:
    static constexpr double kSteps = 1e4;  // of a second
    [[nodiscard]] std::uint32_t steps() const;
    [[nodiscard]] double before_now(const Point& point) const;
    double now_ = 0;
    std::array<std::uint32_t, kMarks> marks_{};
  };
  struct Unit {
    std::uint64_t key = 0;
    double seen = 0;  // the last time
    std::optional<PowerEstimate> before = {};
    Sum core_seconds;
    Sum beside_resting;
  };
  struct Mark {
    double time = 0;
    double core_seconds = 0;
    double awake_seconds = 0;
    double beside_resting = 0;
  };

  [[nodiscard]] std::optional<Point> at(double time) const;
  [[nodiscard]] Mark mark_at(const Point& point) const;
  Unit* find_or_add(const UnitWatts::Use& use);
  void forget_old();

  std::array<Mark, kMarks> marks_{};
  std::size_t mark_count_ = 0;  // marks ever made
  Mark now_;
  std::vector<Unit> units_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // in units_, by key
  std::vector<UnitWatts::Use> uses_;
};

}  // namespace ceems::exporter::energy
