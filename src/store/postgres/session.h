#pragma once

#include <array>
#include <memory>
#include <optional>

#include "store/postgres/connection.h"
#include "store/postgres/coordinator.h"
#include "store/sql/session.h"

namespace ceems::store::postgres {

/// The writing connection to a server, which is reopened after it was lost. Sends many statements
/// at once (libpq's pipeline mode), because a round trip takes as long as a statement.
class PgSession final : public Session {
 public:
  /// All must outlive the session. `upgrade` may be null.
  PgSession(Connector& connector, Coordinator& coordinator, const UpgradeInUse* upgrade = nullptr)
      : Session(upgrade), connector_(&connector), coordinator_(&coordinator) {}

  Result<> begin() override;
  Result<> commit() override;
  void roll_back() override;
  Result<> run(std::span<const WriterCall> calls, const OnRow& on_row) override;
  Result<std::vector<std::optional<Error>>> run_groups(
      std::span<const std::vector<WriterCall>> groups) override;
  Result<> run(const Sql& sql, const OnRow& on_row) override;
  [[nodiscard]] Dialect dialect() const override { return Dialect::kPostgres; }

 private:
  /// The failure of a pipeline. If it concerns only a row, the rest of the transaction is usable.
  struct Failure {
    Error error;
    bool row_only = false;
  };

  Result<> connect();
  [[nodiscard]] Result<> still_there() const;
  Result<> start_transaction(std::int64_t term);
  Result<> prepare(std::span<const WriterCall> calls);
  std::optional<Failure> pipeline(std::span<const WriterCall> calls,
                                  const OnRow& on_row,
                                  bool savepoint);
  bool send(const WriterCall& call);
  /// Runs calls of one statement with an insert_target() as a COPY, which takes a fraction of the
  /// time of single statements.
  std::optional<Failure> copy(std::span<const WriterCall* const> calls, bool savepoint);
  /// Runs groups of a single call as a COPY if there are many, and removes them from `groups`.
  Result<> copy_groups(std::span<const std::vector<WriterCall>> all,
                       std::vector<std::size_t>& groups);
  Result<> undo() { return connection_->execute("ROLLBACK TO one; RELEASE one"); }
  Failure broken();

  Connector* connector_;
  Coordinator* coordinator_;
  std::unique_ptr<Connection> connection_;
  std::array<bool, kWriterStatements> prepared_{};
  bool in_transaction_ = false;
};

}  // namespace ceems::store::postgres
