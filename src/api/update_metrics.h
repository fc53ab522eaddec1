#pragma once

#include "api/update_loop.h"
#include "metrics/sink.h"

namespace ceems::api {

/// What the update loop did, as metrics; docs/api/metrics.md has the table.
void add_update_figures(metrics::Sink& sink, const UpdateFigures& figures);

}  // namespace ceems::api
