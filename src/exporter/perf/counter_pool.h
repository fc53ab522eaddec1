#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "exporter/perf/events.h"
#include "exporter/perf/kernel.h"

namespace ceems::exporter::perf {

/// The count of each event, by index in all_events().
using Totals = std::vector<std::uint64_t>;

class CounterPool;

/// An open counter, closed by the destructor. Move-only.
class Counter {
 public:
  Counter(CounterPool& pool, int handle, std::size_t event)
      : pool_(&pool), handle_(handle), event_(event) {}
  Counter(Counter&& other) noexcept;
  Counter& operator=(Counter&& other) noexcept;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() { close(); }

  /// Adds the events counted since the last call. A counter that cannot be read adds nothing.
  void add_to(Totals& totals);

 private:
  void close();

  CounterPool* pool_;
  int handle_;
  std::size_t event_;
  Reading last_{};
};

/// Opens counters of the selected events, up to a limit. Must outlive them. Not thread-safe.
class CounterPool {
 public:
  /// `events` are indices into all_events(). `limit` is the maximum number of open counters.
  CounterPool(Kernel& kernel,
              std::vector<std::size_t> events,
              bool exclude_kernel,
              std::size_t limit)
      : kernel_(kernel),
        events_(std::move(events)),
        unsupported_(all_events().size()),
        exclude_kernel_(exclude_kernel),
        left_(limit) {}

  /// Whether enough counters are left for this many targets.
  [[nodiscard]] bool fits(std::size_t targets) const { return targets * events_.size() <= left_; }

  /// Appends a counter for each event that can be counted. On an error nothing is appended: kNoData
  /// (the target is gone), kUnavailable (no counters left), or the reason why none of the events
  /// could be opened. An event that this machine does not support is logged and not tried again.
  Result<> open(const Target& target, std::vector<Counter>& counters);

  [[nodiscard]] std::size_t left() const { return left_; }

 private:
  friend class Counter;
  void log_unsupported(std::size_t event);

  Kernel& kernel_;
  std::vector<std::size_t> events_;
  std::vector<bool> unsupported_;
  bool exclude_kernel_;
  std::size_t left_;
};

/// How many counters one collector may have open: an eighth of the file descriptors that the
/// process may have, at most 65536. Most others are for cgroup files (unit/stat/kept_file.h).
std::size_t default_counter_limit();

}  // namespace ceems::exporter::perf
