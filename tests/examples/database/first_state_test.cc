#include "first_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/schema/table_sql.h"

namespace ceems::example {
namespace {

using store::Dialect;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kColumns = store::tables::joined(store::tables::kUnitColumns, kFirstState);
constexpr store::Table kTable{.name = "units",
                              .columns = kColumns,
                              .key = store::tables::kUnitKey,
                              .key_index = "uq_cluster_id_uuid_start",
                              .tight = store::tables::kTightOfUnits};

TEST(FirstState, IsAddedToDatabasesOfEarlierVersions) {
  for (const Dialect dialect : {Dialect::kSqlite, Dialect::kPostgres}) {
    EXPECT_EQ(add_columns(dialect, kTable, store::kOwnVersion), "");
    EXPECT_THAT(add_columns(dialect, kTable, store::kOwnVersion + 1), HasSubstr("first_state"));
    EXPECT_THAT(create_table(dialect, kTable), Not(HasSubstr("first_state")));
  }
  EXPECT_EQ(add_columns(Dialect::kSqlite, kTable, store::kOwnVersion + 1),
            "ALTER TABLE units ADD COLUMN first_state text;");
}

TEST(FirstState, IsWrittenWithTheUnitAndKept) {
  EXPECT_THAT(insert_text(kTable), HasSubstr("first_state"));
  EXPECT_THAT(find_text(kTable), HasSubstr("first_state"));  // what is stored decides
}

}  // namespace
}  // namespace ceems::example
