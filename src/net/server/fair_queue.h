#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <unordered_map>

#include "base/mutex.h"

namespace ceems::net {

/// What became of a job that waited for its turn.
enum class Turn : std::uint8_t {
  kRun,   ///< it is run
  kLate,  ///< dropped: it waited too long
  kGone,  ///< dropped: its client no longer waits
};

/// Jobs that wait for a worker, in one queue for each key, such as the name of a user. take()
/// serves the keys in turn, so a user with many jobs delays another user by one job. Thread-safe.
class FairQueue {
 public:
  /// `limit` is how many jobs of a key may run at once; 0: any number.
  explicit FairQueue(std::size_t limit = 0) : limit_(limit) {}

  /// Called exactly once: by the thread that took the job or dropped it.
  using Job = std::move_only_function<void(Turn)>;
  struct Ticket {
    std::string key;
    std::uint64_t number = 0;
  };

  Ticket add(std::string key, Job job) CEEMS_EXCLUDES(mutex_);
  /// Removes the next job. It is null if none waits whose key may run one more. The queue outlives
  /// the call of the job, after which its key may run another: call take() again then.
  [[nodiscard]] Job take() CEEMS_EXCLUDES(mutex_);
  /// Removes this job. It is null if it was taken before.
  [[nodiscard]] Job remove(const Ticket& ticket) CEEMS_EXCLUDES(mutex_);

 private:
  struct Lane {
    std::string key;
    std::map<std::uint64_t, Job> jobs;  ///< by ticket, so in the order of arrival
  };
  using Lanes = std::list<Lane>;

  void erase(Lanes::iterator lane) CEEMS_REQUIRES(mutex_);
  void ended(const std::string& key) CEEMS_EXCLUDES(mutex_);

  const std::size_t limit_;
  Mutex mutex_;
  std::unordered_map<std::string, std::size_t> running_ CEEMS_GUARDED_BY(mutex_);  ///< with a limit
  Lanes turns_ CEEMS_GUARDED_BY(mutex_);  ///< none is empty; the first one is next
  std::unordered_map<std::string, Lanes::iterator> lanes_ CEEMS_GUARDED_BY(mutex_);
  std::uint64_t last_ CEEMS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ceems::net
