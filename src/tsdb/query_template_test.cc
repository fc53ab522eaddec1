#include "tsdb/query_template.h"

#include <gtest/gtest.h>

namespace ceems::tsdb {
namespace {

QueryVariables variables() {
  return {.uuids = "12|13",
          .scrape_interval = "15s",
          .scrape_interval_milli = "15000",
          .evaluation_interval = "10s",
          .evaluation_interval_milli = "10000",
          .rate_interval = "1m0s",
          .range = "6h51m12s"};
}

TEST(QueryTemplate, FillsInEveryVariable) {
  const auto query = QueryTemplate::parse(
      "a{{.UUIDs}} {{ .ScrapeInterval }} {{.ScrapeIntervalMilli}} {{.EvaluationInterval}} "
      "{{.EvaluationIntervalMilli}} {{.RateInterval}} {{.Range}}z");
  ASSERT_TRUE(query) << query.error().message;
  EXPECT_EQ(query->render(variables()), "a12|13 15s 15000 10s 10000 1m0s 6h51m12sz");
}

TEST(QueryTemplate, RefusesWhatItCannotFillIn) {
  const auto message = [](std::string_view text) {
    const auto query = QueryTemplate::parse(text);
    return query ? std::string("accepted") : query.error().message.substr(0, 60);
  };
  EXPECT_EQ(message("up{{.Uuids}}"),
            "query template: '{{.Uuids}}' at character 3: expected one of");
  EXPECT_EQ(message("up{{if .Range}}"),
            "query template: '{{if .Range}}' at character 3: expected one");
  EXPECT_EQ(message("up{{.Range"), "query template: '{{' without '}}' at character 3");
  EXPECT_EQ(message(" "), "the query is empty");
  EXPECT_EQ(message("up{a=\"}}\"}"), "accepted");
}

TEST(QueryTemplate, TrimsAndLeavesOutCommentsAsGoDoes) {
  const auto rendered = [](std::string_view text) {
    const auto query = QueryTemplate::parse(text);
    return query ? query->render(variables()) : query.error().message;
  };
  EXPECT_EQ(rendered("up{uuid=~\"  {{- .UUIDs -}}  \"}"), "up{uuid=~\"12|13\"}");
  EXPECT_EQ(rendered("a \n{{- .Range }} b"), "a6h51m12s b");
  EXPECT_EQ(rendered("a {{ .Range -}} \t\n b"), "a 6h51m12sb");
  EXPECT_EQ(rendered("a {{/* the range */}}[{{.Range}}]"), "a [6h51m12s]");
  EXPECT_EQ(rendered("a {{- /* nothing */ -}} b"), "ab");
  // Without the space, the minus is not a trim marker but part of the name, which is rejected.
  EXPECT_NE(rendered("a{{-.Range}}").find("expected one of"), std::string::npos);
  EXPECT_NE(rendered("a{{.Range-}}").find("expected one of"), std::string::npos);
  EXPECT_NE(rendered("a{{- .Range | printf \"%s\" -}}").find("expected one of"), std::string::npos);
  EXPECT_NE(rendered("a{{range .UUIDs}}").find("expected one of"), std::string::npos);
}

}  // namespace
}  // namespace ceems::tsdb
