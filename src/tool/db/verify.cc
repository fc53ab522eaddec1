#include "tool/db/verify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"
#include "store/json.h"
#include "store/schema/tables.h"
#include "store/sqlite/schema.h"
#include "tool/db/info.h"
#include "tool/db/layout.h"

namespace ceems::tool::db {
namespace {

constexpr std::size_t kShown = 20;

void add(Findings::Check& check, std::string line) {
  ++check.faults;
  if (check.lines.size() < kShown) {
    check.lines.push_back(std::move(line));
  }
}

/// A fault of the database if a check cannot read it.
void add_error(Findings::Check& check, const Error& error) {
  add(check, error.message);
}

/// SQLite's messages, except "ok".
void check_file(Tables& tables, Findings::Check& check, Progress& progress) {
  progress.show("checking all pages and indexes", 0, 1, "checks");
  // A file that was cut off is found here too: SQLite knows how many pages it had.
  auto cursor = tables.stream("PRAGMA integrity_check(1000)");
  Row row;
  while (cursor) {
    const auto more = (*cursor)->next(row);
    if (!more) {
      add_error(check, more.error());
      return;
    }
    if (!*more) {
      break;
    }
    for (const std::string_view line : split(row.front().text, '\n')) {
      if (line != "ok" && !line.empty()) {
        add(check, printable(line, 256));
      }
    }
  }
  if (!cursor) {
    add_error(check, cursor.error());
  }
}

/// Returns the tables that can be read: those that have all columns of their version.
std::vector<TableLayout> check_schema(Tables& tables, Findings& findings, Findings::Check& check) {
  const auto versions = read_versions(tables);
  if (!versions) {
    add_error(check, versions.error());
    return {};
  }
  if (!versions->current()) {
    const bool usable = versions->reference && !versions->dirty && !versions->copying &&
                        versions->reference <= store::sqlite::kCustomStatsVersion &&
                        versions->own <= store::kOwnVersion;
    if (!usable) {
      add(check, versions->fits());
      return {};
    }
    findings.notes.push_back(versions->fits());
  }
  auto layout = versions->own == store::kOwnVersion
                    ? current_layout(versions->reference == store::sqlite::kCustomStatsVersion)
                    : reference_layout(static_cast<int>(versions->reference.value_or(0)));
  if (!layout) {
    add_error(check, layout.error());
    return {};
  }
  std::vector<TableLayout> complete;
  for (TableLayout& table : *layout) {
    const auto missing = missing_parts(tables, {table});
    if (!missing) {
      add_error(check, missing.error());
      continue;
    }
    bool readable = true;
    for (const std::string& line : *missing) {
      add(check, line);
      readable = readable && line.find(" lacks the index ") != std::string::npos;
    }
    if (readable) {
      complete.push_back(std::move(table));
    }
  }
  return complete;
}

/// What is wrong with a value; empty: nothing.
std::string_view fault_of(const Column& column, const Cell& cell) {
  if (cell.null) {
    return {};
  }
  if (column.integer) {
    return parse_int<std::int64_t>(cell.text) ? "" : "not an integer";
  }
  std::string ignored;
  switch (column.content) {
    case Content::kText:
      return {};
    case Content::kMetrics:
      return store::parse_metric_map(cell.text) ? "" : "not a JSON object of numbers";
    case Content::kObject:
      return cell.text.empty() || cell.text == "null" || append_json_object(ignored, cell.text)
                 ? ""
                 : "not a JSON object";
    case Content::kList:
      return store::parse_string_list(cell.text) ? "" : "not a JSON array";
  }
  return {};
}

/// Totals of one cluster that can be compared between tables: of numbers that are only added up.
using Totals = std::map<std::string, double>;
using ClusterTotals = std::map<std::string, Totals>;

/// The columns that are added up, and that of the cluster.
struct Summed {
  explicit Summed(const TableLayout& table) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const std::string& name = table.columns[i].name;
      if (name == "cluster_id") {
        cluster = i;
      } else if (name == "num_units") {
        units = i;
      } else if (table.columns[i].content == Content::kMetrics && name.starts_with("total_")) {
        totals.push_back(i);
      }
    }
  }
  std::size_t cluster = 0;
  std::size_t units = 0;  ///< 0: each row is one unit
  std::vector<std::size_t> totals;
};

