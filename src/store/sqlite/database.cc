#include "store/sqlite/database.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "store/queries/sql_reader.h"
#include "store/schema/tables.h"
#include "store/sql/generations.h"
#include "store/sql/pool.h"
#include "store/sql/upgrading.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/file_lock.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/session.h"
#include "store/writer/node_days.h"
#include "store/writer/session_feedback.h"
#include "store/writer/session_outbox.h"
#include "store/writer/session_targets.h"
#include "store/writer/session_tokens.h"
#include "store/writer/session_writer.h"

namespace ceems::store::sqlite {
namespace {

std::string file_in(const std::string& directory) {
  return directory + "/" + std::string(kDatabaseFile);
}

constexpr mode_t kFileMode = 0640;

class SqliteRows final : public Cursor {
 public:
  SqliteRows(Pool<Connection>::Lease lease, Statement statement)
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

/// Counts commits of other programs, such as an import of bills. Safe for concurrent use.
class ForeignCommits {
 public:
  explicit ForeignCommits(std::string path) : path_(std::move(path)) {}

  /// The sum of `own`, which grows after each commit of this program, and of the changes of the
  /// file that it does not explain. Some commits count twice.
  std::uint64_t plus(const std::atomic<std::uint64_t>& own) {
    const MutexLock lock(mutex_);
    const std::uint64_t counted = own.load();
    const auto version = data_version();
    if (!version || (*version != version_ && counted == counted_)) {
      ++foreign_;
    }
    version_ = version.value_or(version_);
    counted_ = counted;
    return counted + foreign_;
  }
  /// An open connection would keep the write-ahead log from being moved into the file.
  void close() {
    const MutexLock lock(mutex_);
    connection_.reset();
  }

 private:
  /// Differs from the one before if any other connection has committed since
  /// (https://www.sqlite.org/pragma.html#pragma_data_version).
  Result<std::int64_t> data_version() CEEMS_REQUIRES(mutex_) {
    if (!connection_) {
      CEEMS_TRY(opened, Connection::open(path_, OpenMode::kReadOnly));
      opened.set_busy_wait({});
      connection_ = std::move(opened);
    }
    return connection_->query_integer("PRAGMA data_version");
  }

  const std::string path_;
  Mutex mutex_;
  std::optional<Connection> connection_ CEEMS_GUARDED_BY(mutex_);
  std::int64_t version_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::uint64_t counted_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::uint64_t foreign_ CEEMS_GUARDED_BY(mutex_) = 0;
};

class SqliteReader final : public SqlReader {
 public:
  /// The writer counts up `generations`; `reference` is the version of the reference's
  /// tables. All must outlive the reader. `upgrade` and `foreign` may be null.
  SqliteReader(Pool<Connection>& pool,
               const Generations& generations,
               const std::atomic<int>& reference,
               const UpgradeInUse* upgrade = nullptr,
               ForeignCommits* foreign = nullptr)
      : SqlReader(Dialect::kSqlite, upgrade),
        pool_(&pool),
        generations_(&generations),
        reference_(&reference),
        foreign_(foreign) {}

  [[nodiscard]] std::uint64_t generation() const override {
    return foreign_ != nullptr ? foreign_->plus(generations_->all) : generations_->all.load();
  }
  [[nodiscard]] std::uint64_t usage_generation() const override {
    return generations_->usage.load();
  }

  /// Reads the version of the reference's tables from the file; 0: it has none.
  Result<std::int64_t> reference_version() {
    CEEMS_TRY(rows, open_early(Sql(Dialect::kSqlite, "SELECT version FROM schema_migrations"),
                               kShortLimit));
    CEEMS_TRY(row, rows->next());
    return row ? rows->integer(0) : 0;
  }

 protected:
  [[nodiscard]] int reference() const override { return reference_->load(); }
  Result<std::unique_ptr<Cursor>> open_early(const Sql& sql,
                                             std::chrono::milliseconds limit) override {
    CEEMS_TRY(lease, pool_->acquire(use_of(limit)));
    lease.connection().set_deadline(std::chrono::steady_clock::now() + limit);
    CEEMS_TRY(statement, lease.connection().prepare(sql.text()));
    statement.bind_all(sql.values());
    return std::make_unique<SqliteRows>(std::move(lease), std::move(statement));
  }

