#include "store/sqlite/session.h"

#include <sqlite3.h>

#include <utility>

#include "base/log.h"

namespace ceems::store::sqlite {
namespace {

class Row final : public AnswerRow {
 public:
  explicit Row(const Statement& statement) : statement_(&statement) {}
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return statement_->text(static_cast<int>(column));
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    return statement_->integer(static_cast<int>(column));
  }

 private:
  const Statement* statement_;
};

/// Passes on all rows of a statement, which is the call with this index.
Result<> step_all(Statement& statement, std::size_t index, const OnRow& on_row) {
  const Row answer(statement);
  auto row = statement.step();
  while (row && *row) {
    if (on_row) {
      on_row(index, answer);
    }
    row = statement.step();
  }
  return row ? Result<>() : fail(std::move(row).error());
}

}  // namespace

Result<std::unique_ptr<SqliteSession>> SqliteSession::create(Connection connection, int reference) {
  std::unique_ptr<SqliteSession> session(new SqliteSession());
  CEEMS_TRY(session->open(std::move(connection), reference));
  return session;
}

Result<> SqliteSession::open(Connection connection, int reference) {
  connection_ = std::move(connection);
  reference_ = reference;
  for (std::size_t i = 0; i < kWriterStatements; ++i) {
    CEEMS_TRY(prepared,
              connection_.prepare(statement_text(static_cast<WriterStatement>(i), reference)));
    statements_[i] = std::move(prepared);
  }
  return {};
}

Result<> SqliteSession::begin() {
  CEEMS_TRY(ready());
  roll_back();  // a transaction that an earlier failure left open
  return connection_.execute("BEGIN IMMEDIATE");
}

/// The pages of a usual window are of no use for the next one, a quarter of an hour later. While
/// windows are large, as in a back-fill, they follow one another, and the cache saves a third of
/// the CPU time.
Result<> SqliteSession::commit() {
  constexpr std::int64_t kManyRows = 5000;
  constexpr std::size_t kIdleBytes = 1U << 20U;
  auto done = connection_.execute("COMMIT");
  const std::int64_t changed = sqlite3_total_changes64(connection_.handle());
  if (changed - std::exchange(changed_, changed) < kManyRows) {
    connection_.release_memory(kIdleBytes);
  }
  return done;
}

void SqliteSession::roll_back() {
  if (ready() && !connection_.autocommit()) {
    if (auto done = connection_.execute("ROLLBACK"); !done) {
      log::error("cannot roll back", {{"err", done.error().message}});
    }
  }
}

Result<> SqliteSession::run(std::span<const WriterCall> calls, const OnRow& on_row) {
  CEEMS_TRY(ready());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Statement& statement = statements_.at(static_cast<std::size_t>(calls[i].statement));
    statement.reset();
    statement.bind_all(calls[i].values);
    auto done = step_all(statement, i, on_row);
    statement.reset();
    if (!done) {
      return done;
    }
  }
  return {};
}

Result<std::vector<std::optional<Error>>> SqliteSession::run_groups(
    std::span<const std::vector<WriterCall>> groups) {
  std::vector<std::optional<Error>> refused(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].empty()) {
      continue;
    }
    if (groups[i].size() == 1) {
      // A single statement needs no savepoint to take effect as a whole or not at all.
      auto done = run(groups[i], {});
      if (!done && !row_error(connection_.handle())) {
        return fail(std::move(done).error());
      }
      if (!done) {
        refused[i] = std::move(done).error();
      }
      continue;
    }
    CEEMS_TRY(connection_.execute("SAVEPOINT one"));
    auto done = run(groups[i], {});
    if (!done) {
      const bool row_only = row_error(connection_.handle());
      CEEMS_TRY(connection_.execute("ROLLBACK TO one; RELEASE one"));
      if (!row_only) {
        return fail(std::move(done).error());
      }
      refused[i] = std::move(done).error();
      continue;
    }
    CEEMS_TRY(connection_.execute("RELEASE one"));
  }
  return refused;
}

Result<> SqliteSession::run(const Sql& sql, const OnRow& on_row) {
  CEEMS_TRY(ready());
  CEEMS_TRY(statement, connection_.prepare(sql.text()));
  statement.bind_all(sql.values());
  return step_all(statement, 0, on_row);
}

}  // namespace ceems::store::sqlite
