// Custom metrics in both versions of the reference's tables, on every database.
#include <gmock/gmock.h>

#include "store/sqlite/schema.h"
#include "store/test_database.h"

namespace ceems::store {
namespace {

using model::Metric;
using model::MetricMap;

model::Unit measured(const std::string& uuid,
                     double walltime,
                     const MetricMap& total,
                     const MetricMap& mean,
                     const MetricMap& least,
                     const MetricMap& greatest) {
  model::Unit unit = job(uuid, kNow);
  with_times(unit, walltime, 2 * walltime);
  with(unit, Metric::kTotalCustomStats, total);
  with(unit, Metric::kAvgCustomStats, mean);
  with(unit, Metric::kMinCustomStats, least);
  with(unit, Metric::kMaxCustomStats, greatest);
  with(unit, Metric::kAvgCpuUsage, {{"global", 10}});
  return unit;
}

constexpr const char* kAllColumns =
    "total_custom_stats || avg_custom_stats || min_custom_stats || max_custom_stats";

class CustomStats : public EveryDatabase {
 protected:
  CustomStats() { custom_stats_ = true; }

  [[nodiscard]] UsageGroup usage(TimeRange range, bool daily = false) const {
    CurrentUsageQuery query;
    query.rows.members.everybody = true;
    query.updated = range;
    query.daily = daily;
    query.maps = kAllMaps;
    const auto groups = db_->reader().current_usage(query);
    if (!groups || groups->size() != 1) {
      ADD_FAILURE() << (groups ? std::to_string(groups->size()) : groups.error().message);
      return {};
    }
    return groups->front();
  }
  static const MetricMap& map(const UsageGroup& group, Metric metric) {
    return group.maps.at(static_cast<std::size_t>(metric) + 1);
  }
  static void expect_sums(const UsageGroup& group) {
    EXPECT_EQ(map(group, Metric::kTotalCustomStats), (MetricMap{{"a", 4}, {"b", 5}}));
    // (10*100 + 40*200 + 20*300)/600
    EXPECT_EQ(map(group, Metric::kAvgCustomStats), (MetricMap{{"x", 25}}));
    EXPECT_EQ(map(group, Metric::kMinCustomStats), (MetricMap{{"t", -7}, {"u", 8}}));
    EXPECT_EQ(map(group, Metric::kMaxCustomStats), (MetricMap{{"t", 90}}));
    EXPECT_EQ(map(group, Metric::kAvgCpuUsage), (MetricMap{{"global", 10}}));
  }
  void write_both() {
    write(kNow, kNow + kMinute,
          {measured("1", 100, {{"a", 1}}, {{"x", 10}}, {{"t", 5}}, {{"t", 50}})});
    write(
        kNow + kMinute, kNow + 2 * kMinute,
        {measured("1", 200, {{"a", 2}, {"b", 5}}, {{"x", 40}}, {{"t", -7}, {"u", 8}}, {{"t", 90}}),
         measured("2", 300, {{"a", 1}}, {{"x", 20}}, {{"t", 3}}, {{"t", 70}})});
  }
};

TEST_P(CustomStats, WindowsAreMergedByTheKindOfTheMetric) {
  write_both();
  EXPECT_EQ(text("SELECT version FROM schema_migrations"), "10");
  // The mean is weighted with the running time: (10*100 + 40*200)/300
  EXPECT_EQ(text(std::string("SELECT ") + kAllColumns + " FROM units WHERE uuid = '1'"),
            R"({"a":3,"b":5}{"x":30}{"t":-7,"u":8}{"t":90})");
  for (const char* table : {"usage", "daily_usage"}) {
    EXPECT_EQ(text(std::string("SELECT ") + kAllColumns + " FROM " + table),
              R"({"a":4,"b":5}{"x":25}{"t":-7,"u":8}{"t":90})")
        << table;
  }
}

TEST_P(CustomStats, CurrentUsageCombinesUnitsAndDays) {
  write_both();
  expect_sums(usage({kNow, kNow + kHour}));
  expect_sums(usage({kNow, kNow + kHour}, true));
}

TEST_P(CustomStats, SumsOverTimeGiveTheSame) {
  write_both();
  for (int hour = 1; hour < 40; ++hour) {  // so that the spans before are summed up
    write(kNow + (hour == 1 ? 2 * kMinute : (hour - 1) * kHour), kNow + hour * kHour, {});
  }
  EXPECT_NE(text("SELECT count(*) FROM ceems_unit_spans"), "0");
  EXPECT_NE(text("SELECT count(*) FROM ceems_unit_sums WHERE min_custom_stats LIKE '%-7%'"), "0");
  expect_sums(usage({kNow - kDay, kNow + 38 * kHour}));
}

TEST_P(CustomStats, AGroupWithoutExtremesGetsNone) {
  write_both();
  model::Unit other = job("3", kNow);
  other.username = "bob";
  write(kNow + 2 * kMinute, kNow + 3 * kMinute, {with_times(other, 60, 60)});
  CurrentUsageQuery query;
  query.rows.members.everybody = true;
  query.updated = {kNow, kNow + kHour};
  query.maps = kAllMaps;
  const auto groups = db_->reader().current_usage(query);
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->size(), 2U);
  EXPECT_EQ(groups->at(1).username, "bob");
  EXPECT_EQ(map(groups->at(1), Metric::kTotalCustomStats), (MetricMap{{"a", 0}, {"b", 0}}));
  EXPECT_TRUE(map(groups->at(1), Metric::kMinCustomStats).empty());
  EXPECT_TRUE(map(groups->at(1), Metric::kMaxCustomStats).empty());
}

TEST_P(CustomStats, AFilledGapAddsThem) {
  model::Unit bare = job("1", kNow);
  with_times(bare, 100, 200);
  ClusterUpdate window = update(kNow, kNow + kMinute, {bare});
  window.gaps = {{.updater = "u", .parts = {"min_custom_stats.t"}}};
  write(window);
  const auto gaps = db_->writer().gaps("hpc");
  ASSERT_TRUE(gaps);
  ASSERT_EQ(gaps->size(), 1U);
  auto units = db_->writer().gap_units(gaps->front().id);
  ASSERT_TRUE(units);
  with(units->front(), Metric::kMinCustomStats, {{"t", 4}});
  with(units->front(), Metric::kAvgCustomStats, {{"x", 6}});
  const auto filled =
      db_->writer().fill_gap({.cluster = {.id = "hpc", .manager = "slurm", .updaters = {}},
                              .gap_id = gaps->front().id,
                              .units = *units});
  ASSERT_TRUE(filled) << filled.error().message;
  for (const char* table : {"units", "usage", "daily_usage"}) {
    EXPECT_EQ(text(std::string("SELECT min_custom_stats || avg_custom_stats FROM ") + table),
              R"({"t":4}{"x":6})")
        << table;
  }
}

INSTANTIATE_TEST_SUITE_P(Databases,
                         CustomStats,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

class OldTables : public AnyDatabase {};

TEST_F(OldTables, WithoutColumnsCustomMetricsAreDroppedAndTheRestIsKept) {
  EXPECT_EQ(text("SELECT version FROM schema_migrations"), "9");
  write(kNow, kNow + kMinute,
        {measured("1", 100, {{"a", 1}}, {{"x", 10}}, {{"t", 5}}, {{"t", 50}})});
  write(kNow + kMinute, kNow + 2 * kMinute,
        {measured("1", 300, {{"a", 1}}, {{"x", 10}}, {{"t", 5}}, {{"t", 50}})});
  EXPECT_EQ(text("SELECT name FROM pragma_table_info('units') WHERE name LIKE '%custom%'"), "");
  for (const char* table : {"units", "usage", "daily_usage"}) {
    EXPECT_EQ(text(std::string("SELECT total_time_seconds || avg_cpu_usage || num_updates FROM ") +
                   table),
              R"({"alloc_cputime":800,"walltime":400}{"global":10}2)")
        << table;
  }
  const auto all = unit_fields();
  std::vector<std::size_t> fields;
  for (const std::string_view name : {"uuid", "avg_custom_stats", "total_egress_stats", "tags"}) {
    fields.push_back(*find_field(all, name));
  }
  UnitQuery query;
  query.owners.everybody = true;
  EXPECT_EQ(column(db_->reader().units(query, fields), 0), Texts{"1"});
  EXPECT_EQ(column(db_->reader().units(query, fields), 1), Texts{"{}"});
  CurrentUsageQuery usage;
  usage.rows.members.everybody = true;
  usage.updated = {kNow, kNow + kHour};
  usage.maps = kAllMaps;
  const auto groups = db_->reader().current_usage(usage);
  ASSERT_TRUE(groups) << groups.error().message;
  ASSERT_EQ(groups->size(), 1U);
  EXPECT_TRUE(groups->front().maps.back().empty());
  EXPECT_EQ(groups->front().maps[1], (MetricMap{{"global", 10}}));
  const std::vector<std::size_t> usage_field{*find_field(usage_fields(), "max_custom_stats")};
  EXPECT_EQ(column(db_->reader().usage({.members = {.everybody = true}}, usage_field), 0),
            Texts{"{}"});
}

TEST_F(OldTables, ColumnsAreAddedWhenACustomMetricIsConfigured) {
  write(kNow, kNow + kMinute,
        {measured("1", 100, {{"a", 1}}, {{"x", 10}}, {{"t", 5}}, {{"t", 50}})});
  custom_stats_ = true;
  open();
  EXPECT_EQ(text("SELECT version || ' ' || dirty FROM schema_migrations"), "10 0");
  for (const char* table : {"units", "usage", "daily_usage"}) {
    EXPECT_EQ(text("SELECT group_concat(name || type || dflt_value, ' ') FROM pragma_table_info('" +
                   std::string(table) + "') WHERE name LIKE '%custom%'"),
              "total_custom_stats'{}' avg_custom_stats'{}' min_custom_stats'{}'"
              " max_custom_stats'{}'")
        << table;
  }
  EXPECT_EQ(text(std::string("SELECT ") + kAllColumns + " FROM units"), "{}{}{}{}");
  write(kNow + kMinute, kNow + 2 * kMinute,
        {measured("1", 300, {{"a", 1}}, {{"x", 10}}, {{"t", 5}}, {{"t", 50}})});
  EXPECT_EQ(text(std::string("SELECT ") + kAllColumns + " FROM units"),
            R"({"a":1}{"x":10}{"t":5}{"t":50})");
  // Without a custom metric it stays as it is.
  custom_stats_ = false;
  open();
  EXPECT_EQ(text("SELECT version FROM schema_migrations"), "10");
  EXPECT_EQ(text(std::string("SELECT ") + kAllColumns + " FROM usage"),
            R"({"a":1}{"x":10}{"t":5}{"t":50})");
  model::Unit later = job("1", kNow);
  write(kNow + 2 * kMinute, kNow + 3 * kMinute, {with_times(later, 1, 1)});
  EXPECT_EQ(text("SELECT total_custom_stats FROM units"), R"({"a":1})");
}

}  // namespace
}  // namespace ceems::store
