#include "tool/db/tables.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"
#include "tool/db/compare.h"
#include "tool/db/copy.h"
#include "tool/db/copy_state.h"
#include "tool/db/layout.h"
#include "tool/db/migrate.h"
#include "tool/db/progress.h"

namespace ceems::tool::db {
namespace {

TEST(Location, IsAFileADirectoryOrAUrl) {
  const testing::TempDir dir;
  EXPECT_EQ(Location::parse("/x/y.db", "")->file, "/x/y.db");
  EXPECT_EQ(Location::parse(dir.path().string(), "")->file, dir.path().string() + "/ceems.db");
  const auto url = Location::parse("postgresql://ceems@h/d?sslmode=require", "/secret");
  ASSERT_TRUE(url);
  EXPECT_FALSE(url->is_file());
  EXPECT_EQ(url->password_file, "/secret");
  EXPECT_FALSE(Location::parse("", ""));
  EXPECT_FALSE(Location::parse("mysql://h/d", ""));
  EXPECT_FALSE(Location::parse("postgresql://%zz", ""));
}

TEST(Location, RefusesPasswordsWithoutShowingThem) {
  for (const char* url : {"postgresql://u:s3cret@h/d", "postgres://h/d?password=s3cret",
                          "postgresql://h/d?sslpassword=s3cret"}) {
    const auto parsed = Location::parse(url, "");
    ASSERT_FALSE(parsed) << url;
    EXPECT_EQ(parsed.error().message.find("s3cret"), std::string::npos);
    EXPECT_NE(parsed.error().message.find("--password-file"), std::string::npos);
  }
}

constexpr const char* kFeedbackKey = "ceems_feedback: cluster_id uuid started_at_ts rule username";
constexpr const char* kEffectsKey =
    "ceems_node_effects: ended_at_ts cluster_id node uuid started_at_ts";

TEST(Layout, HasTheKeysOfAllTables) {
  const auto layout = current_layout(false);
  ASSERT_TRUE(layout);
  std::vector<std::string> keys;
  for (const TableLayout& table : *layout) {
    std::string key = table.name + ":";
    for (std::size_t i = 0; i < table.key_size; ++i) {
      key += " " + table.columns[table.order[i]].name;
    }
    keys.push_back(key);
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"units: id",
                                            "usage: id",
                                            "users: id",
                                            "projects: id",
                                            "daily_usage: id",
                                            "admin_users: id",
                                            "ceems_watermarks: cluster_id",
                                            "ceems_admin_sources: source name",
                                            "ceems_unit_spans: level span",
                                            "ceems_unit_sums: level span",
                                            "ceems_gaps: id",
                                            "ceems_gap_units: gap_id",
                                            "ceems_project_leads: name cluster_id project",
                                            "ceems_names: cluster_id kind id",
                                            "ceems_unit_facts: id",
                                            "ceems_facts_todo: first_id",
                                            "ceems_unit_reports: cluster_id uuid started_at_ts",
                                            "ceems_findings: cluster_id uuid started_at_ts rule",
                                            "ceems_outbox: id",
                                            "ceems_contacts: username rule",
                                            "ceems_nodes: cluster_id node",
                                            "ceems_node_days: cluster_id day_ms node",
                                            "ceems_node_progress: cluster_id",
                                            "ceems_bills: cluster_id start_ms",
                                            "ceems_flavors: cluster_id region id",
                                            "ceems_members: name cluster_id project",
                                            "ceems_tokens: id",
                                            kFeedbackKey,
                                            kEffectsKey,
                                            "ceems_ended_units: seq",
                                            "ceems_export_targets: name"}));
}

TEST(Layout, KnowsWhatColumnsHold) {
  const auto layout = current_layout(false);
  ASSERT_TRUE(layout);
  const auto content = [&layout](std::string_view table, std::string_view column) {
    const auto found = std::ranges::find(*layout, table, &TableLayout::name);
    return std::ranges::find(found->columns, column, &Column::name)->content;
  };
  EXPECT_EQ(content("units", "avg_cpu_usage"), Content::kMetrics);
  EXPECT_EQ(content("units", "tags"), Content::kObject);
  EXPECT_EQ(content("units", "name"), Content::kText);
  EXPECT_EQ(content("users", "tags"), Content::kList);
  EXPECT_EQ(content("ceems_unit_sums", "weight_avg_cpu_usage"), Content::kMetrics);
}

