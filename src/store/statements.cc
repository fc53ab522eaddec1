// The statements of the writer. Both data bases take them as they are.
#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "store/schema/sums_columns.h"
#include "store/session.h"
#include "store/unit_change.h"

namespace ceems::store {
namespace {

/// "total_time_seconds=?,avg_cpu_usage=?,...,ceems_weights=?"
std::string map_assignments() {
  std::string text;
  for (const std::string_view column : split(kMapNames, ',')) {
    text += fmt::format("{}=?,", column);
  }
  return text + fmt::format("{}=?", kWeightsColumn);
}

std::string fill(std::string_view table) {
  return fmt::format("UPDATE {} SET {} WHERE id=?", table, map_assignments());
}

std::string parameters(int count) {
  std::string text = "?";
  for (int i = 1; i < count; ++i) {
    text += ",?";
  }
  return text;
}

std::string find_usage(std::string_view table, std::string_view day) {
  return fmt::format(
      "SELECT id,num_units,num_updates,{},{} FROM {} WHERE cluster_id=? AND username=? AND "
      "project=?{}",
      kMapNames, kWeightsColumn, table, day);
}

std::string usage_target(std::string_view table) {
  return fmt::format(
      "{} (cluster_id,username,project,resource_manager,groupname,num_units,num_updates,"
      "last_updated_at,last_updated_at_ts,{},{})",
      table, kMapNames, kWeightsColumn);
}

/// For as many values as the target has columns.
std::string insert(WriterStatement statement) {
  const std::string target = insert_target(statement);
  return fmt::format("INSERT INTO {} VALUES ({})", target,
                     parameters(1 + static_cast<int>(std::ranges::count(target, ','))));
}

std::string update_usage(std::string_view table) {
  return fmt::format(
      "UPDATE {} SET num_units=?,num_updates=?,last_updated_at=?,last_updated_at_ts=?,{}"
      " WHERE id=?",
      table, map_assignments());
}

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
      return fmt::format(
          "units (cluster_id,uuid,resource_manager,name,project,groupname,username,created_at,"
          "created_at_ts,started_at,started_at_ts,ended_at,ended_at_ts,elapsed,state,allocation,"
          "tags,ignore,num_updates,last_updated_at,last_updated_at_ts,{},{})",
          kMapNames, kWeightsColumn);
    case WriterStatement::kInsertUsage:
      return usage_target("usage");
    case WriterStatement::kInsertDay:
      return usage_target("daily_usage");
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

std::string statement_text(WriterStatement statement) {
  switch (statement) {
    case WriterStatement::kWatermark:
      return "SELECT window_end_ms FROM ceems_watermarks WHERE cluster_id=?";
    case WriterStatement::kSetWatermark:
      return "INSERT INTO ceems_watermarks (cluster_id,window_end_ms) VALUES (?,?)"
             " ON CONFLICT (cluster_id) DO UPDATE SET window_end_ms=excluded.window_end_ms";
    case WriterStatement::kInsertUnit:
    case WriterStatement::kInsertUsage:
    case WriterStatement::kInsertDay:
    case WriterStatement::kInsertGapUnit:
    case WriterStatement::kInsertSums:
      return insert(statement);
    case WriterStatement::kUpdateUnit:
      return fmt::format(
          "UPDATE units SET name=?,project=?,groupname=?,username=?,created_at=?,created_at_ts=?,"
          "started_at=?,started_at_ts=?,ended_at=?,ended_at_ts=?,elapsed=?,state=?,allocation=?,"
          "tags=?,ignore=?,num_updates=?,last_updated_at=?,last_updated_at_ts=?,{} WHERE id=?",
          map_assignments());
    case WriterStatement::kDeleteUnit:
      return "DELETE FROM units WHERE id=?";
    case WriterStatement::kFindUsage:
      return find_usage("usage", "");
    case WriterStatement::kUpdateUsage:
      return update_usage("usage");
    case WriterStatement::kFindDay:
      return find_usage("daily_usage", " AND last_updated_at=?");
    case WriterStatement::kUpdateDay:
      return update_usage("daily_usage");
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
      return fill("units");
    case WriterStatement::kFillUsage:
      return fill("usage");
    case WriterStatement::kFillDay:
      return fill("daily_usage");
    case WriterStatement::kDeleteSums:
      return "DELETE FROM ceems_unit_sums WHERE level=? AND span=?";
    case WriterStatement::kInsertSpan:
      return "INSERT INTO ceems_unit_spans (level,span) VALUES (?,?) ON CONFLICT DO NOTHING";
    case WriterStatement::kDeleteSpan:
      return "DELETE FROM ceems_unit_spans WHERE level=? AND span=?";
  }
  return {};
}

}  // namespace ceems::store
