#pragma once

#include <atomic>
#include <cstdint>

#include "store/queries/sql_reader.h"
#include "store/sql/pool.h"
#include "store/sqlite/connection.h"

namespace ceems::store::sqlite {

class SqliteReader final : public SqlReader {
 public:
  /// `generation` is incremented by the writer. Both must outlive the reader.
  SqliteReader(Pool<Connection>& pool, const std::atomic<std::uint64_t>& generation)
      : SqlReader(Dialect::kSqlite), pool_(&pool), generation_(&generation) {}

  [[nodiscard]] std::uint64_t generation() const override { return generation_->load(); }

 protected:
  Result<std::unique_ptr<Cursor>> open(const Sql& sql, std::chrono::milliseconds limit) override;

 private:
  class Rows;

  Pool<Connection>* pool_;
  const std::atomic<std::uint64_t>* generation_;
};

}  // namespace ceems::store::sqlite
