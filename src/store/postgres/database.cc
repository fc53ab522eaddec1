#include "store/postgres/database.h"

#include <atomic>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <libpq-fe.h>

#include "base/log.h"
#include "store/postgres/answer_row.h"
#include "store/postgres/connection.h"
#include "store/postgres/coordinator.h"
#include "store/postgres/schema.h"
#include "store/postgres/session.h"
#include "store/queries/sql_reader.h"
#include "store/schema/tables.h"
#include "store/sql/generations.h"
#include "store/sql/pool.h"
#include "store/sql/session.h"
#include "store/sql/upgrading.h"
#include "store/writer/node_days.h"
#include "store/writer/session_feedback.h"
#include "store/writer/session_outbox.h"
#include "store/writer/session_targets.h"
#include "store/writer/session_tokens.h"
#include "store/writer/session_writer.h"

namespace ceems::store::postgres {
namespace {

/// Reads rows one by one (libpq's single-row mode), so a result of any size needs memory for only
/// one row.
class PgRows final : public Cursor {
 public:
  explicit PgRows(Pool<Connection>::Lease lease) : lease_(std::move(lease)) {}
  PgRows(PgRows&&) = delete;
  PgRows& operator=(PgRows&&) = delete;
  PgRows(const PgRows&) = delete;
  PgRows& operator=(const PgRows&) = delete;
  ~PgRows() override {
    current_ = Answer();
    if (!ended_ && !lease_.connection().drop_received()) {
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
                                             std::chrono::milliseconds limit) override {
    while (true) {
      CEEMS_TRY(lease, pool_->acquire(use_of(limit)));
      auto rows = std::make_unique<PgRows>(std::move(lease));
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

 private:
  Pool<Connection>* pool_;
  const Coordinator* coordinator_;
  Generations* generations_;
};

class PgWriter final : public SessionWriter {
 public:
  PgWriter(std::unique_ptr<PgSession> session,
           Coordinator& coordinator,
           const TimeZone& zone,
           const Clock& clock,
           Generations& generations)
      : SessionWriter(*session, zone, clock, generations),
        session_(std::move(session)),
        coordinator_(&coordinator) {}

  Result<bool> lead() override {
    CEEMS_TRY(session_->ready());
    CEEMS_TRY(term, coordinator_->lead());
    return term.has_value();
  }

 private:
  std::unique_ptr<PgSession> session_;
  Coordinator* coordinator_;
};

class PgDatabase final : public Database {
 public:
  PgDatabase(std::unique_ptr<Connector> connector,
             const TimeZone& zone,
             const Clock& clock,
             const DatabaseOptions& options)
      : connector_(std::move(connector)),
        upgrading_(options.on_upgrade_failed),
        coordinator_(*connector_, generations_),
        pool_(connector_->name(),
              options.max_connections,
              options.max_listings,
              options.connection_wait,
              [this] { return connector_->connect(); }),
        reader_(pool_, coordinator_, generations_, upgrading_),
        writer_(std::make_unique<PgSession>(*connector_, coordinator_, &upgrading_),
                coordinator_,
                zone,
                clock,
                generations_) {}

  ~PgDatabase() override { stop_upgrade(); }

  /// Upgrades the tables by this connection while the database is already in use.
  void upgrade_in_use(Connection connection) {
    canceller_.emplace(connection);
    const auto own = std::make_shared<Connection>(std::move(connection));
    upgrading_.start([this, own](const std::stop_token& stop) -> Result<> {
      auto done = upgrade(*own, stop);
      if (done) {
        generations_.committed();
      }
      return done;
    });
  }

  Writer& writer() override { return writer_; }
  Reader& reader() override { return reader_; }
  Result<std::unique_ptr<Outbox>> open_outbox() override {
    return std::make_unique<SessionOutbox>(std::make_unique<PgSession>(*connector_, coordinator_));
  }
  Result<std::unique_ptr<TokenWriter>> open_tokens() override {
    return std::make_unique<SessionTokens>(std::make_unique<PgSession>(*connector_, coordinator_));
  }
  Result<std::unique_ptr<FeedbackWriter>> open_feedback() override {
    return std::make_unique<SessionFeedback>(
        std::make_unique<PgSession>(*connector_, coordinator_));
  }
  Result<std::unique_ptr<ExportTargets>> open_targets() override {
    return std::make_unique<SessionTargets>(std::make_unique<PgSession>(*connector_, coordinator_));
  }
  bool wait_until_ready(const std::stop_token& stop) override { return upgrading_.wait(stop); }

  Result<std::string> backup(const std::string& /*directory*/, std::stop_token /*stop*/) override {
    return fail(ErrorCode::kInvalidArgument,
                "database {}: backups of PostgreSQL are made with pg_dump", connector_->name());
  }

  Result<> close() override {
    stop_upgrade();
    pool_.close();
    coordinator_.stop();
    return {};
  }

 private:
  void stop_upgrade() {
    upgrading_.stop([this] { canceller_->cancel(); });
  }

  std::unique_ptr<Connector> connector_;
  Generations generations_;
  UpgradeInUse upgrading_;
  Coordinator coordinator_;
  Pool<Connection> pool_;
  PgReader reader_;
  PgWriter writer_;
  std::optional<Canceller> canceller_;
};

/// Fails if sessions of this program do not keep a session of the server, as behind a pooler in
/// transaction mode: locks, notices, settings and prepared statements would belong to others.
/// Such a pooler gives the second connection the session of the first, or the first one another.
Result<> check_sessions(Connector& connector, Connection& first) {
  constexpr std::string_view kSession = "SELECT pg_backend_pid()";
  CEEMS_TRY(second, connector.connect());
  CEEMS_TRY(before, first.query(kSession));
  CEEMS_TRY(second.execute("BEGIN"));
  CEEMS_TRY(other, second.query(kSession));
  bool shared = before.integer(0, 0) == other.integer(0, 0);
  if (!shared) {
    CEEMS_TRY(after, first.query(kSession));
    shared = before.integer(0, 0) != after.integer(0, 0);
  }
  CEEMS_TRY(second.execute("COMMIT"));
  if (!shared) {
    return {};
  }
  return fail(ErrorCode::kInvalidArgument,
              "database {}: a connection pooler such as pgbouncer shares sessions of the server "
              "among its clients; set pool_mode = session for this database and user, or name the "
              "server itself in data.database_url",
              connector.name());
}

std::unexpected<Error> not_prepared() {
  return fail(ErrorCode::kInternal, "this session has no prepared statements");
}

/// A session for a few statements beside the program that leads: it runs only statements that are
/// not prepared.
class ShortSession final : public Session {
 public:
  explicit ShortSession(Connection connection) : connection_(std::move(connection)) {}

  Result<> begin() override { return connection_.execute("BEGIN"); }
  Result<> commit() override {  // other programs have answers without it
    return connection_.execute(fmt::format("NOTIFY ceems_commit, '{}'; COMMIT", kNoUsage));
  }
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

Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const TimeZone& zone,
                                                const Clock& clock) {
  CEEMS_TRY(connector, Connector::create(options.url, options.password_file));
  CEEMS_TRY(connection, connector->connect());
  CEEMS_TRY(check_sessions(*connector, connection));
  CEEMS_TRY(bytes, bytes_to_upgrade(connection));
  const bool in_use = options.upgrade_in_use_above && bytes > *options.upgrade_in_use_above;
  if (!in_use) {
    CEEMS_TRY(upgrade(connection));
  }
  auto database = std::make_unique<PgDatabase>(std::move(connector), zone, clock, options);
  if (in_use) {
    database->upgrade_in_use(std::move(connection));
  }
  return database;
}

Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace) {
  CEEMS_TRY(connector, Connector::create(options.url, options.password_file));
  CEEMS_TRY(connection, connector->connect());
  ShortSession session(std::move(connection));
  return put_bills(session, kOwnVersion, bills, replace);
}

}  // namespace ceems::store::postgres
