#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ceems::metrics {

/// Counts how many values are at or below fixed bounds, like Prometheus' classic histograms.
/// observe() is safe for concurrent use and never blocks.
class Histogram {
 public:
  /// Bounds for latencies in seconds, from 1 ms to 1 min.
  static std::span<const double> latencies();

  /// `bounds` must be finite and ascending, and outlive the histogram.
  explicit Histogram(std::span<const double> bounds);

  void observe(double value);

  /// Appends the series `name`_bucket, _sum and _count in the text format 0.0.4. `labels` is put
  /// between the braces as it is, e.g. `route="units"`, and may be empty.
  void append(std::string& out, std::string_view name, std::string_view labels) const;

 private:
  std::span<const double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]>
      counts_;  ///< per bucket; the last is above all bounds
  std::atomic<double> sum_{0};
};

/// Appends the HELP and TYPE lines, which come before the histograms of a family.
void append_histogram_header(std::string& out, std::string_view name, std::string_view help);

}  // namespace ceems::metrics
