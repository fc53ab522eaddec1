#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "gate/selection.h"

namespace ceems::gate {

// VictoriaMetrics refuses queries of more than 16 KiB (-search.maxQueryLen), and it tries a pattern
// of more than 100 words on every value of the label, which takes seconds. It has the parameter
// extra_filters[], which may be repeated: every selector of the request returns only series that
// fulfil one of them (https://docs.victoriametrics.com/#prometheus-querying-api-enhancements).
// Servers that do not know it return series of all units, so ask them first (lb::MatcherSupport).

/// With more units, patterns become slow.
inline constexpr std::size_t kUnitsInPattern = 100;

/// Appends a parameter extra_filters[] for every hundred units, and one for each of the metrics
/// that everybody may see if `selection` has some. `selection` has been widened.
void append_unit_filters(std::string& form,
                         const Selection& selection,
                         const std::set<std::string, std::less<>>& units);

}  // namespace ceems::gate
