#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sql/sql.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ceems::store::sqlite {

/// A prepared statement. Move-only; not thread-safe; must be destroyed before its connection.
class Statement {
 public:
  Statement() = default;

  /// Binds a parameter; they count from 1. If that fails, the next step() reports it.
  void bind(int index, std::string_view text);
  void bind(int index, std::int64_t value);
  void bind_null(int index);
  /// Binds all parameters, starting at 1.
  void bind_all(const std::vector<SqlValue>& values);

  /// Moves to the next row; false at the end. After the end or an error, reset() makes the
  /// statement ready to run again.
  Result<bool> step();
  /// Runs step() to the end, then reset().
  Result<> run();
  void reset();

  /// The number of columns of the result.
  [[nodiscard]] int columns() const;
  // The columns of the current row, counted from 0. Texts are valid until the next step() or
  // reset().
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
/// Errors: kUnavailable for a full disk, a locked file and I/O errors (trying again may help);
/// kPermissionDenied if the file may not be opened or written; kParse if it is damaged or not a
/// database; kTimeout after the deadline; kInternal otherwise. Messages name the file.
class Connection {
 public:
  static Result<Connection> open(const std::string& path, OpenMode mode);

  /// Compiles one statement, without running it.
  Result<Statement> prepare(std::string_view sql);
  /// Runs statements that have no parameters and no result.
  Result<> execute(const std::string& sql);
  /// Returns the first column of the first row; "" if the result is empty.
  Result<std::string> query_text(std::string_view sql);
  /// The same as an integer; 0 if the result is empty.
  Result<std::int64_t> query_integer(std::string_view sql);

  /// False while a transaction is open.
  [[nodiscard]] bool autocommit() const;
  /// How long statements wait for a lock of another connection; 5 s unless it is set.
  void set_busy_wait(std::chrono::milliseconds wait);
  /// Statements fail with kTimeout from this time on.
  void set_deadline(std::chrono::steady_clock::time_point deadline);
  /// Statements fail with kTimeout once a stop is requested.
  void stop_with(const std::stop_token& stop);
  /// Removes the deadline for the next user of the connection, and its pages from the cache if they
  /// take much memory. Always returns true.
  bool recycle();
  /// Removes from the cache the pages that are not in use if all of them take more than this many
  /// bytes.
  void release_memory(std::size_t kept_bytes);

  /// Copies the whole database to the file `path`, which is created with mode 0640 and removed
  /// after an error. Calls `keep_going` between batches of pages and fails with kUnavailable if
  /// that returns false. Calls `progress`, if there is one, after each tenth.
  Result<> copy_to(const std::string& path,
                   bool (*keep_going)(void*),
                   void* context,
                   const std::function<void(int percent)>& progress = {});

  [[nodiscard]] sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::unique_ptr<std::chrono::steady_clock::time_point> deadline_;
  std::unique_ptr<std::stop_token> stop_;
};

/// Returns the last error of a connection. `context` says what was attempted.
Error last_error(sqlite3* handle, std::string_view context);

/// True if an error concerns only the row that was written (a constraint, a value too large), false
/// if it concerns the database, so that everything must be tried again.
bool row_error(sqlite3* handle);

}  // namespace ceems::store::sqlite
