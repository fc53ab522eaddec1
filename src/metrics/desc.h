#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::metrics {

enum class Type {
  kCounter,
  kGauge,
  kHistogram,  ///< of a Registry only; a Sink does not take it
  kUntyped,    ///< not known: values of other programs
};

/// Describes a family of series: name, help, type and label names. Make it once (at namespace scope
/// or as a collector member), never per sample. The constructor checks the names against the
/// Prometheus data model (https://prometheus.io/docs/concepts/data_model/) with CEEMS_CHECK, so
/// names that come from input must be sanitised first.
struct Desc {
  /// add() takes the values in the order of `label_names`. Output is sorted by name.
  Desc(std::string family,
       std::string help_text,
       Type family_type,
       std::vector<std::string> labels);

  std::string name;
  std::string help;
  Type type;
  std::vector<std::string> label_names;
  std::vector<std::size_t> sorted;  ///< indexes into label_names, sorted by name
};

/// Whether the name has the form [a-zA-Z_:][a-zA-Z0-9_:]*.
bool is_metric_name(std::string_view name);
/// Whether the name has the form [a-zA-Z_][a-zA-Z0-9_]* and is not reserved ("__...").
bool is_label_name(std::string_view name);

/// Makes input usable as part of a metric name or as a stable label value: replaces every run of
/// characters outside 0-9 A-Z a-z _, together with any "_" directly before and after it, by one
/// "_". The result may still start with a digit.
std::string sanitize_name(std::string_view text);

}  // namespace ceems::metrics
