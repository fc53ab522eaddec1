#include "store/fields.h"

#include <gmock/gmock.h>

#include "store/schema/tables.h"

namespace ceems::store {
namespace {

using ::testing::ElementsAre;

std::vector<std::string_view> names(std::span<const Field> fields) {
  std::vector<std::string_view> result;
  for (const Field& field : fields) {
    result.push_back(field.name);
  }
  return result;
}

// Clients read answers field by field in this order.
TEST(Fields, OfUnitsAndUsageStandInTheOrderOfTheReference) {
  EXPECT_THAT(names(unit_fields()),
              ElementsAre("cluster_id", "resource_manager", "uuid", "name", "project", "groupname",
                          "username", "created_at", "started_at", "ended_at", "created_at_ts",
                          "started_at_ts", "ended_at_ts", "elapsed", "state", "allocation",
                          "total_time_seconds", "avg_cpu_usage", "avg_cpu_mem_usage",
                          "total_cpu_energy_usage_kwh", "total_cpu_emissions_gms", "avg_gpu_usage",
                          "avg_gpu_mem_usage", "total_gpu_energy_usage_kwh",
                          "total_gpu_emissions_gms", "total_io_write_stats", "total_io_read_stats",
                          "total_ingress_stats", "total_egress_stats", "total_custom_stats",
                          "avg_custom_stats", "min_custom_stats", "max_custom_stats", "tags"));
  EXPECT_THAT(names(usage_fields().first(kUsageTimes + 2)),
              ElementsAre("cluster_id", "resource_manager", "num_units", "project", "groupname",
                          "username", "total_time_seconds", "avg_cpu_usage"));
  EXPECT_EQ(names(usage_fields().subspan(kUsageTimes)), names(unit_fields().subspan(16, 17)));
  EXPECT_THAT(unit_key_fields(), ElementsAre(0, 2, 8));
  EXPECT_THAT(usage_key_fields(), ElementsAre(0, 5, 3));
}

TEST(Fields, OfAMadeUpTableFollowItsColumns) {
  constexpr std::array kColumns = std::to_array<Column>({
      {.name = "hidden"},
      {.name = "map", .kind = ColumnKind::kMetrics, .place = Place::kMetrics},
      {.name = "when", .kind = ColumnKind::kTime, .place = Place::kBody},
      {.name = "when_ts", .kind = ColumnKind::kMoment, .place = Place::kBody, .always = true},
      {.name = "tags", .kind = ColumnKind::kObject, .place = Place::kLast},
      {.name = "cluster",
       .place = Place::kFirst,
       .always = true,
       .help = "Where.",
       .example = R"("a")"},
  });
  const auto fields = answer_fields({.name = "t", .columns = kColumns, .key = {}, .key_index = ""});
  EXPECT_THAT(names(fields), ElementsAre("cluster", "when", "when_ts", "map", "tags"));
  EXPECT_EQ(fields[0].help, "Where.");
  EXPECT_EQ(fields[0].example, R"("a")");
  EXPECT_FALSE(fields[0].omit_empty);
  EXPECT_EQ(fields[1].kind, FieldKind::kText);
  EXPECT_TRUE(fields[1].omit_empty);
  EXPECT_EQ(fields[2].kind, FieldKind::kInteger);
  EXPECT_EQ(fields[3].kind, FieldKind::kMetrics);
  EXPECT_EQ(fields[4].kind, FieldKind::kObject);
}

// As in the reference: its clients index these keys without asking whether they exist.
TEST(Fields, ThatAnswersAlwaysHave) {
  const auto always = [](std::span<const Field> fields) {
    std::vector<std::string_view> found;
    for (const Field& field : fields) {
      if (!field.omit_empty) {
        found.push_back(field.name);
      }
    }
    return found;
  };
  EXPECT_THAT(always(unit_fields()), ElementsAre("uuid"));
  EXPECT_THAT(always(usage_fields()), ElementsAre("cluster_id", "resource_manager", "num_units",
                                                  "project", "groupname", "username"));
  EXPECT_THAT(always(user_fields()), ElementsAre("cluster_id", "name"));
  EXPECT_THAT(always(project_fields()),
              ElementsAre("cluster_id", "resource_manager", "name", "users"));
  EXPECT_EQ(always(cluster_fields()), names(cluster_fields()));
  EXPECT_EQ(always(stat_fields()), names(stat_fields()));
}

TEST(Fields, AreAllDescribed) {
  for (const auto fields : {unit_fields(), usage_fields(), user_fields(), project_fields(),
                            cluster_fields(), stat_fields()}) {
    for (const Field& field : fields) {
      EXPECT_FALSE(field.help.empty()) << field.name;
      EXPECT_FALSE(field.example.empty()) << field.name;
      EXPECT_EQ(find_field(fields, field.name), &field - fields.data());
    }
  }
}

}  // namespace
}  // namespace ceems::store
