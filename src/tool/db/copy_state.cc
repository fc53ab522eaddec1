#include "tool/db/copy_state.h"

#include <array>
#include <utility>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"
#include "store/schema/copying.h"

namespace ceems::tool::db {
namespace {

/// Runs statements in one transaction.
Result<> together(Tables& tables, const std::string& sql) {
  auto done = tables.execute("BEGIN");
  if (done) {
    done = tables.execute(sql);  // rolls back after an error
  }
  return done ? tables.execute("COMMIT") : done;
}

std::string sql_text(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    result += c;
    if (c == '\'') {
      result += c;
    }
  }
  return result + "'";
}

}  // namespace

Result<bool> CopyState::exists() {
  return tables_->has_table(store::kCopyTable);
}

Result<std::optional<std::string>> CopyState::value(std::string_view kind, std::string_view name) {
  CEEMS_TRY(rows, tables_->query(fmt::format("SELECT value FROM {} WHERE kind = ? AND name = ?",
                                             store::kCopyTable),
                                 {{.text = std::string(kind)}, {.text = std::string(name)}}));
  return rows.empty() ? std::nullopt : std::optional(rows.front().front().text);
}

Result<> CopyState::set(std::string_view kind, std::string_view name, const std::string& text) {
  const std::string k = sql_text(kind);
  const std::string n = sql_text(name);
  return tables_->execute(fmt::format(
      "DELETE FROM {0} WHERE kind = {1} AND name = {2}; INSERT INTO {0} VALUES ({1}, {2}, {3})",
      store::kCopyTable, k, n, sql_text(text)));
}

Result<std::string> CopyState::source() {
  CEEMS_TRY(found, value("source", ""));
  return found.value_or("");
}

Result<> CopyState::begin(const std::string& source, const std::vector<TableLayout>& layout) {
  std::string drops;
  std::vector<Row> indexes;
  for (const TableLayout& table : layout) {
    drops += fmt::format("DELETE FROM {};", table.name);
    CEEMS_TRY(found, tables_->indexes(table.name));
    for (Row& index : found) {
      drops += fmt::format("DROP INDEX {};", index.front().text);
      indexes.push_back(std::move(index));
    }
  }
  CEEMS_TRY(again, exists());
  if (again) {
    CEEMS_TRY(waiting, this->indexes());
    indexes.insert(indexes.end(), waiting.begin(), waiting.end());
    drops += fmt::format("DROP TABLE {};", store::kCopyTable);
  }
  std::string sql = drops + fmt::format(
                                "CREATE TABLE {} (kind text NOT NULL, name text NOT NULL,"
                                "value text NOT NULL, PRIMARY KEY (kind, name));",
                                store::kCopyTable);
  const auto add = [&sql](std::string_view kind, std::string_view name, std::string_view text) {
    sql += fmt::format("INSERT INTO {} VALUES ({}, {}, {});", store::kCopyTable, sql_text(kind),
                       sql_text(name), sql_text(text));
  };
  add("source", "", source);
  for (const Row& index : indexes) {
    add("index", index[0].text, index[1].text);
  }
  return together(*tables_, sql);
}

Result<CopyState::TableState> CopyState::table(std::string_view name) {
  TableState state;
  const auto rows = value("rows", name);
  const auto done = rows ? value("done", name) : rows;
  CEEMS_TRY(after, done ? value("after", name) : done);
  state.rows = parse_int<std::int64_t>(rows->value_or("0")).value_or(0);
  state.done = done->has_value();
  if (after) {
    state.after = parse_key(*after);
    if (!state.after) {
      return fail(ErrorCode::kParse, "database {}: the progress of the copy is damaged",
                  tables_->name());
    }
  }
  return state;
}

Result<> CopyState::set_table(std::string_view name, const TableState& state) {
  auto stored = set("rows", name, std::to_string(state.rows));
  if (stored && state.after) {
    stored = set("after", name, key_text(*state.after));
  }
  if (stored && state.done) {
    stored = set("done", name, "1");
  }
  return stored;
}

Result<std::vector<Row>> CopyState::indexes() {
  return tables_->query(fmt::format("SELECT name, value FROM {} WHERE kind = 'index' ORDER BY name",
                                    store::kCopyTable));
}

Result<> CopyState::make_index(const Row& index) {
  return together(*tables_, fmt::format("{}; DELETE FROM {} WHERE kind = 'index' AND name = {}",
                                        index[1].text, store::kCopyTable, sql_text(index[0].text)));
}

Result<> CopyState::finish() {
  return tables_->execute(fmt::format("DROP TABLE {}", store::kCopyTable));
}

std::string key_text(const Row& key) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_array();
  for (const Cell& cell : key) {
    json.value(cell.text);
  }
  json.end_array();
  return text;
}

std::optional<Row> parse_key(std::string_view text) {
  JsonScanner scanner(text);
  Row key;
  if (!scanner.take('[')) {
    return std::nullopt;
  }
  do {
    if (!scanner.string(key.emplace_back().text)) {
      return std::nullopt;
    }
  } while (scanner.take(','));
  return scanner.take(']') && scanner.at_end() ? std::optional(std::move(key)) : std::nullopt;
}

}  // namespace ceems::tool::db
