#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "statement/document.h"

namespace ceems::api {

/// The last statements that were made, so that files have the numbers of the page that offers them,
/// and a bound on how many are made at once, each of which reads a year. Safe for concurrent use.
class KeptStatements {
 public:
  static constexpr std::chrono::minutes kKept{1};
  static constexpr std::size_t kMaxKept = 4;
  static constexpr std::size_t kMaxTurns = 2;
  using Statement = std::shared_ptr<const statement::Document>;
  /// The right to make one, until it is destroyed.
  using Turn = std::shared_ptr<void>;

  /// `clock` must outlive this.
  explicit KeptStatements(const Clock& clock) : clock_(&clock) {}

  /// Null if there is none that is younger than kKept.
  Statement find(const std::string& key);
  void keep(std::string key, Statement statement);
  /// Null while kMaxTurns are taken. The object outlives its turns.
  Turn take_turn();

 private:
  struct Entry {
    std::string key;
    Clock::SteadyTime until;
    Statement statement;
  };

  const Clock* clock_;
  Mutex mutex_;
  std::vector<Entry> entries_ CEEMS_GUARDED_BY(mutex_);  ///< the oldest first
  std::size_t turns_ CEEMS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ceems::api
