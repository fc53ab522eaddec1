#pragma once

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
  Desc(std::string name, std::string help, Type type, std::vector<std::string> label_names);

  std::string name;
  std::string help;
  Type type;
  std::vector<std::string> label_names;
  std::vector<std::size_t> sorted;  ///< positions in label_names, by name
};

}  // namespace ceems::metrics
