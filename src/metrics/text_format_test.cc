#include "metrics/text_format.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/sink.h"

namespace ceems::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string refusal(std::string_view text, const TextLimits& limits = {}) {
  const auto parsed = parse_text_format(text, limits);
  return parsed ? "accepted" : parsed.error().message;
}

/// The page that a Sink makes of a text.
std::string again(std::string_view text, Exposition exposition = Exposition::kText) {
  const auto samples = parse_text_format(text);
  EXPECT_TRUE(samples) << samples.error().message;
  Sink sink;
  for (const TextSample& sample : samples.value_or(std::vector<TextSample>())) {
    std::vector<std::string_view> labels(sample.labels.begin(), sample.labels.end());
    sink.add(sample.desc, sample.value, labels);
  }
  std::string page;
  sink.render(exposition, page);
  return page;
}

constexpr std::string_view kPage =
    "# HELP batches_total Batches \\\\ done\\nso far.\n"
    "# TYPE batches_total counter\n"
    "batches_total{kind=\"a\\\\b\",site=\"x \\\"y\\\"\\n\"} 12\n"
    "# HELP wait_seconds Wait.\n"
    "# TYPE wait_seconds untyped\n"
    "wait_seconds 0.5\n";

TEST(TextFormat, ComesOutOfASinkAsItWas) {
  EXPECT_EQ(again(kPage), kPage);
  EXPECT_THAT(again(kPage, Exposition::kOpenMetrics), HasSubstr("# TYPE batches counter\n"));
  EXPECT_THAT(again(kPage, Exposition::kOpenMetrics), HasSubstr("# TYPE wait_seconds unknown\n"));
}

TEST(TextFormat, AcceptsAllItsForms) {
  const auto samples = parse_text_format(
      "\r\n  # a comment\n#\n# TYPE g GAUGE\n\tg { a = \"1\" , b=\"\", } \t -1e3 \n"
      "g{} +Inf\nh NaN\ni -inf\nj +7");
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_THAT(*samples, SizeIs(5));
  EXPECT_EQ(samples->at(0).desc.type, Type::kGauge);
  EXPECT_EQ(samples->at(0).value, -1000);
  EXPECT_THAT(samples->at(0).labels, ::testing::ElementsAre("1", ""));
  EXPECT_TRUE(std::isinf(samples->at(1).value));
  EXPECT_TRUE(std::isnan(samples->at(2).value));
  EXPECT_EQ(samples->at(2).desc.help, kNoHelp);
  EXPECT_EQ(samples->at(4).value, 7);
  EXPECT_THAT(*parse_text_format(""), SizeIs(0));
}

TEST(TextFormat, TakesSamplesOfHistogramsAsUntyped) {
  const auto samples = parse_text_format(
      "# HELP lag Lag.\n# TYPE lag histogram\nlag_bucket{le=\"+Inf\"} 3\nlag_sum 1.5\nlag_count "
      "3\n");
  ASSERT_TRUE(samples);
  ASSERT_THAT(*samples, SizeIs(3));
  for (const TextSample& sample : *samples) {
    EXPECT_EQ(sample.desc.type, Type::kUntyped);
    EXPECT_EQ(sample.desc.help, "Lag.");
  }
}

TEST(TextFormat, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal("a 1\nb x\n"), "line 2: b: expected a number, got 'x'");
  EXPECT_EQ(refusal("a"), "line 1: a: expected a number, got ''");
  EXPECT_EQ(refusal("9a 1"), "line 1: invalid metric name '9a'");
  EXPECT_EQ(refusal("a 1 1700000000000"),
            "line 1: a: expected the end of the line, got '1700000000000' (timestamps are not "
            "supported)");
  EXPECT_EQ(refusal("a{b=\"1\",b=\"2\"} 1"), "line 1: the label b occurs twice");
  EXPECT_EQ(refusal("a{b=\"1\"} 1\na{b=\"1\"} 2"), "line 2: a: the same series occurs twice");
  EXPECT_EQ(refusal("a{b=\"1\",c=\"2\"} 1\na{c=\"2\",b=\"1\"} 2"),
            "line 2: a: the same series occurs twice");
  EXPECT_EQ(refusal("a{__name__=\"1\"} 1"), "line 1: expected a label and '=', got '__name__'");
  EXPECT_EQ(refusal("# TYPE a thing"), "line 1: unknown type 'thing'");
  EXPECT_EQ(refusal("# TYPE a gauge\n# TYPE a counter"), "line 2: a second type of a");
  EXPECT_EQ(refusal("# HELP 1"), "line 1: invalid metric name '1'");
  for (const char* text :
       {"a{", "a{b", "a{b=", "a{b=1} 1", "a{b=\"1} 1", "a{b=\"\\x\"} 1", "a{b=\"1\" c=\"2\"} 1",
        "a{b=\"1\"", "a{,} 1", "{} 1", "a 1e", "a 0x10"}) {
    EXPECT_THAT(refusal(text), HasSubstr("line 1: ")) << text;
  }
}

TEST(TextFormat, IsBounded) {
  EXPECT_EQ(refusal("a 1\nb 1\nc 1\n", {.max_samples = 2}), "line 3: more than 2 samples");
  EXPECT_EQ(refusal("a{x=\"1\",y=\"2\"} 1\n", {.max_labels = 1}), "line 1: more than 1 labels");
}

}  // namespace
}  // namespace ceems::metrics
