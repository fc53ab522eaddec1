#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <libpq-fe.h>

#include "base/strings.h"
#include "store/postgres/connection.h"
#include "store/postgres/coordinator.h"
#include "store/postgres/schema.h"
#include "store/sql/sql.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {
namespace {

using store::postgres::Answer;
using PgConnection = store::postgres::Connection;

std::vector<store::SqlValue> values_of(const Row& row) {
  std::vector<store::SqlValue> values;
  values.reserve(row.size());
  for (const Cell& cell : row) {
    values.emplace_back(cell.text);
  }
  return values;
}

/// Rows as the server sends them (libpq's single-row mode), so that none wait in memory.
class PgCursor final : public Cursor {
 public:
  explicit PgCursor(PgConnection& connection) : connection_(&connection) {}
  ~PgCursor() override {
    if (!ended_) {
      store::postgres::Canceller(*connection_).cancel();
      while (Answer(PQgetResult(connection_->handle()))) {
      }
    }
  }
  PgCursor(const PgCursor&) = delete;
  PgCursor& operator=(const PgCursor&) = delete;

  Result<bool> next(Row& row) override {
    while (!ended_) {
      const Answer answer(PQgetResult(connection_->handle()));
      if (!answer) {
        ended_ = true;
        break;
      }
      switch (PQresultStatus(answer.handle())) {
        case PGRES_SINGLE_TUPLE:
          break;
        case PGRES_TUPLES_OK:
          continue;  // the end
        default:
          return fail(connection_->error(answer));
      }
      row.resize(static_cast<std::size_t>(PQnfields(answer.handle())));
      for (std::size_t column = 0; column < row.size(); ++column) {
        row[column].null = PQgetisnull(answer.handle(), 0, static_cast<int>(column)) != 0;
        row[column].text = answer.text(0, column);
      }
      return true;
    }
    return false;
  }

 private:
  PgConnection* connection_;
  bool ended_ = false;
};

class PgTables final : public Tables {
 public:
  explicit PgTables(PgConnection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] store::Dialect dialect() const override { return store::Dialect::kPostgres; }
  [[nodiscard]] const std::string& name() const override { return connection_.name(); }

  Result<> execute(const std::string& sql) override {
    auto done = connection_.execute(sql);
    if (!done && !connection_.idle()) {
      static_cast<void>(connection_.execute("ROLLBACK"));
    }
    return done;
  }

  Result<std::unique_ptr<Cursor>> stream(const std::string& sql, const Row& values) override {
    // Types are left to the server, which takes them from the columns.
    std::vector<const char*> texts;
    texts.reserve(values.size());
    for (const Cell& cell : values) {
      texts.push_back(cell.null ? nullptr : cell.text.c_str());
    }
    if (PQsendQueryParams(connection_.handle(), store::numbered(sql).c_str(),
                          static_cast<int>(texts.size()), nullptr, texts.data(), nullptr, nullptr,
                          0) == 0) {
      return fail(connection_.error({}));
    }
    PQsetSingleRowMode(connection_.handle());
    return std::make_unique<PgCursor>(connection_);
  }

  Result<> insert(const std::string& target, std::span<const Row> rows) override {
    const Answer begun(
        PQexec(connection_.handle(), fmt::format("COPY {} FROM STDIN", target).c_str()));
    if (PQresultStatus(begun.handle()) != PGRES_COPY_IN) {
      return fail(connection_.error(begun));
    }
    std::string lines;
    bool sent = true;
    constexpr std::size_t kPiece = 1U << 20U;
    for (const Row& row : rows) {
      store::postgres::append_copy_line(lines, values_of(row));
      if (lines.size() >= kPiece) {
        sent = sent && put(lines);
        lines.clear();
      }
    }
    sent = sent && put(lines) && PQputCopyEnd(connection_.handle(), nullptr) == 1;
    std::optional<Error> error;
    if (!sent) {
      error = connection_.error({});
    }
    while (true) {
      const Answer answer(PQgetResult(connection_.handle()));
      if (!answer) {
        break;
      }
      if (PQresultStatus(answer.handle()) == PGRES_COPY_IN) {
        break;  // the connection is lost
      }
      if (PQresultStatus(answer.handle()) != PGRES_COMMAND_OK && !error) {
        error = connection_.error(answer);
      }
    }
    return error ? Result<>(fail(std::move(*error))) : Result<>();
  }

