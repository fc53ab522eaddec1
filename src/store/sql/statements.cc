// The statements of the writer, the same for both databases.
#include <fmt/format.h>

#include "store/schema/ended_tables.h"
#include "store/schema/fact_columns.h"
#include "store/schema/report_tables.h"
#include "store/schema/sums_columns.h"
#include "store/schema/table_sql.h"
#include "store/schema/tables.h"
#include "store/sql/session.h"

namespace ceems::store {
namespace {

std::string upsert_people(std::string_view table, std::string_view list) {
  return fmt::format(
      "INSERT INTO {0} (cluster_id,name,uid,resource_manager,{1},tags,last_updated_at)"
      " VALUES (?,?,?,?,?,?,?) ON CONFLICT (cluster_id,name) DO UPDATE SET uid=excluded.uid,"
      "resource_manager=excluded.resource_manager,{1}=excluded.{1},tags=excluded.tags,"
      "last_updated_at=excluded.last_updated_at",
      table, list);
}

}  // namespace

std::string insert_target(WriterStatement statement) {
  switch (statement) {
    case WriterStatement::kInsertUnit:
      return insert_target(kUnits);
    case WriterStatement::kInsertUsage:
      return insert_target(kUsage);
    case WriterStatement::kInsertDay:
      return insert_target(kDailyUsage);
    case WriterStatement::kInsertGapUnit:
      return "ceems_gap_units (gap_id,uuid,started_at,started_at_ts,ended_at_ts,times)";
    case WriterStatement::kInsertSums:
      return fmt::format(
          "ceems_unit_sums (level,span,cluster_id,username,project,groupname,resource_manager,"
          "ended,first_id,num_units,{})",
          sums_columns(kAllMaps));
    default:
      return {};
  }
}

std::string statement_text(WriterStatement statement, int reference) {
  switch (statement) {
    case WriterStatement::kWatermark:
      return "SELECT window_end_ms FROM ceems_watermarks WHERE cluster_id=?";
    case WriterStatement::kSetWatermark:
      return "INSERT INTO ceems_watermarks (cluster_id,window_end_ms) VALUES (?,?)"
             " ON CONFLICT (cluster_id) DO UPDATE SET window_end_ms=excluded.window_end_ms";
    case WriterStatement::kInsertUnit:
      return insert_text(kUnits, reference);
    case WriterStatement::kInsertUsage:
      return insert_text(kUsage, reference);
    case WriterStatement::kInsertDay:
      return insert_text(kDailyUsage, reference);
    case WriterStatement::kInsertGapUnit:
    case WriterStatement::kInsertSums:
      return insert_text(insert_target(statement));
    case WriterStatement::kUpdateUnit:
      return update_text(kUnits, reference);
    case WriterStatement::kDeleteUnit:
      return "DELETE FROM units WHERE id=?";
    case WriterStatement::kFindUsage:
      return find_text(kUsage, reference);
    case WriterStatement::kUpdateUsage:
      return update_text(kUsage, reference);
    case WriterStatement::kFindDay:
      return find_text(kDailyUsage, reference);
    case WriterStatement::kUpdateDay:
      return update_text(kDailyUsage, reference);
    case WriterStatement::kUpsertUser:
      return upsert_people("users", "projects");
    case WriterStatement::kUserNames:
      return "SELECT name FROM users WHERE cluster_id=?";
    case WriterStatement::kDeleteUser:
      return "DELETE FROM users WHERE cluster_id=? AND name=?";
    case WriterStatement::kUpsertProject:
      return upsert_people("projects", "users");
    case WriterStatement::kProjectNames:
      return "SELECT name FROM projects WHERE cluster_id=?";
    case WriterStatement::kDeleteProject:
      return "DELETE FROM projects WHERE cluster_id=? AND name=?";
    case WriterStatement::kFillUnit:
      return update_maps_text(kUnits, reference);
    case WriterStatement::kFillUsage:
      return update_maps_text(kUsage, reference);
    case WriterStatement::kFillDay:
      return update_maps_text(kDailyUsage, reference);
    case WriterStatement::kDeleteSums:
      return "DELETE FROM ceems_unit_sums WHERE level=? AND span=?";
    case WriterStatement::kInsertSpan:
      return "INSERT INTO ceems_unit_spans (level,span) VALUES (?,?) ON CONFLICT DO NOTHING";
    case WriterStatement::kDeleteSpan:
      return "DELETE FROM ceems_unit_spans WHERE level=? AND span=?";
    case WriterStatement::kPutFacts:
      return put_facts_text();
    case WriterStatement::kFillFacts:
      return fill_facts_text();
    case WriterStatement::kDeleteFacts:
      return delete_facts_text();
    case WriterStatement::kQueueReport:
      return queue_report_text();
    case WriterStatement::kQueueEnded:
      return queue_ended_text();
    case WriterStatement::kQueueFilled:
      return queue_filled_text();
  }
  return {};
}

}  // namespace ceems::store
