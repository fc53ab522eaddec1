#pragma once

#include <atomic>
#include <cstdint>

#include "store/queries/sql_reader.h"
#include "store/sql/generations.h"
#include "store/sql/pool.h"
#include "store/sqlite/connection.h"

namespace ceems::store::sqlite {

class SqliteReader final : public SqlReader {
 public:
  /// The writer counts up `generations`; `reference` is the version of the reference's
  /// tables. All must outlive the reader. `upgrade` may be null.
  SqliteReader(Pool<Connection>& pool,
               const Generations& generations,
               const std::atomic<int>& reference,
               const UpgradeInUse* upgrade = nullptr)
      : SqlReader(Dialect::kSqlite, upgrade),
        pool_(&pool),
        generations_(&generations),
        reference_(&reference) {}

  [[nodiscard]] std::uint64_t generation() const override { return generations_->all.load(); }
  [[nodiscard]] std::uint64_t usage_generation() const override {
    return generations_->usage.load();
  }

  /// Reads the version of the reference's tables from the file; 0: it has none.
  Result<std::int64_t> reference_version();

 protected:
  [[nodiscard]] int reference() const override { return reference_->load(); }
  Result<std::unique_ptr<Cursor>> open_early(const Sql& sql,
                                             std::chrono::milliseconds limit) override;

 private:
  class Rows;

  Pool<Connection>* pool_;
  const Generations* generations_;
  const std::atomic<int>* reference_;
};

}  // namespace ceems::store::sqlite
