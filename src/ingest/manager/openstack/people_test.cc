#include "ingest/manager/openstack/people.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/openstack/openstack_test_support.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Fixture = CloudFixture;

TEST(OpenstackPeople, AreUsersWithProjectsAndProjectsWithUsers) {
  Fixture f;
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  const auto people = f.manager().fetch_users_projects(kWindow, {});
  ASSERT_TRUE(people);
  ASSERT_EQ(people->users.size(), 2U);
  EXPECT_EQ(people->users[0].uid, "u1");
  EXPECT_EQ(people->users[0].name, "ann");
  EXPECT_THAT(people->users[0].projects, ElementsAre("alpha", "beta"));
  ASSERT_EQ(people->projects.size(), 2U);
  EXPECT_EQ(people->projects[0].uid, "p1");
  EXPECT_EQ(people->projects[0].name, "alpha");
  EXPECT_THAT(people->projects[0].users, ElementsAre("ann", "bob"));
}

TEST(OpenstackPeople, WithoutProjectsKeepTheirName) {
  Fixture f;
  f.cloud.set(projects_url("u2"), named_json("projects", {}));
  EXPECT_THAT(f.projects(), ElementsAre(::testing::Pair("ann", ElementsAre("alpha", "beta")),
                                        ::testing::Pair("bob", IsEmpty())));
}

TEST(OpenstackPeople, LoseAProjectWithTheFirstAnswerThatDoesNotHaveIt) {
  Fixture f;
  EXPECT_THAT(f.projects()["ann"], ElementsAre("alpha", "beta"));
  f.cloud.set(projects_url("u1"), named_json("projects", {{"p2", "beta"}}));
  EXPECT_THAT(f.projects()["ann"], ElementsAre("beta"));
  f.cloud.set(kUsers, named_json("users", {{"u2", "bob"}}));
  EXPECT_FALSE(f.projects().contains("ann"));
}

TEST(OpenstackPeople, ThatAreDisabledHaveNoProjects) {
  Fixture f;
  f.cloud.set(kUsers, R"({"users":[{"id":"u1","name":"ann"},
                                   {"id":"u2","name":"bob","enabled":false}]})");
  EXPECT_THAT(f.projects()["bob"], IsEmpty());
  EXPECT_EQ(f.cloud.count("u2/projects"), 0U);
}

TEST(OpenstackPeople, KeepTheirProjectsWhileTheirListCannotBeRead) {
  Fixture f;
  EXPECT_THAT(f.projects()["ann"], ElementsAre("alpha", "beta"));
  for (const auto& [status, body] : {std::pair(500, "{}"), {403, "{}"}, {200, "{"}, {200, "{}"}}) {
    f.cloud.set(projects_url("u1"), body, status);
    f.cloud.set(projects_url("u2"), named_json("projects", {{"p2", "beta"}}));
    EXPECT_THAT(f.projects()["ann"], ElementsAre("alpha", "beta")) << status << body;
    EXPECT_THAT(f.projects()["bob"], ElementsAre("beta")) << "others go on";
  }
}

TEST(OpenstackPeople, AreAnErrorWhileSomebodysProjectsWereNeverRead) {
  Fixture f;
  f.cloud.set(projects_url("u2"), "", 500);
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));  // no servers, no names needed
  EXPECT_FALSE(f.manager().fetch_users_projects(kWindow, {}));
}

TEST(OpenstackPeople, AreLookedUpOneByOneWhileTheirListGoesRoundInACircle) {
  // Keystone over LDAP with list_limit ignores the marker.
  Fixture f;
  f.cloud.set(kUsers, R"({"users":[{"id":"u1","name":"ann"}],
                          "links":{"next":"http://keystone/v3/users?marker=u1"}})");
  f.live = {server_json("s1", "ACTIVE", "u7", "p7")};
  f.cloud.set(std::string(kUsers) + "/u7", R"({"user":{"id":"u7","name":"eve"}})");
  f.cloud.set("http://key/v3/projects/p7", R"({"project":{"id":"p7","name":"gamma"}})");
  const auto units = f.manager().fetch_units(kWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 1U);
  EXPECT_EQ(units->at(0).username, "eve");
  EXPECT_EQ(units->at(0).project, "gamma");
  // No user loses a project.
  const auto people = f.manager().fetch_users_projects(kWindow, {});
  ASSERT_FALSE(people);
  EXPECT_THAT(people.error().message, HasSubstr("pages go round in a circle"));
}