  Result<> begin_snapshot() override {
    return connection_.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  }

  Result<> upgrade(const std::string& /*time_zone*/, bool /*custom_stats*/) override {
    return store::postgres::upgrade(connection_);
  }

  Result<std::int64_t> size() override {
    return integer(
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace");
  }

  Result<std::vector<std::string>> table_names() override {
    return texts("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1");
  }
  Result<std::vector<std::string>> column_names(std::string_view table) override {
    return texts(
        "SELECT column_name FROM information_schema.columns WHERE table_schema ="
        " current_schema() AND table_name = ? ORDER BY ordinal_position",
        {{.text = std::string(table)}});
  }
  Result<std::vector<Row>> indexes(std::string_view table) override {
    return query(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
        " AND tablename = ? AND indexname NOT IN (SELECT conname FROM pg_constraint)"
        " ORDER BY 1",
        {{.text = std::string(table)}});
  }

 private:
  bool put(const std::string& lines) {
    return PQputCopyData(connection_.handle(), lines.data(), static_cast<int>(lines.size())) == 1;
  }

  PgConnection connection_;
};

/// Takes the lock of the API server that writes. It is held until the session ends. That of a
/// program that was killed ends when the server notices, which takes a moment.
Result<> lock_writers(PgConnection& connection) {
  constexpr auto kPatience = std::chrono::seconds(15);
  constexpr auto kPause = std::chrono::milliseconds(100);
  constexpr int kChecksClients = 140000;  // PostgreSQL 14
  if (PQserverVersion(connection.handle()) >= kChecksClients) {
    // Without this, it would notice only after the index that it makes.
    CEEMS_TRY(connection.execute("SET client_connection_check_interval = '1s'"));
  }
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    CEEMS_TRY(locked,
              connection.query("SELECT pg_try_advisory_lock(?)", {store::postgres::kLeaderLock}));
    if (locked.text(0, 0) == "t") {
      return {};
    }
    if (std::chrono::steady_clock::now() >= end) {
      return fail(ErrorCode::kUnavailable,
                  "database {} is in use: an API server or another copy writes to it; stop all API"
                  " servers of this database",
                  connection.name());
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Result<> check_url(const std::string& url) {
  struct Free {
    void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
  };
  char* problem = nullptr;  // not reported, because it quotes parts of the URL
  const std::unique_ptr<PQconninfoOption, Free> options(PQconninfoParse(url.c_str(), &problem));
  PQfreemem(problem);
  if (!options) {
    return fail(ErrorCode::kInvalidArgument,
                "not a connection URI of PostgreSQL"
                " (postgresql://user@host:port/database; reserved characters as %XX)");
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-bounds-pointer-arithmetic): libpq's array ends with null
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    const std::string_view keyword = option->keyword;
    if ((keyword == "password" || keyword == "sslpassword") && option->val != nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  "the URL holds a password, which all users of this machine can see in the list"
                  " of processes; write it to a file for --password-file or PGPASSFILE");
    }
  }
  return {};
}

Result<std::unique_ptr<Tables>> open_postgres(const Location& location, Use use) {
  CEEMS_TRY(connector, store::postgres::Connector::create(location.url, location.password_file));
  CEEMS_TRY(connection, connector->connect());
  // One side may wait for long while the other one makes an index.
  CEEMS_TRY(
      connection.execute("SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0;"
                         "SET tcp_user_timeout = 0; SET application_name = 'ceems_tool'"));
  if (use != Use::kRead) {
    CEEMS_TRY(lock_writers(connection));
  }
  return std::make_unique<PgTables>(std::move(connection));
}

}  // namespace ceems::tool::db
