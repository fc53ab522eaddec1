#include "store/postgres/database.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "store/postgres/connection.h"
#include "store/postgres/coordinator.h"
#include "store/postgres/reader.h"
#include "store/postgres/schema.h"
#include "store/postgres/session.h"
#include "store/sql/generations.h"
#include "store/sql/pool.h"
#include "store/sql/upgrading.h"
#include "store/writer/session_outbox.h"
#include "store/writer/session_writer.h"

namespace ceems::store::postgres {
namespace {

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

}  // namespace ceems::store::postgres
