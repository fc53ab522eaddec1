#pragma once

#include <cstdint>

#include "store/postgres/connection.h"
#include "store/postgres/coordinator.h"
#include "store/queries/sql_reader.h"
#include "store/sql/generations.h"
#include "store/sql/pool.h"

namespace ceems::store::postgres {

class PgReader final : public SqlReader {
 public:
  /// `generations` count all commits. All must outlive the reader.
  PgReader(Pool<Connection>& pool,
           const Coordinator& coordinator,
           Generations& generations,
           const UpgradeInUse& upgrade)
      : SqlReader(Dialect::kPostgres, &upgrade),
        pool_(&pool),
        coordinator_(&coordinator),
        generations_(&generations) {}

  /// While commits of other programs are not announced, every call returns a new number.
  [[nodiscard]] std::uint64_t generation() const override {
    return coordinator_->listening() ? generations_->all.load()
                                     : generations_->all.fetch_add(1) + 1;
  }
  [[nodiscard]] std::uint64_t usage_generation() const override {
    return coordinator_->listening() ? generations_->usage.load()
                                     : generations_->usage.fetch_add(1) + 1;
  }

 protected:
  Result<std::unique_ptr<Cursor>> open_early(const Sql& sql,
                                             std::chrono::milliseconds limit) override;

 private:
  class Rows;

  Pool<Connection>* pool_;
  const Coordinator* coordinator_;
  Generations* generations_;
};

}  // namespace ceems::store::postgres
