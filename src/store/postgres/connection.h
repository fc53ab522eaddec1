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

struct pg_conn;
struct pg_result;

namespace ceems::store::postgres {

/// A result of libpq: rows, or the end of a command. Move-only.
class Answer {
 public:
  Answer() = default;
  explicit Answer(pg_result* result) : result_(result) {}

  // Texts live as long as the answer; NULL is "" and 0.
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

/// Values in the form that libpq takes: bigint and text. PostgreSQL stores no NUL and nothing but
/// UTF-8, so other bytes become U+FFFD, as in answers of the API.
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
/// Errors: kUnavailable for a lost connection, a server that stops or has no room, a lock;
/// kTimeout for the statement time-out; kPermissionDenied for a password or right that is missing;
/// kInvalidArgument for a value that a row cannot hold (see row_error()); kInternal else. Messages
/// name server and database and carry no values.
class Connection {
 public:
  /// By Connector only.
  Connection(pg_conn* handle, std::string name);

  /// Runs statements without parameters and results.
  Result<> execute(const std::string& sql);
  /// Runs one statement; all its rows.
  Result<Answer> query(std::string_view sql, const std::vector<SqlValue>& values = {});
  /// Prepares `sql` under the name.
  Result<> prepare(const std::string& name, const std::string& sql, const Parameters& parameters);
  /// Statements end with kTimeout after that; 0: never.
  Result<> set_timeout(std::chrono::milliseconds limit);

  /// False once the connection was lost.
  [[nodiscard]] bool alive() const;
  /// Outside of transactions and queries?
  [[nodiscard]] bool idle() const;
  /// Ready for another user; false when it is lost or in the middle of something.
  bool recycle() { return alive() && idle(); }
  /// Stops the statement under way and closes the connection.
  void abandon();

  /// The error that a failed result, or else the connection, tells of.
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

/// True when an error of a statement concerns the row at hand only (a constraint, a value too
/// large), false when everything must be tried again.
bool row_error(const Answer& answer);

/// Opens connections. While the server does not take any, it is asked ever less often and callers
/// get the last error at once. Safe for concurrent use.
class Connector {
 public:
  /// kInvalidArgument for a text that is no connection URI; the message does not show it.
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
