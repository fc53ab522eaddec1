#include "api/request/params.h"

#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::api {
namespace {

using Texts = std::vector<std::string>;
constexpr std::int64_t kRequestTime = 1'795'240'272'000;

Params between(std::string from, std::string to) {
  Params params;
  params.from = std::move(from);
  params.to = std::move(to);
  return params;
}

TEST(Params, ReadsMultipleValuesAndFlags) {
  const Params params = parse_params(
      "cluster_id=a&cluster_id=b&cluster_id=a&project=p%20q&user=&field=+uuid+&from=1&from=2&"
      "running="
      "false&experimental&unknown=x&timezone=Europe%2FParis&role=admin&__terminated");
  EXPECT_EQ(params.clusters, (Texts{"a", "b"}));
  EXPECT_EQ(params.projects, Texts{"p q"});
  EXPECT_TRUE(params.users.empty());
  EXPECT_EQ(params.fields, Texts{"uuid"});
  EXPECT_EQ(params.from, "1");
  EXPECT_EQ(params.time_zone, "Europe/Paris");
  EXPECT_EQ(params.role, "admin");
  EXPECT_TRUE(params.running);
  EXPECT_TRUE(params.experimental);
  EXPECT_TRUE(params.terminated);
}

TEST(Params, SecondsAreWholeAndBounded) {
  EXPECT_EQ(parse_seconds("from", "").value(), std::nullopt);
  EXPECT_EQ(parse_seconds("from", "-5").value(), -5);
  for (const char* text :
       {"1.5", "1e3", " 1", "0x10", "253402300800", "9223372036854775808", "now"}) {
    const auto seconds = parse_seconds("to", text);
    ASSERT_FALSE(seconds) << text;
    EXPECT_EQ(seconds.error().message, "query parameter 'to': malformed timestamp");
  }
}

TEST(Params, AMissingEndIsADayFromTheOther) {
  const auto window = [](const char* from, const char* to) {
    const auto range = parse_window(between(from, to), kRequestTime, 0);
    return std::pair(range->from_ms, range->to_ms);
  };
  EXPECT_EQ(window("", ""), std::pair(kRequestTime - kDayMs, kRequestTime));
  EXPECT_EQ(window("1000000", ""), std::pair(std::int64_t{1'000'000'000}, 1'000'000'000 + kDayMs));
  EXPECT_EQ(window("", "1000000"), std::pair(1'000'000'000 - kDayMs, std::int64_t{1'000'000'000}));
  EXPECT_EQ(window("5", "3"), std::pair(std::int64_t{5000}, std::int64_t{3000}));
}

TEST(Params, UsageWindowsAreRoundedOutwards) {
  const auto range = parse_rounded_window(between("1795240272", "1795240272"), kRequestTime, 0);
  EXPECT_EQ(range->from_ms, 1'795'239'900'000);
  EXPECT_EQ(range->to_ms, 1'795'240'800'000);
  const auto small = parse_rounded_window(between("400", "400"), kRequestTime, 0);
  EXPECT_EQ(small->from_ms, 0);
  EXPECT_EQ(small->to_ms, 900'000);
  // Each has a default of its own.
  EXPECT_EQ(parse_rounded_window(between("400", ""), kRequestTime, 0)->to_ms, 1'795'240'800'000);
  EXPECT_EQ(parse_rounded_window(between("-1", "0"), kRequestTime, 0)->from_ms, -900'000);
  EXPECT_EQ(parse_rounded_window(between("-1", "0"), kRequestTime, 0)->to_ms, 0);
}

TEST(Params, FieldsKeepTheOrderOfAnswers) {
  const auto fields = select_fields(store::unit_fields(), {"state", "nonsense", "uuid"});
  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields, (std::vector<std::size_t>{2, 14}));
  EXPECT_EQ(select_fields(store::unit_fields(), {})->size(), 34U);
  EXPECT_FALSE(select_fields(store::unit_fields(), {"id"}));
  EXPECT_FALSE(select_fields(store::unit_fields(), {"UUID"}));
}

}  // namespace
}  // namespace ceems::api
