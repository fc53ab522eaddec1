#include "tool/db/info.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/strings.h"
#include "base/time/time_zone.h"
#include "store/schema/copying.h"
#include "store/schema/tables.h"
#include "store/sqlite/schema.h"
#include "tool/db/layout.h"
#include "tool/db/progress.h"

namespace ceems::tool::db {
namespace {

using store::kOwnVersion;
using store::sqlite::kCustomStatsVersion;
using store::sqlite::kSchemaVersion;

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

std::int64_t number(const Cell& cell) {
  return parse_int<std::int64_t>(cell.text).value_or(0);
}

Result<> read_clusters(Tables& tables, const std::vector<std::string>& names, Info& info) {
  CEEMS_TRY(columns, tables.column_names("units"));
  const bool moments = contains(columns, "last_updated_at_ts");
  CEEMS_TRY(rows,
            tables.query(fmt::format(
                "SELECT cluster_id, max(resource_manager), count(*),"
                " min(CASE WHEN started_at_ts > 0 THEN started_at_ts END), max(ended_at_ts), {}"
                " FROM units GROUP BY cluster_id ORDER BY cluster_id",
                moments ? "max(last_updated_at_ts)" : "0")));
  for (Row& row : rows) {
    info.clusters.push_back({.id = std::move(row[0].text),
                             .manager = std::move(row[1].text),
                             .units = number(row[2]),
                             .first_start = number(row[3]),
                             .last_end = number(row[4]),
                             .last_update = number(row[5])});
  }
  if (!contains(names, "ceems_watermarks")) {
    return {};
  }
  CEEMS_TRY(marks,
            tables.query("SELECT cluster_id, window_end_ms FROM ceems_watermarks ORDER BY 1"));
  for (Row& row : marks) {
    auto cluster = std::ranges::find(info.clusters, row[0].text, &Info::Cluster::id);
    if (cluster == info.clusters.end()) {
      info.clusters.push_back({.id = row[0].text});
      cluster = info.clusters.end() - 1;
    }
    cluster->watermark = number(row[1]);
  }
  return {};
}

}  // namespace

bool Versions::current() const {
  return reference && *reference >= kSchemaVersion && *reference <= kCustomStatsVersion &&
         own == kOwnVersion && !dirty && !copying;
}

std::string Versions::fits() const {
  if (empty) {
    return "an empty database; an API server creates the tables at its start";
  }
  if (copying) {
    return "an unfinished copy; run the same 'ceems_tool db copy' again to finish it";
  }
  if (!reference) {
    return "not a database of CEEMS: it has no schema_migrations";
  }
  if (dirty && *reference == kCustomStatsVersion) {
    return "marked dirty: the upgrade to version 10 was interrupted; restore a backup, or complete"
           " it by 'ceems_tool db migrate --custom-stats'";
  }
  if (dirty) {
    return "marked dirty: an upgrade was interrupted; restore a backup or repair it by hand";
  }
  if (*reference > kCustomStatsVersion) {
    return "newer than this program knows: made by a later release of CEEMS";
  }
  if (own > kOwnVersion) {
    return "written by a newer version of this program";
  }
  if (*reference < kSchemaVersion) {
    return fmt::format(
        "older than CEEMS 0.10.2; this release upgrades it at the start of an API server or by"
        " 'ceems_tool db migrate'");
  }
  return fmt::format(
      "{}{}", *reference == kSchemaVersion ? "CEEMS 0.10.2 to 0.14" : "CEEMS 0.15 and 0.16",
      own == kOwnVersion ? " and this release"
                         : "; this release upgrades it at the start of an API server or by"
                           " 'ceems_tool db migrate'");
}

Result<Versions> read_versions(Tables& tables) {
  Versions versions;
  CEEMS_TRY(names, tables.table_names());
  versions.empty = names.empty();
  versions.copying = contains(names, store::kCopyTable);
  if (contains(names, "schema_migrations")) {
    CEEMS_TRY(rows, tables.query("SELECT version, dirty FROM schema_migrations"));
    versions.reference = 0;  // migrations never ran
    if (!rows.empty()) {
      const std::string& dirty = rows.front()[1].text;
      versions.reference = number(rows.front()[0]);
      versions.dirty = dirty != "0" && dirty != "f" && dirty != "false";
    }
  }
  if (contains(names, "ceems_schema")) {
    CEEMS_TRY(own, tables.integer("SELECT max(version) FROM ceems_schema"));
    versions.own = own;
  }
  return versions;
}

Result<Info> read_info(Tables& tables) {
  Info info{.database = tables.name(),
            .kind = tables.dialect() == store::Dialect::kSqlite ? "SQLite" : "PostgreSQL"};
  auto started = tables.begin_snapshot();
  auto versions = started ? read_versions(tables) : fail(started.error());
  const auto bytes = versions ? tables.size() : fail(versions.error());
  CEEMS_TRY(names, bytes ? tables.table_names() : fail(bytes.error()));
  info.versions = *versions;
  info.bytes = *bytes;
  for (const std::string& name : names) {
    if (is_administrative(name)) {
      continue;
    }
    std::string quoted = name;
    for (std::size_t at = 0; (at = quoted.find('"', at)) != std::string::npos; at += 2) {
      quoted.insert(at, 1, '"');
    }
    CEEMS_TRY(rows, tables.integer(fmt::format("SELECT count(*) FROM \"{}\"", quoted)));
    info.tables.push_back({.name = name, .rows = rows});
  }
  if (info.versions.reference && contains(names, "units")) {
    CEEMS_TRY(read_clusters(tables, names, info));
  }
  return info;
}

std::string moment_text(std::int64_t ms) {
  return ms == 0 ? "-" : TimeZone().local(ms) + "Z";
}

std::string info_text(const Info& info) {
  const Versions& versions = info.versions;
  std::string out =
      fmt::format("database   {} ({})\nsize       {}\nschema     {}{}{}\nfits       {}\n\n",
                  info.database, info.kind, bytes_text(info.bytes),
                  versions.reference ? fmt::format("version {}", *versions.reference) : "none",
                  versions.own > 0 ? fmt::format(", additions {}", versions.own) : "",
                  versions.dirty ? ", dirty" : "", versions.fits());
  out += fmt::format("{:<22}{:>14}\n", "TABLE", "ROWS");
  for (const Info::Table& table : info.tables) {
    out += fmt::format("{:<22}{:>14}\n", printable(table.name), grouped(table.rows));
  }
  if (info.clusters.empty()) {
    return out;
  }
  out += fmt::format("\n{:<16}{:<11}{:>12}  {:<22}{:<22}{:<22}{}\n", "CLUSTER", "MANAGER", "UNITS",
                     "FIRST START", "LAST END", "LAST UPDATE", "COUNTED UP TO");
  for (const Info::Cluster& one : info.clusters) {
    out += fmt::format("{:<16}{:<11}{:>12}  {:<22}{:<22}{:<22}{}\n", printable(one.id),
                       printable(one.manager), grouped(one.units), moment_text(one.first_start),
                       moment_text(one.last_end), moment_text(one.last_update),
                       moment_text(one.watermark));
  }
  return out;
}

std::string info_json(const Info& info) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object()
      .member("database", info.database)
      .member("kind", info.kind)
      .member("bytes", info.bytes)
      .key("schema");
  json.begin_object().key("version");
  if (info.versions.reference) {
    json.value(*info.versions.reference);
  } else {
    json.value(nullptr);
  }
  json.member("additions", info.versions.own)
      .member("dirty", info.versions.dirty)
      .member("unfinished_copy", info.versions.copying)
      .member("current", info.versions.current())
      .member("fits", info.versions.fits())
      .end_object();
  json.key("tables").begin_object();
  for (const Info::Table& table : info.tables) {
    json.member(table.name, table.rows);
  }
  json.end_object().key("clusters").begin_array();
  for (const Info::Cluster& one : info.clusters) {
    json.begin_object()
        .member("id", one.id)
        .member("manager", one.manager)
        .member("units", one.units)
        .member("first_start_ms", one.first_start)
        .member("last_end_ms", one.last_end)
        .member("last_update_ms", one.last_update)
        .member("watermark_ms", one.watermark)
        .end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

}  // namespace ceems::tool::db
