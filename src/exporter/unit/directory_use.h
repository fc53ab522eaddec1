#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "exporter/unit/stat/kept_file.h"

namespace ceems::exporter {

/// CPU time used below one directory of the tree, from one sample to the next.
///
/// The counter of a directory counts what has run below it and keeps the time of cgroups that have
/// been removed. Its growth, minus the time of its living children and the known time of removed
/// ones, is therefore the time that the units which ended in this interval used after they were
/// last read. It is divided among them by the time for which they were not read, to none of them
/// more than all CPUs could have given it in that time. The rest belongs to no unit.
class DirectoryUse {
 public:
  /// A unit that ended and was not read at its very end.
  struct Lost {
    std::uint64_t ended = 0;    ///< number of the unit among the ended ones
    double unread_seconds = 0;  ///< from its last reading to its end
    double max_cpus = 0;        ///< what it may have used at most
  };

  /// `fresh`: it was just created, so its counter began at 0.
  explicit DirectoryUse(bool fresh = false) : known_(fresh) {}

  /// Starts the sample with the counter of the directory, if it could be read. Call it before the
  /// children are read.
  void begin(std::optional<double> seconds);
  /// Starts the sample of a directory whose parent's counter did not move.
  void begin_quiet();
  /// Whether the counter was read in the last sample, or began in it.
  [[nodiscard]] bool known() const { return known_; }
  /// True if something below the directory ran since the last sample, or may have.
  [[nodiscard]] bool moved() const { return moved_; }
  /// What a child has used since the last sample.
  void add_child(double seconds) { children_ += seconds; }
  /// A child could not be read in this sample, because it is just being removed: the remainder is
  /// kept for the next sample.
  void miss_child() { missed_ = true; }
  /// What a child used is not known, so that nothing can be said of the rest.
  void leave_out_child() { partial_ = true; }
  /// The known use of a unit that ended after the last sample.
  void add_ended(double seconds) { ended_ += seconds; }
  void add_lost(Lost lost);
  /// Adds the known use of a child directory that was removed.
  void take_over(const DirectoryUse& child);
  /// Ends the sample: calls give(ended, seconds) for each unit that is due some of the rest.
  void end(bool usable, const std::function<void(std::uint64_t ended, double seconds)>& give);

  /// Growth of the counter in this sample; nothing if it is not known.
  [[nodiscard]] std::optional<double> growth() const { return growth_; }
  [[nodiscard]] bool has_lost() const { return !lost_.empty(); }
  KeptFile& file() { return file_; }

  static constexpr std::size_t kMaxLost = 20'000;

 private:
  KeptFile file_;
  bool known_ = false;  // last_ holds a value
  double last_ = 0;
  std::optional<double> growth_;
  double children_ = 0;
  double ended_ = 0;
  double carried_ = 0;  // of the last sample
  bool moved_ = true;
  bool missed_ = false;
  bool partial_ = false;
  std::vector<Lost> lost_;
};

}  // namespace ceems::exporter
