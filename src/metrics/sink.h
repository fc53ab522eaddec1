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

/// Collects the samples of one scrape and writes the page. Reuse the object from scrape to scrape:
/// it keeps its buffers, so add() does not allocate once they are large enough. Not thread-safe;
/// each scrape uses its own Sink.
///
/// Families are sorted by name and series by their label values in label-name order. Labels are
/// sorted by name, and empty values are printed. Numbers have the fewest digits that round-trip. A
/// second series with the same name and labels, or the same name with another type or help text, is
/// dropped and counted.
class Sink {
 public:
  Sink();
  ~Sink();
  Sink(Sink&&) noexcept;
  Sink& operator=(Sink&&) noexcept;

  /// Adds one sample. `label_values` must be in the order of desc.label_names (their number is
  /// checked). Invalid UTF-8 and NUL in a value are replaced by U+FFFD, because Prometheus text
  /// parsers take NUL for the end of the page. `desc` is only used during the call.
  void add(const Desc& desc, double value, std::span<const std::string_view> label_values);
  void add(const Desc& desc, double value, std::initializer_list<std::string_view> label_values) {
    add(desc, value, std::span(label_values.begin(), label_values.size()));
  }
  void add(const Desc& desc, double value) {
    add(desc, value, std::span<const std::string_view>{});
  }

  /// Appends the page with everything added since clear() to `out`.
  void render(Exposition exposition, std::string& out);

  /// The number of samples dropped since clear(), as duplicates or for a contradicting type or
  /// help. A family's drops are logged once, until a page has none.
  [[nodiscard]] std::uint64_t dropped() const;
  /// The number of samples kept since clear().
  [[nodiscard]] std::uint64_t samples() const;

  /// Removes all samples but keeps the memory.
  void clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Appends the text of a label value (`quote` is true) or help with a backslash before backslashes,
/// line feeds and, if `quote`, quotation marks.
void append_escaped(std::string& out, std::string_view text, bool quote);

/// Appends `value` as other Prometheus client libraries print it: the fewest digits that
/// round-trip, without exponent for decimal exponents -4 to 5, otherwise d.ddde+NN; NaN, +Inf,
/// -Inf.
void append_number(std::string& out, double value);

}  // namespace ceems::metrics
