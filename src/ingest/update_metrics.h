#pragma once

#include "ingest/update_loop.h"
#include "metrics/sink.h"

namespace ceems::ingest {

/// What the update loop did, as metrics; docs/api/metrics.md has the table.
void add_update_figures(metrics::Sink& sink, const UpdateFigures& figures);

}  // namespace ceems::ingest