TEST(OpenstackPeople, WhoseRecordCannotBeReadDoNotHoldUpTheOthersForever) {
  // Keystone over LDAP answers 500 for an entry that it cannot decode.
  for (const bool list : {true, false}) {
    Fixture f;
    if (!list) {
      f.cloud.set(kUsers, "", 403);
      f.cloud.set(std::string(kUsers) + "/u1", R"({"user":{"id":"u1","name":"ann"}})");
      f.cloud.set("http://key/v3/projects/p1", R"({"project":{"id":"p1","name":"alpha"}})");
    }
    f.live = {server_json("s1", "ACTIVE", "a-bad-one"), server_json("s2")};
    f.cloud.set(std::string(kUsers) + "/a-bad-one", "", 500);
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(f.manager().fetch_units(kWindow, {})) << "it may answer the next time";
    }
    for (int i = 0; i < 2; ++i) {
      const auto units = f.manager().fetch_units(kWindow, {});
      ASSERT_TRUE(units) << units.error().message;
      ASSERT_EQ(units->size(), 2U);
      EXPECT_EQ(units->at(0).username, "");
      EXPECT_EQ(units->at(0).project, "alpha");
      EXPECT_EQ(units->at(1).username, "ann");
    }
    f.cloud.set(std::string(kUsers) + "/a-bad-one", R"({"user":{"id":"x","name":"eve"}})");
    EXPECT_EQ(f.manager().fetch_units(kWindow, {})->at(0).username, "eve");
  }
}

TEST(OpenstackPeople, AreAnErrorAsLongAsKeystoneAnswersNothing) {
  Fixture f;
  f.live = {server_json("s1", "ACTIVE", "u7"), server_json("s2")};
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  f.live = {server_json("s1", "ACTIVE", "u8"), server_json("s2")};
  for (const std::string& url : {std::string(kUsers), kUsers + "/u1", kUsers + "/u8"}) {
    f.cloud.set(url, "", 503);
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(f.manager().fetch_units(kWindow, {}));
  }
}

TEST(OpenstackPeople, AreAnErrorWhereAnAnswerIsEmpty) {
  for (const std::string key : {"users", "projects"}) {
    Fixture f;
    EXPECT_THAT(f.projects(), Not(IsEmpty()));
    if (key == "users") {
      f.cloud.set(kUsers, R"({"users":[]})");
    } else {
      f.cloud.set(projects_url("u1"), R"({"projects":[]})");
      f.cloud.set(projects_url("u2"), R"({"projects":[]})");
    }
    ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
    const auto people = f.manager().fetch_users_projects(kWindow, {});
    ASSERT_FALSE(people) << key;
    EXPECT_THAT(people.error().message, HasSubstr("Keystone lists no "));
  }
}

TEST(OpenstackPeople, AreNotAskedForOneByOneWhenAllFail) {
  Fixture f;
  std::vector<std::pair<std::string, std::string>> users;
  for (int i = 0; i < 500; ++i) {
    users.emplace_back(fmt::format("x{}", i), fmt::format("n{}", i));
    f.cloud.set(projects_url(users.back().first), "", 503);
  }
  f.cloud.set(kUsers, named_json("users", users));
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  EXPECT_FALSE(f.manager().fetch_users_projects(kWindow, {}));
  EXPECT_LT(f.cloud.count("/projects"), 30U);
}

TEST(OpenstackPeople, OfTheSameNameInTwoDomainsAreToldApart) {
  Fixture f;
  f.cloud.set(kUsers, R"({"users":[{"id":"u1","name":"ann","domain_id":"ldap"},
                                   {"id":"u2","name":"ann","domain_id":"default"}]})");
  f.cloud.set(projects_url("u1"), R"({"projects":[{"id":"p1","name":"dev","domain_id":"ldap"}]})");
  f.cloud.set(projects_url("u2"),
              R"({"projects":[{"id":"p2","name":"dev","domain_id":"default"}]})");
  EXPECT_THAT(f.projects(), ElementsAre(::testing::Pair("ann", ElementsAre("dev")),
                                        ::testing::Pair("ann@ldap", ElementsAre("dev@ldap"))));
}

/// The user u1 is ann of the domain ldap. Further users are of the domain default.
void set_users(Fixture& f, const std::vector<std::string>& others) {
  std::string list = R"({"id":"u1","name":"ann","domain_id":"ldap"})";
  for (const auto& id : others) {
    list += fmt::format(R"(,{{"id":"{}","name":"ann","domain_id":"default"}})", id);
    f.cloud.set(projects_url(id), named_json("projects", {{"p2", "beta"}}));
  }
  f.cloud.set(kUsers, fmt::format(R"({{"users":[{}]}})", list));
}

TEST(OpenstackPeople, OfOtherDomainsAlwaysHaveASuffix) {
  Fixture f;
  set_users(f, {});
  f.cloud.set(projects_url("u1"), R"({"projects":[{"id":"p1","name":"dev","domain_id":"ldap"}]})");
  EXPECT_THAT(f.projects(), ElementsAre(::testing::Pair("ann@ldap", ElementsAre("dev@ldap"))));
}

