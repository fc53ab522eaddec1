#include "api/request/row_filter.h"

#include <gtest/gtest.h>

namespace ceems::api {
namespace {

Result<RowFilter> filter_of(std::vector<std::string> match) {
  Params params;
  params.match = std::move(match);
  return RowFilter::create(params, store::usage_fields());
}

std::string filter_complaint(std::vector<std::string> match) {
  const auto filter = filter_of(std::move(match));
  return filter ? "" : filter.error().message;
}

bool matches(std::vector<std::string> match, std::string_view user, std::string_view project) {
  const auto filter = filter_of(std::move(match));
  EXPECT_TRUE(filter);
  return filter && filter->matches([&](std::string_view field) {
    return field == "username" ? user : field == "project" ? project : "";
  });
}

TEST(RowFilter, APatternMustMatchTheWholeText) {
  EXPECT_TRUE(matches({}, "ada", "fluids"));
  EXPECT_TRUE(matches({"project:fl.*"}, "ada", "fluids"));
  EXPECT_FALSE(matches({"project:fl"}, "ada", "fluids"));
  EXPECT_TRUE(matches({"project:(?i)FLUIDS|optics"}, "ada", "fluids"));
  EXPECT_TRUE(matches({"project:fl.*", "username:a.a"}, "ada", "fluids"));
  EXPECT_FALSE(matches({"project:fl.*", "username:b.*"}, "ada", "fluids"));
  EXPECT_TRUE(matches({"project:"}, "ada", ""));
  EXPECT_TRUE(matches({"project:a:b"}, "ada", "a:b"));
}

TEST(RowFilter, BadConditionsAreNamed) {
  const std::string fields =
      "query parameter 'match': expected FIELD:PATTERN with one of the fields cluster_id, "
      "resource_manager, project, groupname, username";
  EXPECT_EQ(filter_complaint({"project"}), fields);
  EXPECT_EQ(filter_complaint({"num_units:3"}), fields);
  EXPECT_EQ(filter_complaint({"total_time_seconds:.*"}), fields);
  EXPECT_EQ(filter_complaint({"; DROP TABLE units:x"}), fields);
  EXPECT_EQ(filter_complaint({"project:("}), "query parameter 'match': invalid pattern of project");
  EXPECT_EQ(filter_complaint({"project:(a)\\1"}),
            "query parameter 'match': invalid pattern of project");
  EXPECT_EQ(filter_complaint({"project:" + std::string(257, 'a')}),
            "query parameter 'match': a pattern has at most 256 bytes");
  EXPECT_EQ(filter_complaint({"project:((a{1000}){1000}){1000}"}),
            "query parameter 'match': invalid pattern of project");
  EXPECT_EQ(filter_complaint(std::vector<std::string>(9, "project:a")),
            "query parameter 'match': at most 8 patterns");
  EXPECT_EQ(filter_complaint(std::vector<std::string>(8, "project:a")), "");
}

}  // namespace
}  // namespace ceems::api
