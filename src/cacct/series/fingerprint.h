#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ceems::cacct {

/// The labels of a time series, sorted by name; the name of the metric is `__name__`.
using SeriesLabels = std::map<std::string, std::string, std::less<>>;

/// 16 hexadecimal digits that identify a time series as in Prometheus: FNV-1a of 64 bits
/// (http://www.isthe.com/chongo/tech/comp/fnv/) over name, 0xFF, value, 0xFF of each label.
std::string fingerprint(const SeriesLabels& labels);

}  // namespace ceems::cacct
