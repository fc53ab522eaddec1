#pragma once

#include <array>

#include "store/sql/session.h"
#include "store/sqlite/connection.h"

namespace ceems::store::sqlite {

/// The writing connection of a database file.
class SqliteSession final : public Session {
 public:
  /// A session that is to be opened before `upgrade` is ready.
  explicit SqliteSession(const UpgradeInUse& upgrade) : Session(&upgrade) {}
  static Result<std::unique_ptr<SqliteSession>> create(Connection connection, int reference);
  /// Prepares the statements. The schema must be current, with this version of the reference's
  /// tables.
  Result<> open(Connection connection, int reference);

  Result<> begin() override;
  Result<> commit() override;
  void roll_back() override;
  Result<> run(std::span<const WriterCall> calls, const OnRow& on_row) override;
  Result<std::vector<std::optional<Error>>> run_groups(
      std::span<const std::vector<WriterCall>> groups) override;
  Result<> run(const Sql& sql, const OnRow& on_row) override;
  [[nodiscard]] Dialect dialect() const override { return Dialect::kSqlite; }
  [[nodiscard]] int reference() const override { return reference_; }

  /// For operations that only SQLite has.
  Connection& connection() { return connection_; }

 private:
  SqliteSession() = default;

  Connection connection_;
  int reference_ = kNewestReference;
  std::int64_t changed_ = 0;  ///< rows that were changed by earlier transactions
  std::array<Statement, kWriterStatements> statements_;  // destroyed before the connection
};

}  // namespace ceems::store::sqlite