 private:
  Pool<Connection>* pool_;
  const Generations* generations_;
  const std::atomic<int>* reference_;
  ForeignCommits* foreign_;
};

class SqliteWriter final : public SessionWriter {
 public:
  SqliteWriter(std::unique_ptr<SqliteSession> session,
               const TimeZone& zone,
               const Clock& clock,
               Generations& generations)
      : SessionWriter(*session, zone, clock, generations), session_(std::move(session)) {}

  Result<> open(Connection connection, int reference) {
    return session_->open(std::move(connection), reference);
  }

  /// Moves the write-ahead log into the main file, if it is open.
  Result<> checkpoint() {
    if (session_->connection().handle() == nullptr) {
      return {};
    }
    return session_->connection().execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }

 private:
  /// Returns a bounded number of free pages to the file system, so that readers are not delayed.
  /// Has no effect in files that the reference created.
  Result<> give_back_pages() override {
    return session_->connection().execute("PRAGMA incremental_vacuum(2000)");
  }

  std::unique_ptr<SqliteSession> session_;
};

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(std::string path,
                 TimeZone zone,
                 const Clock& clock,
                 const DatabaseOptions& options)
      : path_(std::move(path)),
        target_{.version = options.custom_stats ? kCustomStatsVersion : kSchemaVersion,
                .finish = options.finish_upgrade},
        zone_(zone),
        clock_(&clock),
        upgrade_in_use_above_(options.upgrade_in_use_above),
        upgrading_(options.on_upgrade_failed),
        pool_(path_,
              options.max_connections,
              options.max_listings,
              options.connection_wait,
              [path = path_] { return Connection::open(path, OpenMode::kReadOnly); }),
        writer_(std::make_unique<SqliteWriter>(
            std::make_unique<SqliteSession>(upgrading_), zone_, *clock_, generations_)) {}

  ~SqliteDatabase() override {
    if (auto done = close(); !done) {
      log::error("cannot close the database", {{"err", done.error().message}});
    }
  }

  Result<> start() {
    CEEMS_TRY(lock, lock_file(path_));
    lock_ = std::move(lock);
    {
      // SQLite would create it with the permissions of the umask.
      const UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode));
      if (!file.valid()) {
        return fail(errno_error(errno, fmt::format("database {}", path_)));
      }
    }
    CEEMS_TRY(connection, Connection::open(path_, OpenMode::kReadWrite));
    CEEMS_TRY(bytes, bytes_to_upgrade(connection, path_, target_));
    if (bytes > upgrade_in_use_above_.value_or(std::numeric_limits<std::int64_t>::max())) {
      upgrade_in_use(std::move(connection));
      return {};
    }
    return upgrade_now(std::move(connection), {});
  }

  Writer& writer() override { return *writer_; }
  Reader& reader() override { return reader_; }
  Result<std::unique_ptr<Outbox>> open_outbox() override {
    CEEMS_TRY(session, open_session());
    return std::make_unique<SessionOutbox>(std::move(session));
  }
  Result<std::unique_ptr<TokenWriter>> open_tokens() override {
    CEEMS_TRY(session, open_session());
    return std::make_unique<SessionTokens>(std::move(session));
  }
  Result<std::unique_ptr<FeedbackWriter>> open_feedback() override {
    CEEMS_TRY(session, open_session());
    return std::make_unique<SessionFeedback>(std::move(session));
  }
  Result<std::unique_ptr<ExportTargets>> open_targets() override {
    CEEMS_TRY(session, open_session());
    return std::make_unique<SessionTargets>(std::move(session));
  }
  bool wait_until_ready(const std::stop_token& stop) override { return upgrading_.wait(stop); }