TEST(Layout, OrdersNumbersAsNumbersAndTextsAsBytes) {
  const TableLayout table{.name = "t",
                          .columns = {{.name = "id", .integer = true}, {.name = "name"}},
                          .order = {0, 1},
                          .key_size = 1};
  const auto row = [](const char* id, const char* name) {
    return Row{{.text = id}, {.text = name}};
  };
  EXPECT_LT(table.compare(row("9", "b"), row("10", "a"), 2), 0);
  EXPECT_GT(table.compare(row("9", "b"), row("9", "a"), 2), 0);
  EXPECT_EQ(table.compare(row("9", "b"), row("9", "a"), 1), 0);
  EXPECT_GT(table.compare(row("9", "\xC3\xA9"), row("9", "z"), 2), 0);
  EXPECT_EQ(table.select(true),
            "SELECT id,name FROM t WHERE (id) > (?) ORDER BY id,coalesce(name,'')");
}

TEST(CopyState, KeepsKeysOfAnyText) {
  const Row key{{.text = "1"}, {.text = "a\"b\\\n\t"}, {.text = ""}};
  EXPECT_EQ(parse_key(key_text(key)), key);
  for (const char* bad : {"", "[", "[]", "[1]", "[\"a\"", "[\"a\"]x", "{}"}) {
    EXPECT_FALSE(parse_key(bad)) << bad;
  }
}

TEST(Conversion, MakesValuesThatPostgresHolds) {
  const TableLayout table{.name = "users",
                          .columns = {{.name = "id", .integer = true},
                                      {.name = "name"},
                                      {.name = "projects", .content = Content::kList},
                                      {.name = "map", .content = Content::kMetrics}}};
  const Row damaged{{.null = true}, {.text = "a\xFF"}, {.text = "p1"}, {.null = true}};
  Row row = damaged;
  EXPECT_EQ(Conversion(store::Dialect::kPostgres, table).apply(row), 2);
  EXPECT_EQ(row, (Row{{.text = "0"}, {.text = "a\xEF\xBF\xBD"}, {.text = "[]"}, {.text = "{}"}}));
  EXPECT_EQ(Conversion(store::Dialect::kPostgres, table).apply(row), 0);
  row = damaged;
  EXPECT_EQ(Conversion(store::Dialect::kSqlite, table).apply(row), 0);
  EXPECT_EQ(row, damaged);
}

/// Two files with the current tables.
class TwoFiles : public ::testing::Test {
 protected:
  std::unique_ptr<Tables> open(const char* name, Use use) {
    return Tables::open({.file = (dir_.path() / name).string()}, use).value();
  }
  void make(const char* name, const std::string& sql) {
    const auto tables = open(name, Use::kWrite);
    ASSERT_TRUE(tables->upgrade("UTC", false));
    const auto done = tables->execute(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  testing::TempDir dir_;
  Progress progress_;
};

TEST_F(TwoFiles, AreEqualAfterACopyInSmallBatches) {
  std::string sql;
  for (int i = 0; i < 50; ++i) {
    sql += fmt::format(
        "INSERT INTO users (cluster_id, name) VALUES ('c', 'u{0}');"
        "INSERT INTO ceems_gap_units VALUES ({1}, 'x', NULL, 1, 2, '{{}}');",
        i, i / 10);
  }
  make("a.db", sql);
  const auto from = open("a.db", Use::kAlone);
  const auto to = open("b.db", Use::kWrite);
  const auto report = copy_database(*from, *to, {.batch = 3}, progress_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->equal());
  EXPECT_EQ(report->copied, 100);
  EXPECT_EQ(to->integer("SELECT count(*) FROM ceems_gap_units WHERE started_at IS NULL"), 50);
  EXPECT_EQ(to->has_table("ceems_copy"), false);
}

TEST_F(TwoFiles, KeepsADestinationThatHasRows) {
  make("a.db", "");
  make("b.db", "INSERT INTO users (cluster_id, name) VALUES ('c', 'u')");
  const auto from = open("a.db", Use::kAlone);
  const auto to = open("b.db", Use::kWrite);
  for (const bool restart : {false, true}) {
    const auto report = copy_database(*from, *to, {.restart = restart}, progress_);
    ASSERT_FALSE(report);
    EXPECT_NE(report.error().message.find("the table users has rows"), std::string::npos);
  }
  EXPECT_EQ(to->integer("SELECT count(*) FROM users"), 1);
}

TEST_F(TwoFiles, AreOpenedForWritingOnce) {
  make("a.db", "");
  const auto first = open("a.db", Use::kWrite);
  const auto second = Tables::open({.file = (dir_.path() / "a.db").string()}, Use::kAlone);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(open("a.db", Use::kRead));
}

TEST_F(TwoFiles, AreNotUpgradedIfTheyAreNewer) {
  make("a.db", "UPDATE schema_migrations SET version = 99");
  const auto plan = plan_migration(*open("a.db", Use::kRead), false);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("newer"), std::string::npos);
}

TEST(Numbers, AreShownForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1'250'000'000), "1.2 GB");
}

}  // namespace
}  // namespace ceems::tool::db