void add_up(const TableLayout& table, const Summed& columns, const Row& row, ClusterTotals& all) {
  Totals& sums = all[row[columns.cluster].text];
  sums["units"] +=
      columns.units == 0
          ? 1.0
          : static_cast<double>(parse_int<std::int64_t>(row[columns.units].text).value_or(0));
  for (const std::size_t column : columns.totals) {
    const auto map = store::parse_metric_map(row[column].text);
    if (!map) {
      continue;  // reported already
    }
    for (const auto& [name, value] : *map) {
      sums[fmt::format("{}.{}", table.columns[column].name, name)] += value;
    }
  }
}

void check_values(Tables& tables,
                  const TableLayout& table,
                  std::int64_t all,
                  ClusterTotals* sums,
                  Findings::Check& check,
                  Progress& progress) {
  const Summed summed(table);
  const std::string what = fmt::format("reading {}", table.name);
  auto cursor = tables.stream(fmt::format("SELECT {} FROM {}", table.names(), table.name));
  Row row;
  std::int64_t count = 0;
  while (cursor) {
    const auto more = (*cursor)->next(row);
    if (!more) {
      add_error(check, Error(more.error()).with_context(table.name));
      return;
    }
    if (!*more) {
      return;
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string_view fault = fault_of(table.columns[i], row[i]);
      if (!fault.empty()) {
        std::string key;
        for (std::size_t k = 0; k < table.key_size; ++k) {
          key += fmt::format(" {}={}", table.columns[table.order[k]].name,
                             printable(row[table.order[k]].text));
        }
        add(check, fmt::format("{}{}: {}: {}", table.name, key, table.columns[i].name, fault));
      }
    }
    if (sums != nullptr) {
      add_up(table, summed, row, *sums);
    }
    constexpr std::int64_t kSeldom = 1024;
    if (++count % kSeldom == 0) {
      progress.show(what, count, all, "rows");
    }
  }
  add_error(check, Error(cursor.error()).with_context(table.name));
}

/// `part` is at most the whole, up to rounding.
void compare_sums(std::string_view part_name,
                  const ClusterTotals& part,
                  const ClusterTotals& whole,
                  Findings::Check& check) {
  constexpr double kRounding = 1e-6;
  for (const auto& [cluster, sums] : part) {
    const auto found = whole.find(cluster);
    for (const auto& [name, value] : sums) {
      double usage = 0;
      if (found != whole.end()) {
        const auto at = found->second.find(name);
        usage = at == found->second.end() ? 0 : at->second;
      }
      if (value > usage + kRounding * std::max(1.0, std::abs(usage))) {
        add(check, fmt::format("cluster {}: {}: {} has {}, more than usage, which has {}",
                               printable(cluster), printable(name), part_name, value, usage));
      }
    }
  }
}

void check_sums_of_spans(Tables& tables,
                         const std::vector<TableLayout>& layout,
                         Findings& findings,
                         Findings::Check& check,
                         Progress& progress) {
  for (const char* name : {"units", "daily_usage", "ceems_unit_sums", "ceems_unit_spans"}) {
    if (std::ranges::find(layout, name, &TableLayout::name) == layout.end()) {
      findings.notes.emplace_back(
          "sums over time were not compared: the tables are not complete, or of an older version");
      return;
    }
  }
  // The reference does not set this column, and an API server of ours then forgets all sums.
  const auto foreign = tables.integer(
      "SELECT (SELECT count(*) FROM units WHERE last_updated_at_ts IS NULL) +"
      " (SELECT count(*) FROM daily_usage WHERE last_updated_at_ts IS NULL)");
  if (foreign.value_or(0) > 0) {
    findings.notes.emplace_back(
        "sums over time were not compared: CEEMS 0.10.2 has written to the database since; the "
        "next start of the API server replaces them");
    return;
  }
  auto done = foreign ? check_spans(tables, progress,
                                    [&check](std::string line) { add(check, std::move(line)); })
                      : Result<>(fail(foreign.error()));
  if (!done) {
    add_error(check, done.error());
  }
}

}  // namespace

