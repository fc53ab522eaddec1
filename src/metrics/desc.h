#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::metrics {

enum class Type { kCounter, kGauge };

/// What a family of series is: name, help, type and label names. Made once (namespace scope or
/// collector member), never per sample. Names are checked by the constructor against the Prometheus
/// data model (https://prometheus.io/docs/concepts/data_model/): CEEMS_CHECK on a bad one, so names
/// that come from input must be sanitised first.
struct Desc {
  /// `label_names` is the order in which add() takes the values; output is sorted by name.
  Desc(std::string family,
       std::string help_text,
       Type family_type,
       std::vector<std::string> labels);

  std::string name;
  std::string help;
  Type type;
  std::vector<std::string> label_names;
  std::vector<std::size_t> sorted;  ///< positions in label_names, by name
};

/// [a-zA-Z_:][a-zA-Z0-9_:]*
bool is_metric_name(std::string_view name);
/// [a-zA-Z_][a-zA-Z0-9_]*, not reserved ("__...").
bool is_label_name(std::string_view name);

/// Text from input as part of a metric name or as a stable label value: every run of characters
/// outside 0-9 A-Z a-z _ becomes one "_" together with the "_" right before and behind it. May
/// still start with a digit.
std::string sanitize_name(std::string_view text);

}  // namespace ceems::metrics
