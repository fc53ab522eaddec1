#include "store/units/unit_row.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "store/schema/table_sql.h"
#include "store/schema/tables.h"
#include "store/sqlite/connection.h"
#include "testing/temp_dir.h"

namespace ceems::store {
namespace {

using model::Unit;

// The table of units with one row more: a column that a later version adds.
constexpr auto kColumns =
    tables::joined(tables::kUnitColumns,
                   std::to_array<Column>({{.name = "queue",
                                           .update = Update::kFirstKnown,
                                           .source = &Unit::groupname,
                                           .place = Place::kBody,
                                           .help = "Queue of the batch system.",
                                           .example = R"("long")",
                                           .since = 5}}));
constexpr Table kJobs{.name = "units",
                      .columns = kColumns,
                      .key = tables::kUnitKey,
                      .key_index = "uq_cluster_id_uuid_start",
                      .tight = tables::kTightOfUnits};

class CurrentRow final : public AnswerRow {
 public:
  explicit CurrentRow(const sqlite::Statement& statement) : statement_(&statement) {}
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return statement_->text(static_cast<int>(column));
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    return statement_->integer(static_cast<int>(column));
  }

 private:
  const sqlite::Statement* statement_;
};

class UnitRow : public ::testing::Test {
 protected:
  void SetUp() override {
    batch_.cluster.id = "hpc";
    batch_.window = {.start_ms = 0, .end_ms = 60'000};
    batch_.updated = "1970-01-01T00:01:00";
    unit_.resource_manager = "slurm";
    unit_.uuid = "7";
    unit_.created_at = "Unknown";
    unit_.started_at = "1";
    unit_.started_at_ts = 1000;
    unit_.allocation = R"({"gpus":1,"cpus":2})";
    std::string sql = create_table(Dialect::kSqlite, kJobs);
    sql += create_key(Dialect::kSqlite, kJobs);
    for (int version = 1; version <= 5; ++version) {
      sql += add_columns(Dialect::kSqlite, kJobs, version);
    }
    sql += add_reference_columns(kJobs, kNewestReference, {});
    sql += "ALTER TABLE units RENAME COLUMN total_outgress_stats TO total_egress_stats";
    const auto created = connection_.execute(sql);
    ASSERT_TRUE(created) << created.error().message;
  }

  void run(const std::string& sql, const std::vector<SqlValue>& values) {
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(sql, '?')), values.size());
    auto statement = connection_.prepare(sql);
    ASSERT_TRUE(statement) << statement.error().message;
    statement->bind_all(values);
    const auto done = statement->run();
    ASSERT_TRUE(done) << done.error().message;
  }
  StoredUnit stored() {
    const StoredColumns columns(kJobs);
    auto statement = connection_.prepare("SELECT " + columns.names() + " FROM units").value();
    EXPECT_TRUE(statement.step().value());
    EXPECT_EQ(columns.uuid(CurrentRow(statement)), "7");
    return columns.read(CurrentRow(statement));
  }
  void insert() {
    run(insert_text(insert_target(kJobs)), unit_values(kJobs, batch_, unit_, nullptr, maps_));
  }
  void update() {
    const StoredUnit before = stored();
    run(update_text(kJobs), unit_values(kJobs, batch_, unit_, &before, maps_));
  }
  std::string text(const std::string& columns) {
    return connection_.query_text("SELECT " + columns + " FROM units").value();
  }

  testing::TempDir dir_;
  sqlite::Connection connection_ =
      sqlite::Connection::open((dir_.path() / "x.db").string(), sqlite::OpenMode::kReadWrite)
          .value();
  Batch batch_;
  Unit unit_;
  MapTexts maps_;
};

TEST_F(UnitRow, AColumnThatIsAddedToTheTableIsStoredReadAndMerged) {
  insert();
  EXPECT_EQ(text("queue"), "");
  unit_.groupname = "long";
  update();
  EXPECT_EQ(text("queue"), "long");
  EXPECT_EQ(stored().unit.groupname, "long");
  unit_.groupname = "short";
  update();
  EXPECT_EQ(text("queue"), "long");  // the first that was known
}

TEST_F(UnitRow, HoldsWhatTheWindowAndTheUnitDeliver) {
  maps_.front() = R"({"walltime":60})";
  maps_.back() = R"({"avg_cpu_usage.x":1})";
  unit_.ignore = true;
  insert();
  EXPECT_EQ(text("resource_manager||' '||cluster_id||' '||uuid||' '||started_at||' '||"
                 "started_at_ts||' '||ignore||' '||num_updates||' '||last_updated_at||' '||"
                 "last_updated_at_ts||allocation||tags||total_time_seconds||ceems_weights"),
            R"(slurm hpc 7 1 1000 1 1 1970-01-01T00:01:00 60000{"cpus":2,"gpus":1}{})"
            R"({"walltime":60}{"avg_cpu_usage.x":1})");
  const StoredUnit row = stored();
  EXPECT_EQ(row.id, 1);
  EXPECT_EQ(row.num_updates, 1);
  EXPECT_EQ(row.last_updated_at_ts, 60'000);
  EXPECT_EQ(row.unit.started_at_ts, 1000);
  EXPECT_EQ(row.unit.started_at, "1");
  EXPECT_EQ(row.maps, maps_);
}

TEST_F(UnitRow, ATimeIsKnownWhenItsMomentIs) {
  insert();
  unit_.created_at = "five";
  unit_.created_at_ts = 5000;
  update();
  EXPECT_EQ(text("created_at||created_at_ts"), "five5000");
  unit_.created_at = "six";
  unit_.created_at_ts = 6000;
  unit_.ended_at = "seven";
  unit_.ended_at_ts = 7000;
  unit_.state = "COMPLETED";
  update();
  EXPECT_EQ(text("created_at||created_at_ts||ended_at||ended_at_ts||state||num_updates"),
            "five5000seven7000COMPLETED3");
}

TEST_F(UnitRow, AnEmptyAllocationDoesNotReplaceOne) {
  insert();
  unit_.allocation = "null";
  unit_.tags = "[1]";  // not an object
  update();
  EXPECT_EQ(text("allocation||tags"), R"({"cpus":2,"gpus":1}{})");
  unit_.allocation = R"({"cpus":4})";
  update();
  EXPECT_EQ(text("allocation"), R"({"cpus":4})");
}

}  // namespace
}  // namespace ceems::store
