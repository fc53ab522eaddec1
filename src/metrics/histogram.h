#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ceems::metrics {

/// How often values lay below fixed bounds, as Prometheus' classic histograms count them.
/// observe() is safe for concurrent use and never waits.
class Histogram {
 public:
  /// Bounds of latencies in seconds, 1 ms to 1 min.
  static std::span<const double> latencies();

  /// `bounds` are finite, ascending, and live longer than the histogram.
  explicit Histogram(std::span<const double> bounds);

  void observe(double value);

  /// Appends the series `name`_bucket, _sum and _count in the text format 0.0.4; `labels` are ready
  /// to stand between the braces, e.g. `route="units"`, or empty.
  void append(std::string& out, std::string_view name, std::string_view labels) const;

 private:
  std::span<const double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;  ///< of each bucket, and of those above
  std::atomic<double> sum_{0};
};

/// Appends the lines HELP and TYPE that go before the histograms of a family.
void append_histogram_header(std::string& out, std::string_view name, std::string_view help);

}  // namespace ceems::metrics
