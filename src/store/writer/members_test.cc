#include "store/test_database.h"

namespace ceems::store {
namespace {

class Members : public EveryDatabase {
 protected:
  /// Writes an hour in which these users have a job of these projects.
  void write(std::int64_t hour, const std::vector<std::pair<std::string, std::string>>& jobs) {
    auto window = update(kNow + hour * kHour, kNow + (hour + 1) * kHour, {});
    std::map<std::string, model::User> users;
    std::map<std::string, model::Project> projects;
    int number = 0;
    for (const auto& [user, project] : jobs) {
      model::Unit unit = job(std::to_string(hour) + "[" + std::to_string(++number) + "]",
                             kNow + hour * kHour + kMinute, kNow + hour * kHour + 2 * kMinute);
      unit.username = user;
      unit.project = project;
      with_times(unit, 60, 60);
      window.units.push_back(std::move(unit));
      users[user].name = user;
      users[user].projects.push_back(project);
      projects[project].name = project;
      projects[project].users.push_back(user);
    }
    window.users.emplace();
    window.projects.emplace();
    for (const auto& [name, user] : users) {
      window.users->push_back(user);
    }
    for (const auto& [name, project] : projects) {
      window.projects->push_back(project);
    }
    window.members_of_usage = true;
    const auto report = db_->writer().write(window);
    ASSERT_TRUE(report) << report.error().message;
  }
  std::string lists() {
    return text("SELECT name || '=' || projects FROM users ORDER BY name") + " / " +
           text("SELECT name || '=' || users FROM projects ORDER BY name");
  }
};

TEST_P(Members, AreMergedWithThoseOfEarlierJobs) {
  write(0, {{"ada", "p1"}, {"bob", "p2"}});
  EXPECT_EQ(lists(), R"(ada=["p1"] bob=["p2"] / p1=["ada"] p2=["bob"])");
  write(1, {{"ada", "p2"}});
  EXPECT_EQ(lists(), R"(ada=["p1","p2"] bob=["p2"] / p1=["ada"] p2=["ada","bob"])");
  write(2, {});
  EXPECT_EQ(lists(), R"(ada=["p1","p2"] bob=["p2"] / p1=["ada"] p2=["ada","bob"])");
}

TEST_P(Members, LeaveWhenTheyHadNoJobForTheRetentionPeriod) {
  write(0, {{"ada", "p1"}, {"bob", "p2"}});
  write(1, {{"ada", "p2"}});
  ASSERT_TRUE(db_->writer().purge(kNow + 90 * kMinute));
  write(2, {});
  EXPECT_EQ(lists(), R"(ada=["p2"] / p2=["ada"])");
  ASSERT_TRUE(db_->writer().purge(kNow + 150 * kMinute));
  write(3, {});
  EXPECT_EQ(lists(), " / ");
}

TEST_P(Members, OfOtherManagersAreReplacedAsBefore) {
  write(0, {{"ada", "p1"}});
  auto window = update(kNow + kHour, kNow + 2 * kHour, {});
  window.users.emplace().resize(1);
  window.users->front().name = "bob";
  window.users->front().projects = {"p2"};
  window.projects.emplace().resize(1);
  window.projects->front().name = "p2";
  window.projects->front().users = {"bob"};
  ASSERT_TRUE(db_->writer().write(window));
  EXPECT_EQ(lists(), R"(bob=["p2"] / p2=["bob"])");
}

INSTANTIATE_TEST_SUITE_P(,
                         Members,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
