// The work that a request may cause, counted in steps (promql/matcher/work_budget.h).

#include <gtest/gtest.h>

#include "base/wire_format.h"
#include "gate/gate.h"
#include "gate/named_clusters.h"

namespace ceems::gate {
namespace {

std::string times(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

/// 62 KB, each pattern of which spells out 1000 words in 45 nested groups before ".*" makes it
/// unbounded. `i` makes the patterns different.
std::string attack(std::string_view before, std::string_view after) {
  std::string query;
  for (int i = 0; i < 499; ++i) {
    query += query.empty() ? "" : "+";
    query += fmt::format(R"(a{{{}uuid=~"{}[a-j][a-j][a-j]{}.*{}"{}}})", before, times("(", 45),
                         times(")", 45), i, after);
  }
  return query;
}

struct Outcome {
  std::string reason;
  std::size_t kept = 0;  ///< patterns that were compiled
};

class WorkTest : public ::testing::Test {
 protected:
  WorkTest() {
    rules.selection.language.patterns.known = &known;
    rules.selection.language.patterns.languages = &languages;
    rules.selection.language.max_bytes = std::size_t{1} << 20U;
  }

  std::string ask(const std::string& form, std::string_view path = "query") {
    const std::string target = "/api/v1/" + std::string(path);
    const auto read =
        TsdbRequest::read(ParsedRequest({.method = "POST",
                                         .target = target,
                                         .content_type = "application/x-www-form-urlencoded",
                                         .content_encoding = {},
                                         .body = form}),
                          rules);
    return read ? "passes" : std::string(read.error().reason);
  }
  std::string ask_query(std::string_view query) { return ask("query=" + net::url_encode(query)); }

  promql::KnownPatterns known{2000, 1024};
  promql::KnownLanguages languages{500, 1024};
  TsdbRules rules;
};

TEST_F(WorkTest, PatternsThatSpellOutManyWordsAreRefused) {
  EXPECT_EQ(ask_query(attack("", "")), "work");
  EXPECT_EQ(ask_query(attack(R"(uuid="own",)", "")), "work") << "the selectors are not open";
  EXPECT_EQ(ask_query(attack(R"(uuid="own",__name__=~"[a-j]{3}.*",)", "")), "syntax");
  rules.selection.refuse_open = true;
  EXPECT_EQ(ask_query(attack("", "")), "no_unit");
  EXPECT_EQ(ask_query(attack(R"(uuid="own",)", "")), "work");
}

TEST_F(WorkTest, NothingIsCompiledBeforeAnOpenSelectorIsRefused) {
  const std::string query = R"(a{uuid="own",x=~"b.*"} + a{x=~"c.*"})";
  rules.selection.refuse_open = true;
  EXPECT_EQ(ask_query(query), "no_unit");
  const std::string first = "match[]=" + net::url_encode(R"(a{uuid="own",x=~"b.*"})");
  const std::string second = "&match[]=" + net::url_encode(R"(a{x=~"c.*"})");
  EXPECT_EQ(ask(first + second, "series"), "no_unit");
  EXPECT_FALSE(known.find("b.*"));
  EXPECT_FALSE(known.find("c.*"));
  rules.selection.refuse_open = false;
  EXPECT_EQ(ask_query(query), "passes");
  EXPECT_EQ(ask(first + second, "series"), "passes");
  EXPECT_TRUE(known.find("b.*"));
  EXPECT_TRUE(known.find("c.*"));
}

TEST_F(WorkTest, OfCompilingIsBounded) {
  const auto query = [](std::string_view pattern, int count) {
    std::string matchers;
    for (int i = 0; i < count; ++i) {
      matchers += fmt::format(R"(,x=~"{}{}")", pattern, i);
    }
    return R"(a{uuid="own")" + matchers + "}";
  };
  EXPECT_EQ(ask_query(query(".+", 499)), "passes");
  EXPECT_EQ(ask_query(query("node[0-9]+", 499)), "passes");
  EXPECT_EQ(ask_query(query(R"(\\pL)", 10)), "passes");
  EXPECT_EQ(ask_query(query(R"(\\pL)", 499)), "work");
  EXPECT_EQ(ask_query(query("a{1000}", 499)), "work");
  EXPECT_EQ(ask_query(query("(a?){900}", 499)), "work");
  EXPECT_EQ(ask_query(query(times("a?", 5000), 1)), "work");
}

TEST_F(WorkTest, OfNamesAndClustersCounts) {
  const auto query = [](std::string_view label) {
    std::string all;
    for (int i = 0; i < 100; ++i) {
      all += fmt::format(R"({}{{uuid="own",{}=~"([a-j]x){{2}}[a-j]{}|c.*"}})", i == 0 ? "" : "+",
                         label, i);
    }
    return all;
  };
  EXPECT_EQ(ask_query(query("__name__")), "work");
  EXPECT_EQ(ask_query(query("ceems_id")), "cluster_label");
}

TEST_F(WorkTest, UnitsOfAllSelectorsCount) {
  std::string query;
  for (int i = 0; i < 200; ++i) {
    // The same 676 units, each time spelled otherwise.
    query +=
        fmt::format(R"({}a{{uuid=~"[a-z]([a-z]){{1}}{}"}})", i == 0 ? "" : "+", times("()", i));
  }
  EXPECT_EQ(ask_query(query), "work");
}

TEST_F(WorkTest, AThousandUnitsPass) {
  std::string units;
  for (int i = 0; i < 1000; ++i) {
    units += fmt::format("{}5b0cd2f7-1c7e-4d4e-9b6f-{:012}", i == 0 ? "" : "|", i);
  }
  EXPECT_EQ(ask_query("a{uuid=~\"" + units + "\"}"), "passes");
  EXPECT_EQ(ask_query("a{uuid=~\"(" + units + ")\"}"), "passes");
  EXPECT_EQ(ask_query("a{uuid=~\"^(" + units + ")$\"} + b{uuid=~\"(?:" + units + ")\"}"), "work");
}

TEST_F(WorkTest, OfAllSelectorsOfAProfileCallIsBounded) {
  ProfileRules profiles;
  std::string body;
  for (int i = 0; i < 90; ++i) {
    const std::string selector = fmt::format(R"({{service_name=~"[a-j][a-j][a-j]{}.*"}})", i);
    append_wire_field(body, {.number = 1, .has_length = true, .bytes = selector});
  }
  const auto outcome = [&] {
    const auto read = ProfileRequest::read(
        ParsedRequest(
            {.method = "POST", .target = "/querier.v1.QuerierService/LabelNames", .body = body}),
        profiles);
    return read ? "passes" : std::string(read.error().reason);
  };
  EXPECT_EQ(outcome(), "work");
  profiles.selection.refuse_open = true;
  EXPECT_EQ(outcome(), "no_unit");
}

TEST_F(WorkTest, OfAdminsIsBoundedToo) {
  const auto ask_admin = [&](const std::string& query) {
    const std::string target = "/api/v1/query?query=" + net::url_encode(query);
    const auto named =
        cluster_named(ParsedRequest({.method = "GET", .target = target}), rules, Budget::kFull);
    return named ? named->value_or("none") : std::string(named.error().reason);
  };
  EXPECT_EQ(ask_admin(attack(R"(ceems_id="c1",)", "")), "c1") << "only the label counts";
  std::string query;
  for (int i = 0; i < 400; ++i) {
    query += fmt::format(R"({}a{{ceems_id=~"[a-j][a-j][a-j]{}.*"}})", i == 0 ? "" : "+", i);
  }
  EXPECT_EQ(ask_admin(query), "work");
}

}  // namespace
}  // namespace ceems::gate
