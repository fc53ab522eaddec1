#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "store/reports.h"
#include "store/sql/session.h"

namespace ceems::store {

// Writes rows of ceems_unit_reports, ceems_findings and ceems_node_effects. Call the functions in a
// transaction. Errors come from the session.

/// Stores a report with its findings and nodes, and in the facts of the unit which rules have
/// something to say. Returns whether it is final now and was not before, which happens once for the
/// end of a unit: what follows from a final report, such as a mail, belongs here, into the same
/// transaction. A unit that has been purged meanwhile gets no report, and a final report is not
/// replaced.
Result<bool> store_report(Session& session, const ReportRow& report);

/// Stores in its facts what a unit used over its life; without effect if it has none.
Result<> store_strip(Session& session, const UnitStrip& strip);

/// Makes queued and partial reports due at a later time.
Result<> postpone_reports(Session& session, std::span<const ReportKey> keys, std::int64_t due_ms);
/// Deletes reports with their findings, whatever their state.
Result<> drop_reports(Session& session, std::span<const ReportKey> keys);

/// Deletes at most `limit` reports of units that ended before the cutoff, and their findings.
/// Returns how many it deleted.
Result<std::int64_t> purge_some_reports(Session& session,
                                        std::int64_t cutoff_ms,
                                        std::int64_t limit);
/// Deletes rows of ceems_node_effects of units that ended before the cutoff.
Result<> purge_effects(Session& session, std::int64_t cutoff_ms);
/// Deletes the reports and findings of units whose rows in `units` fulfil the condition.
Result<> purge_reports_of(Session& session, const Sql& units);

}  // namespace ceems::store
