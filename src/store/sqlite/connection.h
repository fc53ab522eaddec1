#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sql/sql.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ceems::store::sqlite {

/// A prepared statement. Move-only; not thread-safe; must go before its connection.
class Statement {
 public:
  Statement() = default;

  /// Parameters count from 1. A failed bind is reported by the next step().
  void bind(int index, std::string_view text);
  void bind(int index, std::int64_t value);
  void bind_null(int index);
  /// All of them, from parameter 1 on.
  void bind_all(const std::vector<SqlValue>& values);

  /// True for a row, false at the end. After an error or the end the statement can be run again
  /// after reset().
  Result<bool> step();
  /// step() to the end, then reset().
  Result<> run();
  void reset();

  // Columns of the current row count from 0. Texts are valid until the next step() or reset().
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int bind_status_ = 0;
};

enum class OpenMode { kReadWrite, kReadOnly };

/// One connection to a database file. Move-only; used by one thread at a time.
///
/// Errors: kUnavailable for a full disk, a locked file and I/O errors (trying again may help),
/// kPermissionDenied for files that may not be opened or written, kParse for a file that is no
/// database or is damaged, kInternal else. Messages name the file.
class Connection {
 public:
  static Result<Connection> open(const std::string& path, OpenMode mode);

  Result<Statement> prepare(std::string_view sql);
  /// Runs statements without parameters and results.
  Result<> execute(const std::string& sql);
  /// The first column of the first row, or "" when there is none.
  Result<std::string> query_text(std::string_view sql);
  Result<std::int64_t> query_integer(std::string_view sql);

  /// False while a transaction is open.
  [[nodiscard]] bool autocommit() const;
  /// Statements fail with kTimeout from then on.
  void set_deadline(std::chrono::steady_clock::time_point deadline);
  /// Ready for another user: without deadline. Always true.
  bool recycle();

  /// Copies the whole database into the file `path`, which is made with mode 0640. On failure the
  /// file is removed. `keep_going` is asked between batches of pages; false ends with kUnavailable.
  Result<> copy_to(const std::string& path, bool (*keep_going)(void*), void* context);

  [[nodiscard]] sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::unique_ptr<std::chrono::steady_clock::time_point> deadline_;
};

/// The Error for what a connection reports last; `context` says what was tried.
Error last_error(sqlite3* handle, std::string_view context);

/// True when an error concerns the row at hand only (a constraint, a value too large), false when
/// it concerns the database and everything must be tried again.
bool row_error(sqlite3* handle);

}  // namespace ceems::store::sqlite
