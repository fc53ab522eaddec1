#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/strings.h"
#include "base/time/time_zone.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/file_lock.h"
#include "store/sqlite/schema.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {
namespace {

using store::sqlite::Connection;
using store::sqlite::OpenMode;
using store::sqlite::Statement;

void bind(Statement& statement, const Row& values) {
  int index = 0;
  for (const Cell& cell : values) {
    ++index;
    if (cell.null) {
      statement.bind_null(index);
    } else {
      // The affinity of an INTEGER column makes a number of the digits.
      statement.bind(index, std::string_view(cell.text));
    }
  }
}

class SqliteCursor final : public Cursor {
 public:
  explicit SqliteCursor(Statement statement) : statement_(std::move(statement)) {}
  Result<bool> next(Row& row) override {
    auto more = statement_.step();
    if (!more || !*more) {
      return more;
    }
    row.resize(static_cast<std::size_t>(statement_.columns()));
    int column = 0;
    for (Cell& cell : row) {
      cell.null = statement_.is_null(column);
      cell.text = statement_.text(column);
      ++column;
    }
    return true;
  }

 private:
  Statement statement_;
};

class SqliteTables final : public Tables {
 public:
  SqliteTables(Connection connection, std::string file, UniqueFd lock)
      : lock_(std::move(lock)), connection_(std::move(connection)), file_(std::move(file)) {}

  [[nodiscard]] store::Dialect dialect() const override { return store::Dialect::kSqlite; }
  [[nodiscard]] const std::string& name() const override { return file_; }

  Result<> execute(const std::string& sql) override {
    auto done = connection_.execute(sql);
    if (!done && !connection_.autocommit()) {
      static_cast<void>(connection_.execute("ROLLBACK"));
    }
    return done;
  }

  Result<std::unique_ptr<Cursor>> stream(const std::string& sql, const Row& values) override {
    CEEMS_TRY(statement, connection_.prepare(sql));
    bind(statement, values);
    return std::make_unique<SqliteCursor>(std::move(statement));
  }

  Result<> insert(const std::string& target, std::span<const Row> rows) override {
    if (rows.empty()) {
      return {};
    }
    std::string marks = "?";
    for (std::size_t i = 1; i < rows.front().size(); ++i) {
      marks += ",?";
    }
    CEEMS_TRY(statement,
              connection_.prepare(fmt::format("INSERT INTO {} VALUES ({})", target, marks)));
    for (const Row& row : rows) {
      bind(statement, row);
      CEEMS_TRY(statement.run());
    }
    return {};
  }

  Result<> begin_snapshot() override {
    // The first read starts the snapshot.
    return connection_.execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1");
  }

  Result<> upgrade(const std::string& time_zone, bool custom_stats) override {
    CEEMS_TRY(zone, TimeZone::find(time_zone));
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        real_clock().now().time_since_epoch());
    using store::sqlite::kCustomStatsVersion;
    using store::sqlite::kSchemaVersion;
    auto done = store::sqlite::upgrade(
        connection_, file_, zone, now.count(),
        {.version = custom_stats ? kCustomStatsVersion : kSchemaVersion, .finish = custom_stats});
    return done ? Result<>() : fail(std::move(done).error());
  }

  Result<std::int64_t> size() override {
    return connection_.query_integer(
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()");
  }

  Result<std::vector<std::string>> table_names() override {
    return texts(
        "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%'"
        " ORDER BY 1");
  }
  Result<std::vector<std::string>> column_names(std::string_view table) override {
    return texts("SELECT name FROM pragma_table_info(?) ORDER BY cid",
                 {{.text = std::string(table)}});
  }
  Result<std::vector<Row>> indexes(std::string_view table) override {
    return query(
        "SELECT name, sql FROM sqlite_schema WHERE type='index' AND sql IS NOT NULL"
        " AND tbl_name=? ORDER BY 1",
        {{.text = std::string(table)}});
  }

 private:
  UniqueFd lock_;
  Connection connection_;
  const std::string file_;
};

}  // namespace

void give_to_owner_of_directory(const std::string& file) {
  struct stat found{};
  const auto directory = std::filesystem::absolute(file).parent_path();
  if (::geteuid() == 0 && ::stat(directory.c_str(), &found) == 0 && found.st_uid != 0 &&
      ::lchown(file.c_str(), found.st_uid, found.st_gid) != 0) {
    // The API server would report that it may not open the file.
    return;
  }
}

Result<std::unique_ptr<Tables>> open_sqlite(const std::string& file, Use use) {
  UniqueFd lock;
  std::error_code error;
  const bool memory = file == ":memory:";
  const bool exists = memory || std::filesystem::exists(file, error);
  if (!exists && use != Use::kWrite) {
    return fail(ErrorCode::kNotFound, "database {}: no such file", printable(file));
  }
  if (use != Use::kRead && !memory) {
    const bool had_lock = std::filesystem::exists(file + ".lock", error);
    CEEMS_TRY(taken, store::sqlite::lock_file(file));
    lock = std::move(taken);
    if (!had_lock) {
      give_to_owner_of_directory(file + ".lock");
    }
  }
  if (!exists) {
    constexpr mode_t kMode = 0640;
    const UniqueFd created(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
    if (!created.valid()) {
      return fail(errno_error(errno, fmt::format("database {}", printable(file))));
    }
    give_to_owner_of_directory(file);
  }
  CEEMS_TRY(connection, Connection::open(
                            file, use == Use::kWrite ? OpenMode::kReadWrite : OpenMode::kReadOnly));
  return std::make_unique<SqliteTables>(std::move(connection), file, std::move(lock));
}

}  // namespace ceems::tool::db
