#include "api/request/list_params.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using store::Fact;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

Result<store::FactFilter> filter(std::string_view query) {
  return parse_fact_filter(parse_params(query), std::nullopt);
}
std::string error(std::string_view query) {
  const auto parsed = filter(query);
  if (!parsed) {
    return parsed.error().message;
  }
  const auto options = parse_list_options(parse_params(query));
  return options ? "no error" : options.error().message;
}

TEST(ListParams, SelectUnits) {
  const auto all = filter(
      "cluster_id=a,b&project=p&user=ada&uuid=1,2&partition=gpu&state=failed,running,foo&"
      "advice=oom,mem-excess&q=Train%20%20ADA&cpu=0..20&kwh=1.5..&wall=..60&gpu=0&running");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(all->clusters, ElementsAre("a", "b"));
  EXPECT_THAT(all->uuids, ElementsAre("1", "2"));
  EXPECT_THAT(all->partitions, ElementsAre("gpu"));
  EXPECT_TRUE(all->state_running);
  EXPECT_THAT(all->states, ::testing::IsSupersetOf({"FAILED", "TIMEOUT", "FOO"}));
  EXPECT_THAT(all->states, ::testing::Not(::testing::Contains("RUNNING")));
  EXPECT_EQ(all->advice, (1 << 12) | (1 << 10));
  EXPECT_THAT(all->words, ElementsAre("train", "ada"));
  ASSERT_EQ(all->ranges.size(), 4U);
  EXPECT_EQ(all->ranges[0].low, 0);
  EXPECT_EQ(all->ranges[0].high, 2000);
  EXPECT_EQ(all->ranges[1].fact, Fact::kGpu);
  EXPECT_EQ(all->ranges[1].high, 0);
  EXPECT_EQ(all->ranges[2].low, 1'500'000'000);
  EXPECT_EQ(all->ranges[2].high, kMaxInteger);
  EXPECT_EQ(all->ranges[3].high, 60);
  EXPECT_TRUE(all->running);
  EXPECT_FALSE(is_indexed(*all));
  EXPECT_TRUE(is_indexed(*filter("user=ada&project=p&cluster_id=a")));
}

TEST(ListParams, NameTheParameterThatIsWrong) {
  for (const char* range : {"a", "1..0", "..", "-1..5", "nan", "1...2", "1..2..3", "0..inf"}) {
    EXPECT_THAT(error(std::string("cpu=") + range), HasSubstr("'cpu': expected a range")) << range;
  }
  EXPECT_THAT(error("advice=foo"), HasSubstr("'advice'"));
  EXPECT_THAT(error("sort=foo"), HasSubstr("'sort'"));
  EXPECT_THAT(error("sort=advice"), HasSubstr("'sort'"));
  EXPECT_THAT(error("sort=cpu_seconds"), HasSubstr("'sort'"));
  EXPECT_THAT(error("order=up"), HasSubstr("'order'"));
  EXPECT_THAT(error("limit=0"), HasSubstr("'limit'"));
  EXPECT_THAT(error("limit=1001"), HasSubstr("'limit'"));
  EXPECT_THAT(error("columns=uuid,foo"), HasSubstr("'columns': expected columns, got 'foo'"));
  EXPECT_THAT(error("columns=cpu_seconds"), HasSubstr("'columns'"));
  EXPECT_THAT(error("format=xml"), HasSubstr("'format'"));
  EXPECT_THAT(error("q=a b c d e f g h i"), HasSubstr("'q'"));
  EXPECT_THAT(error("q=" + std::string(200, 'a')), HasSubstr("'q'"));
  std::string many = "uuid=0";
  for (int i = 0; i < 300; ++i) {
    many += "," + std::to_string(i);
  }
  EXPECT_THAT(error(many), HasSubstr("'uuid': expected at most 200 values"));
  EXPECT_EQ(error("cpu=&sort=&q=&columns="), "no error");
}

TEST(ListParams, ChooseColumnsAndOrder) {
  auto options = parse_list_options(parse_params(""));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->columns.size(), 32U) << "all but the strip";
  EXPECT_EQ(options->columns.front().name, "cluster_id");
  EXPECT_EQ(options->columns.back().name, "verdict");
  EXPECT_EQ(options->sort, Fact::kEnded);
  EXPECT_TRUE(options->descending);
  EXPECT_EQ(options->limit, 100U);
  options = parse_list_options(parse_params("columns=cost,kwh&sort=name&limit=5&format=csv"));
  ASSERT_TRUE(options);
  EXPECT_FALSE(options->columns[0].fact);
  EXPECT_EQ(options->columns[1].fact, Fact::kKwh);
  EXPECT_FALSE(options->descending);
  EXPECT_TRUE(options->csv);
  options = parse_list_options(parse_params("columns=strip"));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->columns[0].fact, Fact::kStrip);
}

TEST(ListParams, CursorsBelongToOneList) {
  Params params;
  params.cursor = list_cursor_text("units/list kwh descending",
                                   {.place = {.value = "41", .id = 7}, .backwards = true});
  const auto cursor = parse_list_cursor(params, "units/list kwh descending");
  ASSERT_TRUE(cursor && *cursor);
  EXPECT_EQ((*cursor)->place.value, "41");
  EXPECT_EQ((*cursor)->place.id, 7);
  EXPECT_TRUE((*cursor)->backwards);
  EXPECT_FALSE(parse_list_cursor(params, "units/list kwh ascending"));
  for (const char* text : {"x", "AQ", "AAAA"}) {
    params.cursor = text;
    EXPECT_FALSE(parse_list_cursor(params, "units/list kwh descending")) << text;
  }
  params.cursor.clear();
  EXPECT_FALSE(*parse_list_cursor(params, "a"));
}

}  // namespace
}  // namespace ceems::api
