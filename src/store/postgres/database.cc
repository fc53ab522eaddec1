#include "store/postgres/database.h"

#include <atomic>
#include <utility>

#include "store/postgres/connection.h"
#include "store/postgres/coordinator.h"
#include "store/postgres/reader.h"
#include "store/postgres/schema.h"
#include "store/postgres/session.h"
#include "store/sql/pool.h"
#include "store/writer/session_writer.h"

namespace ceems::store::postgres {
namespace {

class PgWriter final : public SessionWriter {
 public:
  PgWriter(std::unique_ptr<PgSession> session,
           Coordinator& coordinator,
           const TimeZone& zone,
           const Clock& clock,
           std::atomic<std::uint64_t>& generation)
      : SessionWriter(*session, zone, clock, generation),
        session_(std::move(session)),
        coordinator_(&coordinator) {}

  Result<bool> lead() override {
    auto term = coordinator_->lead();
    if (!term) {
      return fail(std::move(term).error());
    }
    return term->has_value();
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
        coordinator_(*connector_, generation_),
        pool_(connector_->name(),
              options.max_connections,
              options.max_listings,
              options.connection_wait,
              [this] { return connector_->connect(); }),
        reader_(pool_, coordinator_, generation_),
        writer_(std::make_unique<PgSession>(*connector_, coordinator_),
                coordinator_,
                zone,
                clock,
                generation_) {}

  Writer& writer() override { return writer_; }
  Reader& reader() override { return reader_; }

  Result<std::string> backup(const std::string& /*directory*/, std::stop_token /*stop*/) override {
    return fail(ErrorCode::kInvalidArgument,
                "database {}: backups of PostgreSQL are made with pg_dump", connector_->name());
  }

  Result<> close() override {
    pool_.close();
    coordinator_.stop();
    return {};
  }

 private:
  std::unique_ptr<Connector> connector_;
  std::atomic<std::uint64_t> generation_{0};
  Coordinator coordinator_;
  Pool<Connection> pool_;
  PgReader reader_;
  PgWriter writer_;
};

}  // namespace

Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const TimeZone& zone,
                                                const Clock& clock) {
  auto connector = Connector::create(options.url, options.password_file);
  if (!connector) {
    return fail(std::move(connector).error());
  }
  {
    auto connection = (*connector)->connect();
    if (!connection) {
      return fail(std::move(connection).error());
    }
    if (auto done = upgrade(*connection); !done) {
      return fail(std::move(done).error());
    }
  }
  return std::make_unique<PgDatabase>(std::move(*connector), zone, clock, options);
}

}  // namespace ceems::store::postgres
