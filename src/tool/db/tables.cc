#include "tool/db/tables.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "store/database.h"

namespace ceems::tool::db {

Result<Location> Location::parse(const std::string& text, const std::string& password_file) {
  Location location;
  if (text.starts_with("postgresql://") || text.starts_with("postgres://")) {
    CEEMS_TRY(check_url(text));
    location.url = text;
    location.password_file = password_file;
    return location;
  }
  if (text.empty() || text.contains("://")) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' is neither a file nor postgresql://user@host/database", printable(text));
  }
  std::error_code error;
  location.file = std::filesystem::is_directory(text, error)
                      ? fmt::format("{}/{}", text, store::kDatabaseFile)
                      : text;
  return location;
}

Result<std::unique_ptr<Tables>> Tables::open(const Location& location, Use use) {
  return location.is_file() ? open_sqlite(location.file, use) : open_postgres(location, use);
}

Result<std::vector<Row>> Tables::query(const std::string& sql, const Row& values) {
  CEEMS_TRY(cursor, stream(sql, values));
  std::vector<Row> rows;
  while (true) {
    Row row;
    CEEMS_TRY(more, cursor->next(row));
    if (!more) {
      return rows;
    }
    rows.push_back(std::move(row));
  }
}

Result<std::vector<std::string>> Tables::texts(const std::string& sql, const Row& values) {
  CEEMS_TRY(rows, query(sql, values));
  std::vector<std::string> result;
  result.reserve(rows.size());
  for (Row& row : rows) {
    result.push_back(std::move(row.front().text));
  }
  return result;
}

Result<std::int64_t> Tables::integer(const std::string& sql) {
  CEEMS_TRY(rows, query(sql));
  return rows.empty() || rows.front().empty()
             ? 0
             : parse_int<std::int64_t>(rows.front().front().text).value_or(0);
}

Result<bool> Tables::has_table(std::string_view name) {
  CEEMS_TRY(names, table_names());
  return std::ranges::find(names, name) != names.end();
}

}  // namespace ceems::tool::db
