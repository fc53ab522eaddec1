#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "store/sql/sql.h"

struct pg_cancel;
struct pg_conn;
struct pg_result;

namespace ceems::store::postgres {

/// A result of libpq: the rows or the status of a statement. Move-only.
class Answer {
 public:
  Answer() = default;
  explicit Answer(pg_result* result) : result_(result) {}

  // Texts are valid as long as the answer. NULL is read as "" or 0.
  [[nodiscard]] std::string_view text(int row, std::size_t column) const;
  [[nodiscard]] std::int64_t integer(int row, std::size_t column) const;
  [[nodiscard]] int rows() const;
  [[nodiscard]] pg_result* handle() const { return result_.get(); }
  explicit operator bool() const { return result_ != nullptr; }

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

/// Values in the form that libpq takes: bigint and text. PostgreSQL stores only UTF-8 without NUL,
/// so other bytes become U+FFFD, as in answers of the API.
class Parameters {
 public:
  explicit Parameters(const std::vector<SqlValue>& values);
  [[nodiscard]] int count() const { return static_cast<int>(texts_.size()); }
  [[nodiscard]] const char* const* values() const { return pointers_.data(); }
  [[nodiscard]] const unsigned* types() const { return types_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
  std::vector<unsigned> types_;
};

/// Appends the values, with the same replacements, as a line of COPY's text format (PostgreSQL
/// manual, "COPY", "Text Format").
void append_copy_line(std::string& out, const std::vector<SqlValue>& values);

/// One connection to a server. Move-only; used by one thread at a time.
///
/// Errors: kUnavailable for a lost connection, a server that stops or has no space, or a lock;
/// kTimeout after the statement timeout; kPermissionDenied for a wrong password or a missing right;
/// kInvalidArgument for a value that a row cannot hold (see row_error()); kInternal otherwise.
/// Messages name the server and the database, and contain no values.
class Connection {
 public:
  /// For Connector only.
  Connection(pg_conn* handle, std::string name);

  /// Runs statements that have no parameters and no result.
  Result<> execute(const std::string& sql);
  /// Runs one statement and returns all its rows.
  Result<Answer> query(std::string_view sql, const std::vector<SqlValue>& values = {});
  /// Prepares `sql` as a statement with this name.
  Result<> prepare(const std::string& name, const std::string& sql, const Parameters& parameters);
  /// Statements fail with kTimeout after this time; 0: never.
  Result<> set_timeout(std::chrono::milliseconds limit);

  /// False once the connection has been lost.
  [[nodiscard]] bool alive() const;
  /// Whether there is neither a transaction nor a statement in progress.
  [[nodiscard]] bool idle() const;
  /// Prepares the connection for the next user; false if it is lost or not idle.
  bool recycle() { return alive() && idle(); }
  /// Drops what has already come of an answer. True if that was its end, as with answers of a row
  /// or two of which only the first was read; false if the server is still sending. Does not block.
  bool drop_received();
  /// Cancels the statement in progress and closes the connection.
  void abandon();

  /// The error of a failed result or, if that has none, of the connection.
  [[nodiscard]] Error error(const Answer& answer) const;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] pg_conn* handle() const { return handle_.get(); }

 private:
  struct Finish {
    void operator()(pg_conn* handle) const;
  };
  std::unique_ptr<pg_conn, Finish> handle_;
  std::string name_;
  std::chrono::milliseconds timeout_{0};
};

/// Cancels the statement that a connection runs, from any thread; without effect if there is none.
class Canceller {
 public:
  explicit Canceller(const Connection& connection);
  void cancel() const;

 private:
  struct Free {
    void operator()(pg_cancel* cancel) const;
  };
  std::unique_ptr<pg_cancel, Free> cancel_;
};

/// True if an error concerns only the row that was written (a constraint, a value too large), false
/// if everything must be tried again.
bool row_error(const Answer& answer);

/// Opens connections. While the server refuses them, it is tried at growing intervals of up to 10
/// s; in between, callers get the last error immediately. Safe for concurrent use.
class Connector {
 public:
  /// kInvalidArgument if `url` is not a connection URI. The message does not contain it.
  static Result<std::unique_ptr<Connector>> create(std::string url, std::string password_file);

  Result<Connection> connect();
  /// "postgresql://host:port/database"
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Connector(std::string url, std::string password_file, std::string name);
  [[nodiscard]] Result<Connection> try_connect() const;

  const std::string url_;
  const std::string password_file_;
  const std::string name_;
  Mutex mutex_;
  std::chrono::steady_clock::time_point not_before_ CEEMS_GUARDED_BY(mutex_);
  std::chrono::milliseconds pause_ CEEMS_GUARDED_BY(mutex_){0};
  Error last_error_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::store::postgres
