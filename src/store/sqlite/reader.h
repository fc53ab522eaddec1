#pragma once

#include <atomic>
#include <cstdint>

#include "store/queries/sql_reader.h"
#include "store/sql/pool.h"
#include "store/sqlite/connection.h"

namespace ceems::store::sqlite {

class SqliteReader final : public SqlReader {
 public:
  /// `generation` is incremented by the writer; `reference` is the version of the reference's
  /// tables. All must outlive the reader. `upgrade` may be null.
  SqliteReader(Pool<Connection>& pool,
               const std::atomic<std::uint64_t>& generation,
               const std::atomic<int>& reference,
               const UpgradeInUse* upgrade = nullptr)
      : SqlReader(Dialect::kSqlite, upgrade),
        pool_(&pool),
        generation_(&generation),
        reference_(&reference) {}

  [[nodiscard]] std::uint64_t generation() const override { return generation_->load(); }

  /// Reads the version of the reference's tables from the file; 0: it has none.
  Result<std::int64_t> reference_version();

 protected:
  [[nodiscard]] int reference() const override { return reference_->load(); }
  Result<std::unique_ptr<Cursor>> open_early(const Sql& sql,
                                             std::chrono::milliseconds limit) override;

 private:
  class Rows;

  Pool<Connection>* pool_;
  const std::atomic<std::uint64_t>* generation_;
  const std::atomic<int>* reference_;
};

}  // namespace ceems::store::sqlite
