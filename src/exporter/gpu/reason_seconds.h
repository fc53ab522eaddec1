#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu {

/// How long each reason kept the clocks of each GPU below their maximum, counted from reading to
/// reading. A reason that applies at one end of the time between two readings counts for half of
/// it. Not thread-safe.
class ReasonSeconds {
 public:
  /// What happened between readings that are further apart than kMaxIntervals, or kMinGap with
  /// short intervals, is not known and does not count.
  static constexpr int kMaxIntervals = 5;
  static constexpr auto kMinGap = std::chrono::seconds(5);
  static constexpr std::size_t kMaxGpus = 1024;  ///< all GPUs ever seen

  /// `interval`: time between two readings.
  explicit ReasonSeconds(std::chrono::milliseconds interval)
      : max_gap_(std::max<Clock::SteadyTime::duration>(kMaxIntervals * interval, kMinGap)) {}

  /// Takes a reading of all GPUs and sets their `clock_reason_seconds`. The seconds of a lost GPU
  /// stay.
  void advance(std::vector<DeviceState>& devices, Clock::SteadyTime taken);

 private:
  struct Gpu {
    std::optional<Clock::SteadyTime> taken = {};  // of `before`
    std::vector<std::pair<std::string_view, bool>> before = {};
    std::vector<std::pair<std::string_view, double>> seconds = {};
  };
  void count(Gpu& gpu, const DeviceState& device, Clock::SteadyTime taken) const;

  const Clock::SteadyTime::duration max_gap_;
  std::map<std::string, Gpu> gpus_;  // by uuid
};

}  // namespace ceems::exporter::gpu
