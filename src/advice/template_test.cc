#include "advice/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::advice {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST(Template, WritesNumbersAsPeopleReadThem) {
  EXPECT_EQ(format_number(8, Form::kPlain), "8");
  EXPECT_EQ(format_number(1.239, Form::kPlain), "1.24");
  EXPECT_EQ(format_number(0.144, Form::kPercent), "14 %");
  EXPECT_EQ(format_number(0.005, Form::kPercent), "0 %");
  EXPECT_EQ(format_number(7.9 * kGiB, Form::kBytes), "7.9 GiB");
  EXPECT_EQ(format_number(7.9 * kGiB, Form::kBytes, {.comma = ','}), "7,9 GiB");
  EXPECT_EQ(format_number(128 * kGiB, Form::kBytes), "128 GiB");
  EXPECT_EQ(format_number(512, Form::kBytes), "512 B");
  EXPECT_EQ(format_number(1023.99 * kGiB, Form::kBytes), "1 TiB");
  EXPECT_EQ(format_number(59, Form::kDuration), "59 s");
  EXPECT_EQ(format_number(600, Form::kDuration), "10 min");
  EXPECT_EQ(format_number(67316, Form::kDuration), "18 h 41 min");
  EXPECT_EQ(format_number(345600, Form::kDuration), "4 d");
  EXPECT_EQ(format_number(10 * kGiB, Form::kGigabytes), "10G");
  EXPECT_EQ(format_number(0.5 * kGiB, Form::kGigabytes), "512M");
  EXPECT_EQ(format_number(86400, Form::kClock), "1-00:00:00");
  EXPECT_EQ(format_number(8100, Form::kClock), "02:15:00");
  // Whatever a damaged database holds.
  for (const double odd : {1e300, -1e300, std::nan(""), -1.0}) {
    for (const Form form :
         {Form::kPlain, Form::kPercent, Form::kBytes, Form::kDuration, Form::kGigabytes,
          Form::kLsfBytes, Form::kPbsBytes, Form::kK8sBytes, Form::kMebi, Form::kMilli,
          Form::kClock, Form::kHours, Form::kSeconds}) {
      EXPECT_LE(format_number(odd, form).size(), 40U);
    }
  }
}

TEST(Template, WritesNumbersAsManagersReadThem) {
  EXPECT_EQ(format_number(10 * kGiB, Form::kLsfBytes), "10GB");
  EXPECT_EQ(format_number(0.5 * kGiB, Form::kLsfBytes), "512MB");
  EXPECT_EQ(format_number(10 * kGiB, Form::kPbsBytes), "10gb");
  EXPECT_EQ(format_number(1.5 * kGiB + 1, Form::kPbsBytes), "1537mb");  // never less
  EXPECT_EQ(format_number(10 * kGiB, Form::kK8sBytes), "10Gi");
  EXPECT_EQ(format_number(0.25 * kGiB, Form::kK8sBytes), "256Mi");
  EXPECT_EQ(format_number(10 * kGiB, Form::kMebi), "10240");
  EXPECT_EQ(format_number(0.5, Form::kMilli), "500m");
  EXPECT_EQ(format_number(2, Form::kMilli), "2");
  EXPECT_EQ(format_number(3.7, Form::kMilli, {.comma = ','}), "3700m");
  EXPECT_EQ(format_number(0.0001, Form::kMilli), "1m");
  EXPECT_EQ(format_number(108000, Form::kHours), "30:00");
  EXPECT_EQ(format_number(8101, Form::kHours), "2:16");
  EXPECT_EQ(format_number(8100, Form::kSeconds), "02:15:00");
  EXPECT_EQ(format_number(864001, Form::kSeconds), "240:00:01");
  const Facts facts = [] {
    Facts values;
    values.set("want", 10 * kGiB);
    values.set("limit", 7200);
    return values;
  }();
  EXPECT_EQ(fill("{want:G} {want:GB} {want:gb} {want:Gi} {limit:clock} {limit:hm} {limit:hms}",
                 facts, {.comma = ','}),
            "10G 10GB 10gb 10Gi 02:00:00 2:00 02:00:00");
}

TEST(Template, IsFilledOrNotAtAll) {
  Facts facts;
  facts.set("unused", 2);
  facts.set("share", 0.5);
  facts.set("gpu.per_node", 4);
  facts.set("state", "FAILED");
  EXPECT_EQ(fill("no braces", facts), "no braces");
  EXPECT_EQ(fill("{unused} of {gpu.per_node}, {share:percent}, {state}", facts),
            "2 of 4, 50 %, FAILED");
  EXPECT_EQ(fill("{unused} {nobody}", facts), std::nullopt);
}

TEST(Template, ChoosesWordsByNumber) {
  Facts facts;
  facts.set("one", 1);
  facts.set("two", 2);
  facts.set("state", "FAILED");
  EXPECT_EQ(fill("{one} {one|node|nodes}, {two} {two|node|nodes}", facts), "1 node, 2 nodes");
  EXPECT_EQ(fill("{one||s}{two||s}{one|a|}", facts), "sa");
  EXPECT_EQ(fill("{nobody|it was|they were}{state|a|b}", facts), "they wereb");  // not known
  EXPECT_EQ(fill("{one|:percent|x}", facts), ":percent");
  const auto found = placeholders("{one|node|nodes}");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at(0).name, "one");
}

TEST(Template, ReportsMistakes) {
  for (const auto& [text, message] :
       std::vector<std::pair<std::string, std::string>>{{"{", "do not match"},
                                                        {"a } b", "do not match"},
                                                        {"{a{b}}", "do not match"},
                                                        {"{}", "malformed placeholder '{}'"},
                                                        {"{A}", "malformed placeholder"},
                                                        {"{a|b}", "{name|one|other}"},
                                                        {"{a|b|c|d}", "malformed placeholder"},
                                                        {"{|b|c}", "malformed placeholder"},
                                                        {"{a:percent|b|c}", "malformed"},
                                                        {"{a:hex}", "percent, bytes"}}) {
    const auto found = placeholders(text);
    ASSERT_FALSE(found) << text;
    EXPECT_THAT(found.error().message, HasSubstr(message)) << text;
  }
  EXPECT_EQ(placeholders("{a} {b:G}")->size(), 2U);
}

}  // namespace
}  // namespace ceems::advice
