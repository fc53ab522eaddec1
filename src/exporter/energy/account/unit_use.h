#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exporter/unit/unit.h"

namespace ceems::exporter::energy {

/// What a unit did on one GPU or instance since it was first seen there.
struct GpuUse {
  std::string device;    ///< uuid of the GPU
  std::string instance;  ///< number of the instance; empty for a whole GPU
  std::string index;
  std::optional<double> busy_seconds = {};
  std::optional<double> sm_seconds = {};  ///< integral of the part of the SMs that worked for it
  std::optional<double> memory_peak_bytes = {};
};

/// How a unit used its resources since it was first seen (use_meter.h). Unknown values are absent.
class UnitUse {
 public:
  /// Takes the memory of a snapshot.
  void take(const UnitStats& stats);

  [[nodiscard]] std::optional<double> memory_shmem_bytes() const { return shmem_bytes_; }
  /// The most memory without file cache.
  [[nodiscard]] std::optional<double> memory_peak_bytes() const;
  /// The highest mean number of busy CPUs in UseMeter::kMeanSeconds.
  [[nodiscard]] std::optional<double> cpu_max() const { return cpu_max_; }
  [[nodiscard]] std::optional<double> idle_seconds() const { return idle_seconds_; }
  [[nodiscard]] const std::vector<GpuUse>& gpus() const { return gpus_; }

 private:
  friend class UseMeter;
  /// CPU time at one time, both in seconds since the unit was first seen.
  struct Mark {
    double time = 0;
    double cpu = 0;
  };

  std::optional<double> shmem_bytes_;
  std::uint64_t peak_bytes_ = 0;
  double unchecked_cpu_ = 0;         // CPU-seconds since its memory was looked at
  std::uint64_t charged_bytes_ = 0;  // highest charge for which the peak is known

  std::array<Mark, 12> marks_{};  // a ring
  std::size_t mark_count_ = 0;
  Mark now_;
  std::optional<double> cpu_max_;

  std::optional<double> idle_seconds_;
  bool seen_ = false;
  double unsettled_ = 0;  // seconds that are idle if there was no I/O
  // The last reading of I/O: bytes, or seconds in which something waited for it.
  std::optional<double> io_;
  bool io_in_bytes_ = false;
  // Where traffic is counted: seconds that are idle if the next note of it says so.
  double unconfirmed_ = 0;
  std::optional<double> traffic_;
  std::uint64_t traffic_notes_ = 0;
  double io_age_ = 0;  // seconds since, without those in which the unit did nothing at all

  std::vector<GpuUse> gpus_;
  double gpu_busy_ = 0;       // of the last reading, the busiest one
  bool gpu_unknown_ = false;  // at least one in the last reading
};

}  // namespace ceems::exporter::energy