TEST(OpenstackPeople, DoNotInheritTheNameOfANamesakeWhoIsDeleted) {
  Fixture f;
  set_users(f, {"u2"});
  EXPECT_THAT(f.projects(), ElementsAre(::testing::Pair("ann", ElementsAre("beta")),
                                        ::testing::Pair("ann@ldap", ElementsAre("alpha", "beta"))));
  set_users(f, {});
  EXPECT_THAT(f.projects(), ElementsAre(::testing::Pair("ann@ldap", ElementsAre("alpha", "beta"))));
  set_users(f, {"u3"});
  EXPECT_THAT(f.projects(), ElementsAre(::testing::Pair("ann@ldap", ElementsAre("alpha", "beta")),
                                        ::testing::Pair("ann@u3", ElementsAre("beta"))));
}

TEST(OpenstackPeople, KeepTheirNameWhenTheyAreRenamed) {
  Fixture f;
  EXPECT_TRUE(f.projects().contains("ann"));
  f.cloud.set(kUsers, named_json("users", {{"u1", "anna"}, {"u2", "ann"}}));
  EXPECT_THAT(f.projects(), ElementsAre(::testing::Pair("ann", ElementsAre("alpha", "beta")),
                                        ::testing::Pair("bob", ElementsAre("alpha"))));
}

TEST(OpenstackPeople, KeepTheNamesThatTheDatabaseHas) {
  Fixture f;
  model::AccountNames stored;
  stored.users = {.by_id = {{"u1", "ann@ldap"}, {"gone", "bob"}}, .without_id = {"cat"}};
  f.manager().restore_names(stored);
  f.cloud.set(kUsers, named_json("users", {{"u1", "ann"}, {"u2", "bob"}, {"u3", "cat"}}));
  f.cloud.set(projects_url("u3"), named_json("projects", {}));
  EXPECT_THAT(f.projects(), ElementsAre(::testing::Pair("ann@ldap", ElementsAre("alpha", "beta")),
                                        ::testing::Pair("bob@u2", ElementsAre("alpha")),
                                        ::testing::Pair("cat@u3", IsEmpty())));
  EXPECT_EQ(f.manager().new_names().users.by_id,
            (std::map<std::string, std::string>{{"u2", "bob@u2"}, {"u3", "cat@u3"}}));
  EXPECT_FALSE(f.manager().new_names().projects.by_id.empty());
  f.manager().restore_names(std::nullopt);
  EXPECT_TRUE(f.manager().new_names().users.by_id.empty()) << "they have been stored";
  EXPECT_TRUE(f.manager().new_names().projects.by_id.empty());
}

TEST(OpenstackPeople, WithNamesThatWereNotStoredAreNamedAgain) {
  Fixture f;
  f.options.users_refresh_interval = std::chrono::minutes(5);
  EXPECT_TRUE(f.projects().contains("ann"));
  model::AccountNames stored;
  stored.users.by_id = {{"u9", "ann"}};
  f.manager().restore_names(stored);
  EXPECT_TRUE(f.projects().contains("ann@u1")) << "another program gave the name to u9";
  EXPECT_EQ(f.manager().new_names().users.by_id.size(), 2U);
}

TEST(OpenstackPeople, OfTheConfiguredDomainHaveNoSuffix) {
  Fixture f;
  f.options.default_domain_id = "ldap";
  set_users(f, {"u2"});
  EXPECT_THAT(f.projects(),
              ElementsAre(::testing::Pair("ann", ElementsAre("alpha@default", "beta@default")),
                          ::testing::Pair("ann@default", ElementsAre("beta@default"))));
}

TEST(OpenstackPeople, AreKeptForTheIntervalWhateverTheWindow) {
  Fixture f;
  f.options.users_refresh_interval = std::chrono::minutes(5);
  for (int chunk = 0; chunk < 24; ++chunk) {
    const model::Window window{.start_ms = kWindow.start_ms + chunk * 3'600'000,
                               .end_ms = kWindow.end_ms + chunk * 3'600'000};
    ASSERT_TRUE(f.manager().fetch_units(window, {}));
    ASSERT_TRUE(f.manager().fetch_users_projects(window, {}));
  }
  EXPECT_EQ(f.cloud.count("u1/projects"), 1U) << "once for a backfill";
  f.clock.advance(std::chrono::minutes(5));
  ASSERT_TRUE(f.manager().fetch_units(kWindow, {}));
  EXPECT_EQ(f.cloud.count("u1/projects"), 2U);
}

}  // namespace
}  // namespace ceems::ingest
