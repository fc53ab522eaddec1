#include "access/visible.h"

#include <map>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/test_database.h"

namespace ceems::access {
namespace {

using store::kNow;

class VisibleTest : public store::AnyDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
    for (const std::string cluster : {"a", "b"}) {
      store::ClusterUpdate update;
      update.cluster.id = cluster;
      update.window = {kNow, kNow + 1000};
      for (const std::string user : {"ada", "bob"}) {
        model::Unit unit;
        unit.uuid = user + "-" + cluster;
        unit.name = "name of " + user;
        unit.username = user;
        unit.project = "fluids";
        unit.state = "COMPLETED";
        unit.started_at = "2026-01-01T00:00:00+0000";
        unit.started_at_ts = kNow;
        unit.tags = R"({"workdir":"/home/x"})";
        update.units.push_back(unit);
      }
      write(update);
    }
  }

  /// Name, tags, state and start of each unit, by uuid.
  std::map<std::string, std::string> read(const Identity& identity, const store::Scope& owners) {
    const auto fields = indexes({"tags", "uuid", "name", "state", "started_at_ts"});
    std::map<std::string, std::string> rows;
    store::UnitQuery query;
    query.owners = owners;
    auto cursor = read_units(db_->reader(), identity, query, fields);
    if (!cursor) {
      return {{"error", cursor.error().message}};
    }
    while (true) {
      const auto more = (*cursor)->next();
      if (!more || !*more) {
        return rows;
      }
      const store::Cursor& row = **cursor;
      rows[std::string(row.text(1))] =
          fmt::format("{}|{}|{}|{}", row.text(2), row.text(0), row.text(3), row.integer(4) - kNow);
    }
  }

  static std::vector<std::size_t> indexes(std::initializer_list<std::string_view> names) {
    std::vector<std::size_t> fields;
    for (const std::string_view name : names) {
      fields.push_back(store::find_field(store::unit_fields(), name).value_or(0));
    }
    return fields;
  }
};

constexpr std::string_view kWhole = R"(|{"workdir":"/home/x"}|COMPLETED|0)";
constexpr std::string_view kWithheld = "||COMPLETED|0";

std::string whole(const std::string& user) {
  return "name of " + user + std::string(kWhole);
}

TEST(SeesUnitField, EveryFieldIsDecided) {
  std::vector<std::string_view> withheld;
  for (const store::Field& field : store::unit_fields()) {
    EXPECT_TRUE(sees_unit_field(Role::kAdmin, field.name)) << field.name;
    for (const Role role : {Role::kNobody, Role::kUser, Role::kProjectLead}) {
      EXPECT_FALSE(sees_unit_field(role, field.name)) << field.name;
    }
    if (!sees_unit_field(Role::kSupport, field.name)) {
      withheld.push_back(field.name);
    }
  }
  EXPECT_THAT(withheld, ::testing::ElementsAre("name", "tags"))
      << "a field that no person wrote belongs to kShownToSupport, others to docs/api/access.md";
  EXPECT_FALSE(sees_unit_field(Role::kSupport, "a future field"));
}

TEST_F(VisibleTest, AdminsSeeAll) {
  const Identity root{.user = "root", .role = Role::kAdmin};
  const auto rows = read(root, chosen_rows(root, {}, {}));
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows.at("ada-a"), whole("ada"));
  EXPECT_EQ(rows.at("bob-b"), whole("bob"));
}

TEST_F(VisibleTest, SupportSeesFieldsFromManagersAndItsOwnRowsWhole) {
  const Identity ada{.user = "ada", .role = Role::kSupport};
  const auto rows = read(ada, chosen_rows(ada, {}, {}));
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows.at("ada-a"), whole("ada"));
  EXPECT_EQ(rows.at("ada-b"), whole("ada"));
  EXPECT_EQ(rows.at("bob-a"), kWithheld);
  EXPECT_EQ(rows.at("bob-b"), kWithheld);
  EXPECT_EQ(read(ada, chosen_rows(ada, {"bob"}, {})).at("bob-a"), kWithheld);
}

TEST_F(VisibleTest, SupportThatLeadsAProjectSeesItsRowsWholeOnThatCluster) {
  const Identity sue{.user = "sue", .role = Role::kSupport, .led = {{"b", "fluids"}}};
  const auto rows = read(sue, chosen_rows(sue, {}, {}));
  EXPECT_EQ(rows.at("bob-a"), kWithheld);
  EXPECT_EQ(rows.at("bob-b"), whole("bob"));
}

TEST_F(VisibleTest, LeadsSeeRowsOfTheirProjectsWholeOnlyOnThatCluster) {
  const Identity lea{.user = "lea", .role = Role::kProjectLead, .led = {{"b", "fluids"}}};
  const auto rows = read(lea, own_rows(lea, {}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.at("bob-b"), whole("bob"));
  EXPECT_EQ(rows.at("ada-b"), whole("ada"));
}

TEST_F(VisibleTest, UsersSeeTheirOwnRows) {
  const Identity ada{.user = "ada", .role = Role::kUser};
  const auto rows = read(ada, own_rows(ada, {}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.at("ada-a"), whole("ada"));
}

TEST_F(VisibleTest, ACallerWithoutIdentityReadsNothing) {
  const auto fields = indexes({"uuid"});
  store::UnitQuery query;
  query.owners.everybody = true;
  const auto rows = read_units(db_->reader(), {}, query, fields);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace ceems::access
