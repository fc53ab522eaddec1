#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/database.h"
#include "store/factory/open_database.h"
#include "store/postgres/connection.h"
#include "store/sqlite/connection.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/postgres_server.h"
#include "testing/temp_dir.h"

// What tests of databases share. The same tests run on every one of them.

namespace ceems::store {

inline constexpr std::int64_t kNow = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
inline constexpr std::int64_t kMinute = 60'000;
inline constexpr std::int64_t kHour = 60 * kMinute;
inline constexpr std::int64_t kDay = 24 * kHour;

using Texts = std::vector<std::string>;

inline model::Unit job(const std::string& uuid, std::int64_t start_ms, std::int64_t end_ms = 0) {
  model::Unit unit;
  unit.resource_manager = "slurm";
  unit.uuid = uuid;
  unit.name = "job-" + uuid;
  unit.project = "fluids";
  unit.groupname = "phys";
  unit.username = "ada";
  unit.created_at = "c";
  unit.created_at_ts = start_ms;
  unit.started_at = start_ms > 0 ? std::to_string(start_ms) : "Unknown";
  unit.started_at_ts = start_ms;
  unit.ended_at = end_ms > 0 ? std::to_string(end_ms) : "Unknown";
  unit.ended_at_ts = end_ms;
  unit.state = end_ms > 0 ? "COMPLETED" : "RUNNING";
  unit.allocation = R"({"cpus":2})";
  return unit;
}

inline model::Unit& with_times(model::Unit& unit, double walltime, double cputime) {
  unit.total_time_seconds = {{"walltime", walltime}, {"alloc_cputime", cputime}};
  return unit;
}

inline model::Unit& with(model::Unit& unit, model::Metric metric, model::MetricMap map) {
  unit.metric(metric) = std::move(map);
  unit.has_metric[static_cast<std::size_t>(metric)] = true;
  return unit;
}

inline ClusterUpdate update(std::int64_t start,
                            std::int64_t end,
                            std::vector<model::Unit> units,
                            const std::string& cluster = "hpc") {
  ClusterUpdate result;
  result.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
  result.window = {start, end};
  result.units = std::move(units);
  return result;
}

/// A column of all rows, or the message of the error.
inline Texts column(Result<std::unique_ptr<Cursor>> cursor, std::size_t index) {
  Texts values;
  if (!cursor) {
    return {cursor.error().message};
  }
  while (true) {
    const auto row = (*cursor)->next();
    if (!row) {
      return {row.error().message};
    }
    if (!*row) {
      return values;
    }
    values.emplace_back((*cursor)->text(index));
  }
}

enum class Backend { kSqlite, kPostgres };

/// A new empty database for each test; skipped where there is no PostgreSQL server.
class AnyDatabase : public ::testing::Test {
 protected:
  explicit AnyDatabase(Backend backend = Backend::kSqlite) : backend_(backend) {}

  void SetUp() override {
    if (backend_ == Backend::kPostgres) {
      std::string why_not;
      postgres_ = testing::PostgresServer::shared(why_not);
      if (postgres_ == nullptr) {
        GTEST_SKIP() << why_not;
      }
      static int count = 0;
      const std::string name = "test" + std::to_string(++count);
      ASSERT_NO_FATAL_FAILURE(
          execute("CREATE DATABASE " + name + " TEMPLATE template0", postgres_->url("postgres")));
      url_ = postgres_->url(name);
    }
    open();
  }

  void open(const std::string& zone = "UTC") {
    db_.reset();
    auto opened = another(zone);
    ASSERT_TRUE(opened) << opened.error().message;
    db_ = std::move(*opened);
  }
  /// The same database as another program opens it.
  [[nodiscard]] Result<std::unique_ptr<Database>> another(const std::string& zone = "UTC") const {
    return open_database({.directory = dir_.path().string(),
                          .time_zone = zone,
                          .url = url_,
                          .custom_stats = custom_stats_},
                         clock_);
  }

  void write(const ClusterUpdate& update) {
    auto report = db_->writer().write(update);
    // A database that was opened again leads when the server has noticed the end of the connection.
    static_cast<void>(testing::eventually([&] {
      if (report || report.error().code != ErrorCode::kUnavailable) {
        return true;
      }
      report = db_->writer().write(update);
      return false;
    }));
    ASSERT_TRUE(report) << report.error().message;
  }
  void write(std::int64_t start, std::int64_t end, std::vector<model::Unit> units) {
    write(update(start, end, std::move(units)));
  }

  [[nodiscard]] std::string file() const { return (dir_.path() / "ceems.db").string(); }
  /// First columns of all rows, blanks between, by a connection of its own.
  [[nodiscard]] std::string text(std::string_view sql) const {
    std::string result;
    const auto append = [&result](std::string_view value) {
      result += result.empty() ? "" : " ";
      result += value;
    };
    if (backend_ == Backend::kPostgres) {
      auto connector = postgres::Connector::create(url_, "").value();
      auto connection = connector->connect();
      const auto answer = connection ? connection->query(sql) : fail(connection.error());
      if (!answer) {
        return answer.error().message;
      }
      for (int row = 0; row < answer->rows(); ++row) {
        append(answer->text(row, 0));
      }
      return result;
    }
    auto connection = sqlite::Connection::open(file(), sqlite::OpenMode::kReadOnly);
    auto statement = connection ? connection->prepare(sql) : fail(connection.error());
    if (!statement) {
      return statement.error().message;
    }
    while (statement->step().value()) {
      append(statement->text(0));
    }
    return result;
  }
  /// What another program does to the database.
  void execute(const std::string& sql) const { execute(sql, url_); }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  const Backend backend_;
  testing::PostgresServer* postgres_ = nullptr;
  std::string url_;
  bool custom_stats_ = false;
  std::unique_ptr<Database> db_;

 private:
  void execute(const std::string& sql, const std::string& url) const {
    if (backend_ == Backend::kPostgres) {
      auto connection = postgres::Connector::create(url, "").value()->connect();
      const auto done = connection ? connection->execute(sql) : fail(connection.error());
      ASSERT_TRUE(done) << done.error().message;
      return;
    }
    auto connection = sqlite::Connection::open(file(), sqlite::OpenMode::kReadWrite);
    const auto done = connection ? connection->execute(sql) : fail(connection.error());
    ASSERT_TRUE(done) << done.error().message;
  }
};

/// Test suites that run on all of them.
class EveryDatabase : public AnyDatabase, public ::testing::WithParamInterface<Backend> {
 protected:
  EveryDatabase() : AnyDatabase(GetParam()) {}
};

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& info) {
  return info.param == Backend::kSqlite ? "Sqlite" : "Postgres";
}

}  // namespace ceems::store