bool Findings::good() const {
  return std::ranges::all_of(checks, [](const Check& check) { return check.faults == 0; });
}

Findings verify(Tables& tables, Progress& progress) {
  Findings findings{.database = tables.name()};
  const bool sqlite = tables.dialect() == store::Dialect::kSqlite;
  Findings::Check file{.name = "file", .about = "pages and indexes"};
  Findings::Check schema{.name = "schema", .about = "versions, tables, columns, indexes"};
  Findings::Check values{.name = "values", .about = "JSON texts and numbers"};
  Findings::Check sums{.name = "sums", .about = "usage against units and days"};
  Findings::Check spans{.name = "spans", .about = "sums over time against units and days"};
  if (auto begun = tables.begin_snapshot(); !begun) {
    add_error(sqlite ? file : schema, begun.error());
  } else if (sqlite) {
    check_file(tables, file, progress);
  }
  const std::vector<TableLayout> layout = check_schema(tables, findings, schema);
  std::map<std::string, ClusterTotals> of_tables;
  bool own = false;
  for (const TableLayout& table : layout) {
    own = own || table.name == "ceems_watermarks";
    const bool summed =
        table.name == "units" || table.name == "usage" || table.name == "daily_usage";
    const auto rows = tables.integer(fmt::format("SELECT count(*) FROM {}", table.name));
    check_values(tables, table, rows.value_or(0), summed ? &of_tables[table.name] : nullptr, values,
                 progress);
  }
  if (of_tables.contains("usage") && own) {
    compare_sums("units", of_tables["units"], of_tables["usage"], sums);
    compare_sums("daily_usage", of_tables["daily_usage"], of_tables["usage"], sums);
  } else {
    findings.notes.emplace_back(
        "sums were not compared: the tables are not complete, or of an older version");
  }
  check_sums_of_spans(tables, layout, findings, spans, progress);
  progress.clear();
  if (sqlite) {
    findings.checks.push_back(std::move(file));
  }
  findings.checks.push_back(std::move(schema));
  findings.checks.push_back(std::move(values));
  findings.checks.push_back(std::move(sums));
  findings.checks.push_back(std::move(spans));
  return findings;
}

std::string findings_text(const Findings& findings) {
  std::string out = fmt::format("{}\n", findings.database);
  for (const Findings::Check& check : findings.checks) {
    out += fmt::format("  {:<8}{}  ({})\n", check.name,
                       check.faults == 0   ? "ok"
                       : check.faults == 1 ? "1 fault"
                                           : fmt::format("{} faults", check.faults),
                       check.about);
    for (const std::string& line : check.lines) {
      out += fmt::format("    {}\n", line);
    }
    if (const auto shown = static_cast<std::int64_t>(check.lines.size()); check.faults > shown) {
      out += fmt::format("    and {} more\n", check.faults - shown);
    }
  }
  for (const std::string& note : findings.notes) {
    out += fmt::format("  note    {}\n", note);
  }
  return out;
}

std::string findings_json(const Findings& findings) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().member("database", findings.database).member("good", findings.good());
  json.key("checks").begin_array();
  for (const Findings::Check& check : findings.checks) {
    json.begin_object().member("check", check.name).member("faults", check.faults);
    json.key("lines").begin_array();
    for (const std::string& line : check.lines) {
      json.value(line);
    }
    json.end_array().end_object();
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& note : findings.notes) {
    json.value(note);
  }
  json.end_array().end_object();
  return out + "\n";
}

}  // namespace ceems::tool::db
