// What support sees of others, and what a scope leaves of what somebody may see.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/access_test_support.h"

namespace ceems::api {
namespace {

class AccessScopes : public AccessTest {};

INSTANTIATE_TEST_SUITE_P(Leads,
                         AccessScopes,
                         ::testing::Values(LeadsFrom::kConfiguration, LeadsFrom::kManager),
                         name_of_leads);

TEST_P(AccessScopes, NoAnswerToSupportHoldsWhatPeopleWrote) {
  for (const Endpoint& endpoint : all_endpoints()) {
    const std::string path(endpoint.path);
    for (const std::string query :
         {"", "?user=bob", "?user=bob&field=name&field=tags&field=uuid", "?field=name",
          "?project=p-bob", "?uuid=bob-a&timezone=UTC", "?user=bob&format=csv",
          "?project=p-bob&month=2025-12", "?user=bob&columns=name,uuid",
          "?user=bob&sort=name&order=desc"}) {
      const std::string body = get(path + query, "sue").body;
      const bool own =
          body.find("sue-") != std::string::npos || query.find("bob") == std::string::npos;
      if (!own) {
        EXPECT_EQ(body.find("secret"), std::string::npos) << path << query << body;
      }
    }
  }
}

// Neither may support find out names by asking for them.
TEST_P(AccessScopes, SupportCannotSearchForNames) {
  const auto count = [this](const std::string& target, const std::string& user) {
    return json::parse(get(target, user).body).at("data").at("count").as_int64();
  };
  EXPECT_EQ(count("units/summary/admin?q=secret", "root"), 20);
  EXPECT_EQ(count("units/summary/admin?q=secret", "sue"), 4);  // its own
  EXPECT_EQ(count("units/summary/admin?q=bob", "sue"), 4);
  const json::value found = json::parse(get("units/list/admin?q=secret", "sue").body).at("data");
  EXPECT_EQ(found.at("rows").as_array().size(), 4U);
}

// What a unit used over time is seen by those who see its series.
TEST_P(AccessScopes, SupportDoesNotSeeWhatOthersUsedOverTime) {
  const std::string line(24, 'z');
  std::vector<store::UnitStrip> strips;
  for (const std::string& user : kPeople) {
    strips.push_back(
        {.key = {.cluster_id = "a", .uuid = user + "-a", .started_at_ts = kNow - kHour},
         .text = line});
  }
  ASSERT_TRUE(db_->writer().store_strips(strips));
  const auto seen = [&](const std::string& target, const std::string& user) {
    std::set<std::string> users;
    const json::value data =
        json::parse(get(target + "?cluster_id=a&columns=user,strip", user).body).at("data");
    for (const json::value& row : data.at("rows").as_array()) {
      if (row.at(1).is_string()) {
        EXPECT_EQ(row.at(1).as_string(), line);
        users.emplace(row.at(0).as_string());
      }
    }
    return users;
  };
  EXPECT_EQ(seen("units/list/admin", "root").size(), kPeople.size());
  EXPECT_EQ(seen("units/list/admin", "sue"), std::set<std::string>{"sue"});
  EXPECT_EQ(seen("units/list", "bob"), std::set<std::string>{"bob"});
}

TEST_P(AccessScopes, ScopesNarrowListsAndSums) {
  const auto count = [this](const std::string& target, const std::string& user) {
    return json::parse(get(target, user).body).at("data").at("count").as_int64();
  };
  EXPECT_EQ(count("units/summary", "lea"), 3);
  EXPECT_EQ(count("units/summary?scope=own", "lea"), 2);
  EXPECT_EQ(count("units/summary?scope=led", "lea"), 1);
  EXPECT_EQ(count("units/summary?user=bob", "lea"), 1);
  EXPECT_EQ(count("units/summary?user=bob", "ada"), 0);
  EXPECT_EQ(count("units/summary?scope=led", "ada"), 0);
  EXPECT_EQ(count("units/summary?uuid=bob-a", "ada"), 0);
}

TEST_P(AccessScopes, ScopesNarrowWhatLeadsSee) {
  const auto rows = [this](const std::string& target, const std::string& user) {
    return word_for(json::parse(get(target, user).body).at("data").as_array(), user);
  };
  for (const std::string endpoint : {"units", "usage/current", "usage/global", "projects"}) {
    EXPECT_EQ(rows(endpoint + "?scope=own", "lea"), "own") << endpoint;
    EXPECT_EQ(rows(endpoint + "?scope=other", "lea"), "own+led") << endpoint;
    const json::array led =
        json::parse(get(endpoint + "?scope=led", "lea").body).at("data").as_array();
    EXPECT_EQ(led.size(), 1U) << endpoint;
    EXPECT_STREQ(led.at(0).at("cluster_id").as_string().c_str(), "b") << endpoint;
    // For others it gives nothing.
    EXPECT_EQ(rows(endpoint + "?scope=own", "ada"), "own") << endpoint;
    EXPECT_TRUE(
        json::parse(get(endpoint + "?scope=led", "ada").body).at("data").as_array().empty());
  }
}

}  // namespace
}  // namespace ceems::api
