#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

// The tables ceems_unit_reports and ceems_findings (store/reports.h). Pure functions.

/// Both tables with their indexes, the index of families in ceems_unit_facts, and the queue: units
/// that ended in the last week.
std::string create_reports(Dialect dialect);

/// Queues the report of a unit; again if its end has changed. The values are the cluster, the id,
/// the start and the end.
std::string queue_report_text();

}  // namespace ceems::store
