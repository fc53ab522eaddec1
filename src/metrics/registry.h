#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/mutex.h"
#include "metrics/desc.h"
#include "metrics/histogram.h"
#include "metrics/process.h"
#include "metrics/sink.h"

namespace ceems::metrics {

/// Only goes up. Safe for concurrent use and never blocks.
class Counter {
 public:
  void add(std::uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Goes up and down. Safe for concurrent use and never blocks.
class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double difference) { value_.fetch_add(difference, std::memory_order_relaxed); }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// The series of one metric name: one Counter, Gauge or Histogram for each combination of label
/// values. Safe for concurrent use.
template <typename Metric>
class Family {
 public:
  /// `bounds` are the upper bounds of a histogram's buckets and must outlive the family.
  explicit Family(Desc desc, std::span<const double> bounds = {});

  [[nodiscard]] const std::string& name() const { return desc_.name; }

  /// The series with these values, which must be in the order of the label names. It is created,
  /// and appears on the page, with the first call, and stays valid as long as the family. Takes a
  /// lock and searches: where the values are known beforehand, keep the reference.
  Metric& with(std::initializer_list<std::string_view> label_values) CEEMS_EXCLUDES(mutex_);

  /// Leaves series out of the page while their value is 0. Not for histograms.
  Family& hide_zeros() CEEMS_EXCLUDES(mutex_);

 private:
  friend class Registry;
  struct Series {
    Series(std::span<const std::string_view> values, std::span<const double> bounds);
    std::vector<std::string> label_values;
    Metric metric;
  };
  void add_to(Sink& sink) const
    requires(!std::is_same_v<Metric, Histogram>);
  void append_to(std::string& page) const
    requires(std::is_same_v<Metric, Histogram>);

  const Desc desc_;
  const std::span<const double> bounds_;
  mutable Mutex mutex_;
  std::deque<Series> series_ CEEMS_GUARDED_BY(mutex_);
  bool hide_zeros_ CEEMS_GUARDED_BY(mutex_) = false;
};

/// The metrics that a program keeps about itself: its build, its families and its process. Safe for
/// concurrent use. Asking again for a family of the same name returns the one that exists.
/// References to families stay valid as long as the registry.
class Registry {
 public:
  /// `program` is the first part of "PROGRAM_build_info"; `process` names the program in the help
  /// texts of the process metrics, e.g. "the exporter".
  Registry(std::string_view program, std::string_view process);

  /// Creates the family, or returns the one that exists.
  Family<Counter>& counters(std::string name, std::string help, std::vector<std::string> labels)
      CEEMS_EXCLUDES(mutex_);
  Family<Gauge>& gauges(std::string name, std::string help, std::vector<std::string> labels)
      CEEMS_EXCLUDES(mutex_);
  /// `bounds` are as for Histogram.
  Family<Histogram>& histograms(std::string name,
                                std::string help,
                                std::vector<std::string> labels,
                                std::span<const double> bounds) CEEMS_EXCLUDES(mutex_);

  /// A metric without labels.
  Counter& counter(std::string name, std::string help);
  Gauge& gauge(std::string name, std::string help);

  /// Adds "PROGRAM_build_info": the value is always 1, the version is in the labels. Labels that
  /// only apply to Go programs are empty.
  void add_build_info(Sink& sink) const;
  /// Adds the build information and everything but histograms.
  void add_to(Sink& sink) CEEMS_EXCLUDES(mutex_);

  /// Appends the whole page in the text format 0.0.4: everything of add_to() and what `add_more`
  /// adds, sorted by name, then the histograms in the order in which they were created. `add_more`
  /// must not use the registry.
  void append_page(std::string& out, const std::function<void(Sink&)>& add_more = {})
      CEEMS_EXCLUDES(mutex_);

 private:
  void add_all(Sink& sink) CEEMS_REQUIRES(mutex_);

  const Desc build_info_;
  Mutex mutex_;
  std::deque<Family<Counter>> counters_ CEEMS_GUARDED_BY(mutex_);
  std::deque<Family<Gauge>> gauges_ CEEMS_GUARDED_BY(mutex_);
  std::deque<Family<Histogram>> histograms_ CEEMS_GUARDED_BY(mutex_);
  ProcessMetrics process_ CEEMS_GUARDED_BY(mutex_);
  Sink sink_ CEEMS_GUARDED_BY(mutex_);  ///< kept from page to page for its memory
};

}  // namespace ceems::metrics
