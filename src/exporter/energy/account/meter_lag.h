#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace ceems::exporter::energy {

/// A value of the wall meter beside what the node did in the time that the value describes.
struct AlignedReading {
  double watts = 0;        ///< the value
  double known_watts = 0;  ///< average power of the known domains in that time
  double busy_cores = 0;   ///< average number of busy cores in that time
  double seconds = 0;      ///< what the value stands for: the time since the last aligned one
  double window = 0;       ///< length of that time
  double age = 0;          ///< seconds from its end to the end of the last interval
  double period = 0;       ///< the meter makes a value at least this often
  bool repeated = false;   ///< the meter may have made the value for an earlier time than that
};

/// Finds out how late a wall meter is, and undoes it.
///
/// A BMC shows what the node drew some seconds ago, averaged over up to two minutes. Compared with
/// the packages and the CPU use of this second, such a value is wrong whenever the load changes.
/// This class assumes that a value is the average power of `window` seconds which ended `delay`
/// seconds before the value was read. It tries a grid of both, and for each it compares the changes
/// from value to value with the changes of the average power of the known domains, and of the CPU
/// use. The one that explains the changes best is taken, once it explains them well. Old changes
/// are forgotten slowly, so a meter whose firmware was changed is learned again.
///
/// A meter that repeats a value between its updates is aligned when the value changes, because only
/// then the time of the update is known. So is that of a value which was asked for a whole period
/// of the meter after the one before it. Other values count if power and use have hardly changed
/// since the earliest time at which the meter may have made them.
///
/// Units: seconds, watts, joules, busy cores. Source: least squares of the changes, by delay and
/// window; the grid is what BMCs were seen to do, a value of the moment up to one of two minutes.
///
/// Reads no clock and allocates nothing. Not thread-safe.
class MeterLag {
 public:
  static constexpr std::array<double, 11> kDelays = {0, 1, 2, 3, 5, 7, 10, 15, 20, 25, 30};
  static constexpr std::array<double, 11> kWindows = {1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120};
  /// Changes that are seen before the lag counts as known.
  static constexpr double kMinChanges = 4;
  /// How fast the node's energy returns to the integral of the meter, in seconds.
  static constexpr double kSettle = 3600;

  struct Lag {
    double delay = 0;   ///< seconds from the end of the window until the value is read
    double window = 0;  ///< seconds that the value is the average of
    /// The part of the longer window that both windows cover, 0...1.
    [[nodiscard]] double shared(const Lag& other) const;
    bool operator==(const Lag&) const = default;
  };

  /// The learned state of a meter, for another object to continue with.
  struct State {
    Lag lag;
    /// Sums over the changes that showed it, by power and use: of x², x·y and y², and how many
    /// there were.
    std::array<double, 4> by_power{};
    std::array<double, 4> by_use{};
    /// The line of watts_at(): weight, known watts, watts, and their spread and covariance. All 0
    /// if there is none.
    std::array<double, 5> line{};
    /// False for what no meter can have shown.
    [[nodiscard]] bool plausible() const;
    bool operator==(const State&) const = default;
  };

  /// Takes an interval: the joules of the known domains and the core-seconds used. `late` is by how
  /// much later or earlier than the last time the joules may have been read after the end of the
  /// interval, in seconds.
  void advance(double seconds, double known_joules, double busy_seconds, double late = 0);

  /// The known domains drew `watts` more or less than advance() was given, all the time since `age`
  /// seconds before the end of the last interval. Meters that have a reading once a second tell
  /// afterwards.
  void correct(double watts, double age);

  /// Takes a value of the meter that was read `age` seconds before the end of the last interval.
  /// Call it once per value, after advance().
  void take(double watts, double age) {
    learn(watts, age);
    hold(watts, age);
  }
  /// The first half of take(), where all known domains have told what they drew, or will tell it
  /// with correct() within seconds: the value is used then.
  void learn(double watts, double age);
  /// The other half, which comparable_joules() needs at once.
  void hold(double watts, double age);

  /// Returns the values whose time is known, one after another; nothing when there are no more.
  /// Call it after take(). Values that came before the lag was known are kept for some minutes and
  /// returned once it is.
  std::optional<AlignedReading> next();

  /// Nothing until the lag is known.
  [[nodiscard]] std::optional<Lag> lag() const;

  /// Nothing until the lag is known.
  [[nodiscard]] std::optional<State> state() const;
  /// Continues with the state of another object, unless the lag is known or the state is not
  /// plausible.
  void restore(const State& state);

  /// What the meter shows when the known domains draw `known_watts` for long, by a straight line
  /// through the values that next() returned. Nothing before the first of them.
  [[nodiscard]] std::optional<double> watts_at(double known_watts) const;

  /// The joules of the known domains to be subtracted from the meter's energy of the last interval,
  /// in which they used `known_joules`: the joules of the time that the meter's value describes if
  /// that is known, else `even_joules`, which is what advance() was given if that is not the same.
  /// In the long run all results sum to all `known_joules`. Call it once per interval, after
  /// take().
  double comparable_joules(double known_joules,
                           double seconds,
                           std::optional<double> even_joules = {});

