#include "store/sqlite/reader.h"

#include <utility>

namespace ceems::store::sqlite {

class SqliteReader::Rows final : public Cursor {
 public:
  Rows(Pool<Connection>::Lease lease, Statement statement)
      : lease_(std::move(lease)), statement_(std::move(statement)) {}

  Result<bool> next() override { return statement_.step(); }
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return statement_.text(static_cast<int>(column));
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    return statement_.integer(static_cast<int>(column));
  }

 private:
  Pool<Connection>::Lease lease_;  // outlives the statement
  Statement statement_;
};

Result<std::unique_ptr<Cursor>> SqliteReader::open_early(const Sql& sql,
                                                         std::chrono::milliseconds limit) {
  CEEMS_TRY(lease, pool_->acquire(use_of(limit)));
  lease.connection().set_deadline(std::chrono::steady_clock::now() + limit);
  CEEMS_TRY(statement, lease.connection().prepare(sql.text()));
  statement.bind_all(sql.values());
  return std::make_unique<Rows>(std::move(lease), std::move(statement));
}

Result<std::int64_t> SqliteReader::reference_version() {
  CEEMS_TRY(rows, open_early(Sql(Dialect::kSqlite, "SELECT version FROM schema_migrations"),
                             kShortLimit));
  CEEMS_TRY(row, rows->next());
  return row ? rows->integer(0) : 0;
}

}  // namespace ceems::store::sqlite
