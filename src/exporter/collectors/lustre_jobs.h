#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <re2/re2.h>

#include "base/result.h"
#include "host/lustre.h"

namespace ceems::exporter {

/// The operations by which a job's requests to a target are counted.
enum class LustreOperation : std::size_t {
  kRead,
  kWrite,
  kOpen,
  kClose,
  kGetattr,
  kSetattr,
  kCreate,  ///< create, mknod, mkdir, symlink, link
  kUnlink,  ///< unlink, rmdir, destroy
  kRename,
  kSync,
  kOther,
};
inline constexpr std::array<std::string_view, 11> kLustreOperations{
    "read",   "write",  "open",   "close", "getattr", "setattr",
    "create", "unlink", "rename", "sync",  "other"};

struct LustreJobValues {
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t microseconds = 0;  ///< that the targets took, as far as Lustre lists times
  std::array<std::uint64_t, kLustreOperations.size()> operations{};
};

/// What one job, or one ID that is not of a job, did to the targets of a file system on this
/// server.
struct LustreJobSums {
  std::string filesystem;
  bool metadata = false;  ///< on metadata targets
  std::string unit;       ///< ID of the unit; empty if the text is not of a unit
  std::string text;       ///< the ID as Lustre has it if it is not of a unit; otherwise empty
  LustreJobValues values;
};

/// Counters of jobs over all targets of a server. Lustre removes a job from each target's list some
/// time after the job's last request there, and starts at 0 if the job returns, so a plain sum of
/// the lists would fall, which queries take for a restart. Here only increases are added.
///
/// Job IDs are chosen by jobs, so the number of series is bounded: IDs beyond `max_jobs`, and IDs
/// that host::is_lustre_job_id() refuses, are summed as "other" of their file system. IDs that are
/// not of units, such as names of processes, get at most half of the places, so that they cannot
/// crowd out the jobs. When a place becomes free, the next ID that still exists gets it, with the
/// counters from then on.
/// Not thread-safe.
class LustreJobs {
 public:
  /// What is remembered at most, in IDs times targets; more are not counted at all.
  static constexpr std::size_t kMaxRemembered = 100'000;

  /// `unit` matches the whole job ID of a unit, and its first group is the ID of the unit.
  LustreJobs(std::size_t max_jobs, std::unique_ptr<const RE2> unit);

  /// Starts reading the lists of all targets again.
  void begin();
  /// Adds the list of one target, whose directory has this name. `key` distinguishes the target. An
  /// error of the list is returned, and everything that is valid in it counts.
  Result<> add(const std::string& key, const host::LustreTarget& target, std::string_view list);
  /// Says that the list of the target could not be read, so that its jobs are not taken for gone.
  void keep(const std::string& key);
  /// Removes targets and jobs that are gone.
  void end();

  /// Calls `use` for each job that has series, in no order.
  void each(const std::function<void(const LustreJobSums&)>& use) const;
  /// Calls `use` for the sums of all others by file system and kind of target. Their `text` is
  /// "other".
  void each_other(const std::function<void(const LustreJobSums&)>& use) const;
  /// IDs that have series of their own.
  [[nodiscard]] std::size_t shown() const { return shown_; }
  /// IDs that exist and are counted in "other".
  [[nodiscard]] std::size_t left_out() const { return groups_.size() - shown_ + refused_; }
  /// Entries of lists that were not counted at all.
  [[nodiscard]] std::size_t not_counted() const { return not_counted_; }

 private:
  struct Group {
    LustreJobSums sums;
    bool shown = false;
    std::size_t entries = 0;  ///< lists that have it
  };
  struct Entry {
    LustreJobValues last;
    Group* group = nullptr;  ///< null: counted in "other" only
    std::uint64_t round = 0;
  };
  struct Target {
    std::unordered_map<std::string, Entry> jobs;
    LustreJobSums* other = nullptr;
    std::uint64_t round = 0;
    bool complete = false;  ///< in this round, its list was read without an error
  };

  Group* group_of(const host::LustreTarget& target, std::string_view id);
  void drop(const Entry& entry);
  void show_if_free(Group& group);
  void count(Target& target, const host::LustreTarget& of, const host::LustreJob& job);

  std::size_t max_jobs_;
  std::unique_ptr<const RE2> unit_;
  std::uint64_t round_ = 0;
  std::map<std::string, Target> targets_;
  std::unordered_map<std::string, Group> groups_;
  std::map<std::pair<std::string, bool>, LustreJobSums> others_;
  std::size_t remembered_ = 0;
  std::size_t shown_ = 0;
  std::size_t shown_texts_ = 0;  // of them, those that are not of units
  std::size_t refused_ = 0;      // entries without a group
  std::size_t not_counted_ = 0;
  std::string key_;
};

}  // namespace ceems::exporter
