#include "store/writer/account_names.h"

#include "store/test_database.h"

namespace ceems::store {
namespace {

using Names = std::map<std::string, std::string>;

class AccountNames : public EveryDatabase {
 protected:
  /// Writes a window with these names of users.
  Result<WriteReport> give(std::int64_t hour, Names users) {
    auto window = update(kNow + hour * kHour, kNow + (hour + 1) * kHour,
                         {job(std::to_string(hour), kNow + hour * kHour + kMinute)});
    window.names.users.by_id = std::move(users);
    return db_->writer().write(window);
  }
};

TEST_P(AccountNames, OnceGivenStayWithTheirId) {
  ASSERT_TRUE(give(0, {{"u1", "ann"}, {"u2", "ann@d2"}}));
  open();
  const auto names = db_->writer().account_names("hpc");
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(names->users.by_id, (Names{{"u1", "ann"}, {"u2", "ann@d2"}}));
  EXPECT_TRUE(names->projects.by_id.empty());
  EXPECT_TRUE(db_->writer().account_names("other")->users.by_id.empty());
  ASSERT_TRUE(db_->writer().purge(kNow + 1000 * kDay));
  EXPECT_EQ(db_->writer().account_names("hpc")->users.by_id.size(), 2U);
}

TEST_P(AccountNames, OfAnotherIdAreRefusedWithTheWholeWindow) {
  ASSERT_TRUE(give(0, {{"u1", "ann"}}));
  for (const Names& names : {Names{{"u2", "ann"}}, Names{{"u1", "bob"}}}) {
    const auto report = give(1, names);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kUnavailable);
  }
  EXPECT_EQ(*db_->writer().watermark("hpc"), kNow + kHour);
  EXPECT_EQ(text("SELECT count(*) FROM units WHERE uuid='1'"), "0");
  EXPECT_TRUE(give(1, {{"u2", "bob"}}));
}

TEST_P(AccountNames, OfUsageWithoutAnIdAreListed) {
  ASSERT_TRUE(give(0, {}));
  auto names = db_->writer().account_names("hpc");
  ASSERT_TRUE(names);
  EXPECT_EQ(names->users.without_id, (std::set<std::string>{"ada"}));
  EXPECT_EQ(names->projects.without_id, (std::set<std::string>{"fluids"}));
  ASSERT_TRUE(give(1, {{"u1", "ada"}}));
  EXPECT_TRUE(db_->writer().account_names("hpc")->users.without_id.empty());
}

INSTANTIATE_TEST_SUITE_P(,
                         AccountNames,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
