#include "store/postgres/import_bills.h"

#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "store/postgres/answer_row.h"
#include "store/postgres/connection.h"
#include "store/schema/tables.h"
#include "store/sql/session.h"
#include "store/writer/node_days.h"

namespace ceems::store::postgres {
namespace {

std::unexpected<Error> not_prepared() {
  return fail(ErrorCode::kInternal, "this session has no prepared statements");
}

/// A session for a few statements beside the program that leads: it runs only statements that are
/// not prepared.
class ShortSession final : public Session {
 public:
  explicit ShortSession(Connection connection) : connection_(std::move(connection)) {}

  Result<> begin() override { return connection_.execute("BEGIN"); }
  Result<> commit() override { return connection_.execute("COMMIT"); }
  void roll_back() override {
    if (!connection_.idle()) {
      if (auto done = connection_.execute("ROLLBACK"); !done) {
        log::error("cannot roll back", {{"err", done.error().message}});
      }
    }
  }
  Result<> run(std::span<const WriterCall> /*calls*/, const OnRow& /*on_row*/) override {
    return not_prepared();
  }
  Result<std::vector<std::optional<Error>>> run_groups(
      std::span<const std::vector<WriterCall>> /*groups*/) override {
    return not_prepared();
  }
  Result<> run(const Sql& sql, const OnRow& on_row) override {
    CEEMS_TRY(answer, connection_.query(sql.text(), sql.values()));
    for (int row = 0; on_row && row < answer.rows(); ++row) {
      on_row(0, Row(answer, row));
    }
    return {};
  }
  [[nodiscard]] Dialect dialect() const override { return Dialect::kPostgres; }

 private:
  Connection connection_;
};

}  // namespace

Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace) {
  CEEMS_TRY(connector, Connector::create(options.url, options.password_file));
  CEEMS_TRY(connection, connector->connect());
  ShortSession session(std::move(connection));
  return put_bills(session, kOwnVersion, bills, replace);
}

}  // namespace ceems::store::postgres