  /// Other domains are known from now on. Forgets what the known ones drew, and values whose time
  /// is not known; keeps the lag and the line.
  void restart_history();
  /// The known domains draw `watts` more from now on, which the wall meter showed before, too (less
  /// than 0: the other way round). The line moves with them, and newer values count for more.
  void move_line(double watts);
  /// Replaces the line by that of another state, or by none.
  void set_line(const State* state);

  /// Forgets everything, because another meter is used from now on. What comparable_joules() still
  /// owes is kept.
  void reset();

 private:
  static constexpr std::size_t kCandidates = kDelays.size() * kWindows.size();
  static constexpr double kSpacing = 0.8;      // seconds between two marks, at least
  static constexpr std::size_t kMarks = 1024;  // so that they reach back to the oldest kept value
  static constexpr std::size_t kKept = 256;
  static constexpr std::size_t kWaiting = 8;
  static constexpr double kKeptSpacing = 2;  // seconds between two values that are kept, at least

  /// Counters at one time.
  struct Mark {
    double time = 0;
    double known_joules = 0;
    double busy_seconds = 0;
    double late = 0;
  };
  /// What the node did in a window, on average.
  struct Means {
    double known_watts = 0;
    double busy_cores = 0;
  };
  /// Sums over changes of the meter's value (y) and of the quantity that should explain them (x).
  struct Changes {
    double xx = 0;
    double xy = 0;
    double yy = 0;
    double count = 0;  // changes of y that were seen
    void add(double x, double y, bool counts);
    /// The part of the changes that is not explained with a slope of `least` to `most`, 0...1.
    [[nodiscard]] double unexplained(double least, double most) const;
  };
  /// A value of the meter whose time is not known yet.
  struct Kept {
    double time = 0;
    double watts = 0;
    double made_after = 0;  // the meter made it between this and `time`
    double seconds = 0;     // since the value before it
  };
  /// A value of the meter, about whose time not all known domains have told yet.
  struct Waiting {
    double time = 0;
    double watts = 0;
  };
  /// When the meter makes its values.
  struct Updates {
    std::optional<double> watts;   // the last value
    std::optional<double> time;    // when the meter had it
    std::optional<double> change;  // when the meter had another value than before
    std::optional<double> period;  // the meter has a new value at least this often, in seconds
    [[nodiscard]] bool take(double watts, double time);
  };
  /// A line through (known power, value), as weighted means and sums about them.
  struct Line {
    double weight = 0;
    double known = 0;
    double watts = 0;
    double spread = 0;
    double together = 0;
    void add(const AlignedReading& reading);
  };
  struct Candidate {
    std::optional<Means> last;  // at the value that the next change is counted from
    std::optional<Means> now;   // at the newest value
    Changes by_power;
    Changes by_use;
  };

  [[nodiscard]] std::optional<Mark> at(double time) const;
  static std::optional<Means> means(const std::optional<Mark>& first,
                                    const std::optional<Mark>& last);
  [[nodiscard]] std::optional<Means> means_of(std::size_t candidate, double time) const;
  static bool similar(const Means& a, const Means& b);
  [[nodiscard]] bool steady() const;
  std::optional<AlignedReading> align(std::size_t candidate, const Kept& kept);
  void learn_waiting();
  void learn_at(double watts, double time);
  void compare(double watts, double time);
  void choose();

  std::array<Mark, kMarks> marks_{};
  std::size_t mark_count_ = 0;  // marks ever made; the newest is at (mark_count_ - 1) % kMarks
  Mark newest_;
  std::array<Candidate, kCandidates> candidates_{};
  std::optional<std::size_t> best_;
  std::optional<double> reference_watts_;  // the value that the next change is counted from
  double reference_time_ = 0;
  Updates learned_;
  Updates shown_;
  std::optional<double> last_kept_;          // time of the last value that was kept
  std::optional<double> last_returned_;      // time of the last value that was returned
  std::optional<AlignedReading> steady_;     // the newest value if any time would do
  bool corrected_ = false;                   // some tell afterwards what they drew
  std::array<Waiting, kWaiting> waiting_{};  // a ring, like kept_
  std::size_t waiting_begin_ = 0;
  std::size_t waiting_end_ = 0;
  std::array<Kept, kKept> kept_{};  // a ring
  std::size_t kept_begin_ = 0;      // positions count on; modulo kKept they are indexes
  std::size_t kept_end_ = 0;
  std::optional<double> held_known_watts_;  // of the time that the newest value describes
  Line line_;
  std::optional<double> former_known_watts_;  // the same at the end of the interval before
  std::optional<double>
      new_seconds_;          // the newest value came so long before the end of the last one
  double ahead_joules_ = 0;  // comparable_joules() returned less than it was given by this
};

}  // namespace ceems::exporter::energy
