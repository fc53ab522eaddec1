#pragma once

#include <string>
#include <vector>

#include "api/endpoints/endpoint.h"
#include "api/tsdb/series.h"

namespace ceems::api {

/// An answer that is a list of the lines of charts.
DataSchema lines_of_charts();

/// The lines as such a list, of {name, unit, points}.
std::string series_json(const std::vector<Series>& all);

}  // namespace ceems::api
