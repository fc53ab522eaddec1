#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "metrics/desc.h"

namespace ceems::metrics {

enum class Exposition {
  kText,        ///< Prometheus text 0.0.4
  kOpenMetrics  ///< OpenMetrics 1.0.0
};

/// Takes the samples of one scrape and writes the page. Kept from scrape to scrape: buffers are
/// reused, so in the steady state add() does not allocate. Not thread-safe; one scrape uses one
/// Sink.
///
/// Rules: families by name, series by label values in label-name order;
/// labels sorted by name, empty values printed; shortest numbers that round-trip; a second series
/// with the same name and labels, or the same name with another type or help, is dropped and
/// counted. NUL in a label value is replaced too, because text parsers of Prometheus end there.
class Sink {
 public:
  Sink();
  ~Sink();
  Sink(Sink&&) noexcept;
  Sink& operator=(Sink&&) noexcept;

  /// One sample. `label_values` are in the order of desc.label_names (checked); invalid UTF-8 in a
  /// value is replaced by U+FFFD. `desc` is only used during the call.
  void add(const Desc& desc, double value, std::span<const std::string_view> label_values);
  void add(const Desc& desc, double value, std::initializer_list<std::string_view> label_values) {
    add(desc, value, std::span(label_values.begin(), label_values.size()));
  }
  void add(const Desc& desc, double value) {
    add(desc, value, std::span<const std::string_view>{});
  }

  /// Appends the page of everything added since clear() to `out`.
  void render(Exposition exposition, std::string& out);

  /// Samples dropped as duplicates or for a contradicting type or help since clear(). Logged once
  /// per family until a page without drops.
  [[nodiscard]] std::uint64_t dropped() const;
  /// Samples kept since clear().
  [[nodiscard]] std::uint64_t samples() const;

  /// Forgets the samples, keeps the memory.
  void clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Appends `value` as Prometheus clients of other languages print it: shortest digits that
/// round-trip, plain for decimal exponents -4...5, else d.ddde+NN; NaN, +Inf, -Inf.
void append_number(std::string& out, double value);

}  // namespace ceems::metrics
