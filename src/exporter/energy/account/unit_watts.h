#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace ceems::exporter::energy {

/// Learns how many watts each unit draws per busy core, because a core-second of one program takes
/// twice the energy of one of another. All that is seen is the active power of a domain and how
/// many cores each unit keeps busy. When units start, stop or change their pace, the power changes
/// with them, and this tells what is whose.
///
/// A Kalman filter with the state "watts per busy core" of each unit (R. E. Kalman, "A New Approach
/// to Linear Filtering and Prediction Problems", 1960). A new unit starts with the average, and
/// keeps it until something changes. The system counts as one unit, together with all units beyond
/// the first kMaxUnits. What is learned lies between kMinWatts and kMaxWatts of the average, so
/// that one broken reading does little.
///
/// observe() takes time in proportion to the square of the number of units, and allocates only when
/// units come or go. Not thread-safe.
class UnitWatts {
 public:
  static constexpr std::size_t kMaxUnits = 256;
  static constexpr double kMinWatts = 0.2;  ///< of the average, as is kMaxWatts
  static constexpr double kMaxWatts = 4;

  struct Use {
    std::uint64_t key = 0;  ///< of the unit; never 0 and never reused
    double cores = 0;       ///< busy cores, >= 0
  };

  /// Takes one interval: the active power in watts and the use by the system and by all units that
  /// may use something. Units that are missing are forgotten.
  void observe(double active_watts,
               double seconds,
               double system_cores,
               std::span<const Use> units);

  /// Watts of each unit of the last observe(), in its order; >= 0.
  [[nodiscard]] std::span<const double> watts() const { return watts_; }
  /// Watts of everything in the last observe(); at least the sum of watts().
  [[nodiscard]] double total_watts() const { return total_watts_; }
  /// Watts per busy core of everything; 0: not known yet.
  [[nodiscard]] double average() const { return average_; }

 private:
  void adopt(std::span<const Use> units);
  void learn(double active_watts, double seconds);

  // The state. The first element is the system.
  std::vector<std::uint64_t> keys_;
  std::vector<double> mean_;
  std::vector<double> covariance_;  // square, by rows
  std::unordered_map<std::uint64_t, std::size_t> places_;
  double average_ = 0;

  // Of one interval.
  std::vector<double> cores_;  // like mean_
  std::vector<double> gain_;   // like mean_
  std::vector<double> watts_;
  double total_watts_ = 0;
};

}  // namespace ceems::exporter::energy
