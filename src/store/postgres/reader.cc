#include "store/postgres/reader.h"

#include <utility>

#include <libpq-fe.h>

namespace ceems::store::postgres {

/// Reads rows one by one (libpq's single-row mode), so a result of any size needs memory for only
/// one row.
class PgReader::Rows final : public Cursor {
 public:
  explicit Rows(Pool<Connection>::Lease lease) : lease_(std::move(lease)) {}
  Rows(Rows&&) = delete;
  Rows& operator=(Rows&&) = delete;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() override {
    current_ = Answer();
    if (!ended_) {
      lease_.connection().abandon();
    }
  }

  /// Sends the query and waits for its first row.
  Result<> start(const Sql& sql, std::chrono::milliseconds limit) {
    Connection& connection = lease_.connection();
    CEEMS_TRY(connection.set_timeout(limit));
    const Parameters parameters(sql.values());
    pg_conn* handle = connection.handle();
    if (PQsendQueryParams(handle, numbered(sql.text()).c_str(), parameters.count(),
                          parameters.types(), parameters.values(), nullptr, nullptr, 0) != 1) {
      return fail(connection.error({}));
    }
    ended_ = false;
    if (PQsetSingleRowMode(handle) != 1) {
      return fail(connection.error({}));
    }
    CEEMS_TRY(fetch());
    waiting_ = true;
    return {};
  }
  /// Whether the connection failed.
  [[nodiscard]] bool lost() { return !lease_.connection().alive(); }
  [[nodiscard]] bool fresh() const { return lease_.fresh(); }

  Result<bool> next() override {
    if (std::exchange(waiting_, false)) {
      return !ended_;
    }
    return ended_ ? Result<bool>(false) : fetch();
  }
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return current_.text(0, column);
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    return current_.integer(0, column);
  }

 private:
  Result<bool> fetch() {
    Connection& connection = lease_.connection();
    current_ = Answer(PQgetResult(connection.handle()));
    if (current_ && PQresultStatus(current_.handle()) == PGRES_SINGLE_TUPLE) {
      return true;
    }
    const bool done = current_ && PQresultStatus(current_.handle()) == PGRES_TUPLES_OK;
    Result<bool> result = done ? Result<bool>(false) : fail(connection.error(current_));
    while (const Answer rest{PQgetResult(connection.handle())}) {
    }
    current_ = Answer();
    ended_ = true;
    return result;
  }

  Pool<Connection>::Lease lease_;
  Answer current_;
  bool ended_ = true;     ///< there are no more rows
  bool waiting_ = false;  ///< the first row was fetched but not requested yet
};

Result<std::unique_ptr<Cursor>> PgReader::open_early(const Sql& sql,
                                                     std::chrono::milliseconds limit) {
  while (true) {
    CEEMS_TRY(lease, pool_->acquire(use_of(limit)));
    auto rows = std::make_unique<Rows>(std::move(lease));
    auto done = rows->start(sql, limit);
    if (done) {
      return rows;
    }
    // If a connection broke while it was in the pool, all the others did too.
    if (!rows->lost() || rows->fresh()) {
      return fail(std::move(done).error());
    }
    rows.reset();
    pool_->clear();
  }
}

}  // namespace ceems::store::postgres