  Result<std::string> backup(const std::string& directory, std::stop_token stop) override {
    CEEMS_TRY(source, Connection::open(path_, OpenMode::kReadOnly));
    std::string stamp = zone_.local(clock_->now_ms()).substr(0, 16);
    std::erase_if(stamp, [](char c) { return c == '-' || c == ':' || c == 'T'; });
    std::string name = fmt::format("{}/ceems-{}.db", directory, stamp);
    const std::string partial = name + ".partial";
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);  // left by a program that was killed
    const auto keep_going = [](void* token) {
      return !static_cast<std::stop_token*>(token)->stop_requested();
    };
    CEEMS_TRY_IN("backup", source.copy_to(partial, keep_going, &stop));
    if (std::rename(partial.c_str(), name.c_str()) != 0) {
      const int cause = errno;
      std::filesystem::remove(partial, ignored);
      return fail(errno_error(cause, fmt::format("backup {}", name)));
    }
    return name;
  }

  Result<> close() override {
    upgrading_.stop();
    pool_.close();
    foreign_.close();
    if (!writer_) {
      return {};
    }
    // A copy of ceems.db alone is complete then.
    auto done = writer_->checkpoint();
    writer_.reset();
    return done;
  }

 private:
  /// A session with a connection of its own.
  Result<std::unique_ptr<Session>> open_session() {
    CEEMS_TRY(upgrading_.ready());
    CEEMS_TRY(connection, Connection::open(path_, OpenMode::kReadWrite));
    CEEMS_TRY(session, SqliteSession::create(std::move(connection), reference_));
    return session;
  }

  Result<> upgrade_now(Connection connection, const std::stop_token& stop) {
    CEEMS_TRY(version, upgrade(connection, path_, zone_, clock_->now_ms(), target_, stop));
    reference_ = version;
    connection.recycle();
    ::malloc_trim(0);  // an upgrade needs much more than what comes next
    return writer_->open(std::move(connection), version);
  }

  void upgrade_in_use(Connection connection) {
    const auto own = std::make_shared<Connection>(std::move(connection));
    upgrading_.start([this, own](const std::stop_token& stop) -> Result<> {
      own->stop_with(stop);
      CEEMS_TRY(upgrade_now(std::move(*own), stop));
      generations_.committed();
      log::info("the database is upgraded", {{"file", path_}});
      return {};
    });
  }

  const std::string path_;
  const SchemaTarget target_;
  const TimeZone zone_;
  const Clock* clock_;
  const std::optional<std::int64_t> upgrade_in_use_above_;
  UpgradeInUse upgrading_;
  UniqueFd lock_;
  Generations generations_;
  std::atomic<int> reference_{kSchemaVersion};
  Pool<Connection> pool_;
  ForeignCommits foreign_{path_};
  SqliteReader reader_{pool_, generations_, reference_, &upgrading_, &foreign_};
  std::unique_ptr<SqliteWriter> writer_;
};

using Around = std::function<void(const std::function<void()>&)>;

Result<Connection> open_for_reading(const std::string& path,
                                    const Around& around,
                                    std::chrono::milliseconds busy_wait) {
  Result<Connection> connection = fail(ErrorCode::kInternal, "not opened");
  const auto open_now = [&] {
    connection = Connection::open(path, OpenMode::kReadOnly);
    if (!connection) {
      return;
    }
    connection->set_busy_wait(busy_wait);
    // SQLite opens the log and its index at the first query.
    if (auto looked = connection->execute("SELECT 1 FROM sqlite_schema LIMIT 1"); !looked) {
      connection = fail(std::move(looked).error());
    }
  };
  if (around) {
    around(open_now);
  } else {
    open_now();
  }
  return connection;
}

/// A reader of a file, with everything that it uses.
struct FileReading {
  FileReading(const std::string& path, const DatabaseOptions& options)
      : pool(path,
             options.max_connections,
             options.max_listings,
             options.connection_wait,
             [path, around = options.around_open, wait = options.busy_wait] {
               return open_for_reading(path, around, wait);
             }) {}

  Generations generations;
  std::atomic<int> reference{kSchemaVersion};
  Pool<Connection> pool;
  SqliteReader reader{pool, generations, reference};
};

}  // namespace

Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const TimeZone& zone,
                                                const Clock& clock) {
  auto database =
      std::make_unique<SqliteDatabase>(file_in(options.directory), zone, clock, options);
  CEEMS_TRY(database->start());
  return database;
}

Result<std::shared_ptr<Reader>> open_reader(const DatabaseOptions& options) {
  const std::string path = file_in(options.directory);
  const auto reading = std::make_shared<FileReading>(path, options);
  CEEMS_TRY(version, reading->reader.reference_version());
  reading->reference = version >= kCustomStatsVersion ? kCustomStatsVersion : kSchemaVersion;
  return std::shared_ptr<Reader>(reading, &reading->reader);
}

Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace) {
  const std::string path = fmt::format("{}/{}", options.directory, kDatabaseFile);
  CEEMS_TRY(connection, Connection::open(path, OpenMode::kReadWrite));
  connection.set_busy_wait(options.busy_wait);
  CEEMS_TRY(reference, connection.query_integer("SELECT version FROM schema_migrations"));
  CEEMS_TRY(session, SqliteSession::create(std::move(connection), static_cast<int>(reference)));
  return put_bills(*session, kOwnVersion, bills, replace);
}

}  // namespace ceems::store::sqlite
