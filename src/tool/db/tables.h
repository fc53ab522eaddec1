#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/schema/dialect.h"

namespace ceems::tool::db {

/// A value as both systems have it; an integer as its decimal digits.
struct Cell {
  std::string text = {};
  bool null = false;

  bool operator==(const Cell&) const = default;
};
using Row = std::vector<Cell>;

/// The rows of a query, one at a time. Nothing else may use its database until it is destroyed.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// Fills `row`; false at the end.
  virtual Result<bool> next(Row& row) = 0;
};

/// Where a database is. kInvalidArgument if the text is a URL that holds a password, which other
/// users of the machine could read in the list of processes.
struct Location {
  std::string file = {};  ///< SQLite
  std::string url = {};   ///< PostgreSQL
  std::string password_file = {};

  /// `text` is a URL, a file, or a directory that holds ceems.db.
  static Result<Location> parse(const std::string& text, const std::string& password_file);
  [[nodiscard]] bool is_file() const { return url.empty(); }
};

/// What an open database is for.
enum class Use : std::uint8_t {
  kRead,   ///< others may write meanwhile
  kAlone,  ///< no API server may write meanwhile; the database itself is only read
  kWrite,  ///< this program alone writes; a SQLite file is created
};

/// One database of either kind as tables of rows. Used by one thread. Errors name the database and
/// hold no passwords and no values.
class Tables {
 public:
  /// kUnavailable if `use` is not kRead and an API server uses the database: one with this SQLite
  /// file open, or one that leads. kNotFound if there is no such file to read.
  static Result<std::unique_ptr<Tables>> open(const Location& location, Use use);
  virtual ~Tables() = default;

  [[nodiscard]] virtual store::Dialect dialect() const = 0;
  /// For messages: the file, or host, port and database.
  [[nodiscard]] virtual const std::string& name() const = 0;

  /// Runs statements that have no result.
  virtual Result<> execute(const std::string& sql) = 0;
  /// The rows of a query with a ? for each value.
  virtual Result<std::unique_ptr<Cursor>> stream(const std::string& sql,
                                                 const Row& values = {}) = 0;
  /// Inserts rows into "table (columns)".
  virtual Result<> insert(const std::string& target, std::span<const Row> rows) = 0;

  /// Starts a transaction in which all reads see the same state.
  virtual Result<> begin_snapshot() = 0;
  /// Creates the current tables in a database without any; brings older ones to the current
  /// version (Use::kWrite only), as an API server with this time zone would. With `custom_stats`,
  /// a SQLite file gets the columns of custom metrics, too, also if that was interrupted before.
  virtual Result<> upgrade(const std::string& time_zone, bool custom_stats) = 0;
  /// Bytes on the disk.
  virtual Result<std::int64_t> size() = 0;
  virtual Result<std::vector<std::string>> table_names() = 0;
  virtual Result<std::vector<std::string>> column_names(std::string_view table) = 0;
  /// CREATE INDEX of the indexes of a table that are not constraints: names, then statements.
  virtual Result<std::vector<Row>> indexes(std::string_view table) = 0;

  /// All rows of a short result.
  Result<std::vector<Row>> query(const std::string& sql, const Row& values = {});
  /// The first column of all rows of a short result.
  Result<std::vector<std::string>> texts(const std::string& sql, const Row& values = {});
  /// The first column of the first row; 0 if there is none or it is NULL.
  Result<std::int64_t> integer(const std::string& sql);
  Result<bool> has_table(std::string_view name);
};

/// Tables::open() for a file. ":memory:" is a new database in memory.
Result<std::unique_ptr<Tables>> open_sqlite(const std::string& file, Use use);

/// If root runs this program, gives a new file to the owner of its directory, so that the API
/// server can open it.
void give_to_owner_of_directory(const std::string& file);

/// kInvalidArgument if the URL holds a password or is none. The message holds no part of it.
Result<> check_url(const std::string& url);

/// Tables::open() for a server.
Result<std::unique_ptr<Tables>> open_postgres(const Location& location, Use use);

}  // namespace ceems::tool::db
