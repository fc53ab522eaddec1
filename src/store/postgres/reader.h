#pragma once

#include <atomic>
#include <cstdint>

#include "store/postgres/connection.h"
#include "store/postgres/coordinator.h"
#include "store/queries/sql_reader.h"
#include "store/sql/pool.h"

namespace ceems::store::postgres {

class PgReader final : public SqlReader {
 public:
  /// `generation` is incremented with every commit. All must outlive the reader.
  PgReader(Pool<Connection>& pool,
           const Coordinator& coordinator,
           std::atomic<std::uint64_t>& generation,
           const UpgradeInUse& upgrade)
      : SqlReader(Dialect::kPostgres, &upgrade),
        pool_(&pool),
        coordinator_(&coordinator),
        generation_(&generation) {}

  /// While commits of other programs are not announced, every call returns a new number.
  [[nodiscard]] std::uint64_t generation() const override {
    return coordinator_->listening() ? generation_->load() : generation_->fetch_add(1) + 1;
  }

 protected:
  Result<std::unique_ptr<Cursor>> open_early(const Sql& sql,
                                             std::chrono::milliseconds limit) override;

 private:
  class Rows;

  Pool<Connection>* pool_;
  const Coordinator* coordinator_;
  std::atomic<std::uint64_t>* generation_;
};

}  // namespace ceems::store::postgres
