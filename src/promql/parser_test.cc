#include "promql/parser.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <re2/re2.h>

#include "promql/functions.h"
#include "promql/printer.h"
#include "promql/selectors.h"

namespace ceems::promql {
namespace {

/// The canonical text, or "line:column: parse error: …".
std::string read(std::string_view query, const ParseOptions& options = {}) {
  const auto parsed = parse(query, options);
  return parsed ? print(**parsed) : parsed.error().text();
}

void expect_refused(std::string_view query,
                    std::string_view part,
                    const ParseOptions& options = {}) {
  const std::string text = read(query, options);
  EXPECT_NE(text.find("parse error"), std::string::npos) << query << " -> " << text;
  EXPECT_NE(text.find(part), std::string::npos) << query << " -> " << text;
}

TEST(PromqlParser, PrintsOneTextForManySpellings) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"1", "1"},
      {" +1 ", "1"},
      {"- -1", "1"},
      {"0x10", "16"},
      {"iNf", "Inf"},
      {"'a'", "\"a\""},
      {"foo", "foo"},
      {"foo{}", "foo"},
      {"foo{a='b',}", R"(foo{a="b"})"},
      {"foo { a =~ `b|c` , d != \"e\" }", R"(foo{a=~"b|c", d!="e"})"},
      {"{__name__=\"foo\"}", R"({__name__="foo"})"},
      {"foo # a comment, uuid=\"x\"\n", "foo"},
      {"foo # a comment\r + bar", "foo + bar"},
      {"foo[5m] offset 1w", "foo[5m] offset 7d"},
      {"foo offset -5m @ 1.5", "foo @ 1.500 offset -5m"},
      {"foo @ start()", "foo @ start()"},
      {"foo[90s]", "foo[1m30s]"},
      {"sum(foo)", "sum(foo)"},
      {"SUM BY (a,b,) (foo)", "sum by (a, b) (foo)"},
      {"sum(foo) without(a)", "sum without (a) (foo)"},
      {"topk(5, foo)", "topk(5, foo)"},
      {"count_values('x', foo)", R"(count_values("x", foo))"},
      {"rate(foo[5m])[1h:1m] @ end() offset 5m", "rate(foo[5m])[1h:1m] @ end() offset 5m"},
      {"max_over_time(foo[1h:])", "max_over_time(foo[1h:])"},
      {"a+b*c^d", "a + b * c ^ d"},
      {"a and b or c unless d", "a and b or c unless d"},
      {"a ==bool b", "a == bool b"},
      {"a * ON(x) GROUP_LEFT b", "a * on (x) group_left () b"},
      {"a / ignoring (x,y) group_right(z) b", "a / ignoring (x, y) group_right (z) b"},
      {"-a^2", "-a ^ 2"},
      {"(-a)^2", "(-a) ^ 2"},
      {"time()", "time()"},
      {"hour()", "hour()"},
      {"label_join(a,'d',',','x','y')", R"(label_join(a, "d", ",", "x", "y"))"},
      {"sum", "sum"},
      {"offset", "offset"},
      {"by{by=\"x\"}", R"(by{by="x"})"},
      {"start + end", "start + end"},
      {"a:b:c", "a:b:c"},
      {":a", ":a"},
      {"foo{a=\"\\x6fwn\"}", R"(foo{a="own"})"},
      {"foo[300]", "foo[5m]"},
      {"foo offset 0s", "foo offset 0s"},
      {"5m", "300"},
      {R"({"a.b", "c.d"="x"})", R"({"a.b", "c.d"="x"})"},
      {R"({"up"})", "up"},
      {R"(sum by ("a.b", c) (up))", R"(sum by ("a.b", c) (up))"},
      {R"({"on"})", R"({"on"})"},
      {"sum by (a:b) (foo)", R"(sum by ("a:b") (foo))"},
      {R"({""="0"})", R"({""="0"})"},
      {"foo @ 2m", "foo @ 120.000"},
  };
  for (const auto& [query, text] : cases) {
    EXPECT_EQ(read(query), text) << query;
  }
}

TEST(PromqlParser, DurationsMayBeExpressions) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"foo[5m*2]", "foo[5m * 2]"},
      {"foo[ 5m + 2 ^ -1 : STEP() ]", "foo[5m + 2 ^ -1:step()]"},
      {"foo[max_of(step(),1m)]", "foo[max_of(step(), 1m)]"},
      {"foo[(5m)]", "foo[(5m)]"},
      {"foo[+5m]", "foo[5m]"},
      {"foo offset (1h-5m)", "foo offset (1h - 5m)"},
      {"foo offset -step()", "foo offset -step()"},
      {"foo offset -min_of(1m, range())", "foo offset -min_of(1m, range())"},
      // Arithmetic is part of the offset only behind a parenthesis without a sign.
      {"foo offset 5m + bar", "foo offset 5m + bar"},
      {"foo offset -2 ^ bar", "foo offset -2s ^ bar"},
      {"foo offset (1h) * 2", "foo offset (1h) * 2"},
      {"foo offset -(1h) * bar", "foo offset -(1h) * bar"},
      {"foo[1h] anchored offset 5m", "foo[1h] anchored offset 5m"},
      {"foo @ 1 smoothed", "foo smoothed @ 1.000"},
      {"smoothed smoothed", "smoothed smoothed"},
      {"foo </ 10 >/ 2", "foo </ 10 >/ 2"},
  };
  for (const auto& [query, text] : cases) {
    EXPECT_EQ(read(query), text) << query;
    EXPECT_EQ(read(text), text) << query;
    const std::string old = read(query, {.prometheus3 = false});
    EXPECT_EQ(old.contains("parse error"), query != "foo offset 5m + bar") << query;
  }
  expect_refused("foo[5m / 0]", "division by zero");
  expect_refused("foo[-5m]", "greater than 0");
  expect_refused("foo[5m * bar]", "a duration");
  expect_refused("foo[step]", "'('");
  expect_refused("foo offset (1h) + bar", "a duration");
  expect_refused("foo[" + std::string(300, '(') + "5m", "nested too deeply");
  expect_refused("foo[1h:1m] smoothed", "for selectors only");
  expect_refused("foo anchored smoothed", "together");
  expect_refused("foo <//**/ bar", "an expression");
}

TEST(PromqlParser, FillsMissingSeries) {
  const ParseOptions all{.experimental = true};
  EXPECT_EQ(read("a + fill(0) b", all), "a + fill_left (0) fill_right (0) b");
  EXPECT_EQ(read("a + on(x) group_left fill_right(-1) fill_left(5m) b", all),
            "a + on (x) group_left () fill_left (300) fill_right (-1) b");
  EXPECT_EQ(read("fill + fill", all), "fill + fill");
  expect_refused("a + fill(0) fill_left(1) b", "unknown function", all);
  expect_refused("a + fill(0) 1", "filling in missing series", all);
  expect_refused("a and fill(0) b", "filling in missing series", all);
  expect_refused("a + fill(c) b", "a number", all);
  expect_refused("a + fill(0) b", "unknown function");
}

TEST(PromqlParser, NamesMayBeWide) {
  const ParseOptions all{.experimental = true};
  EXPECT_EQ(read("a.b{c.d=\"x\"}", all), R"({"a.b", "c.d"="x"})");
  EXPECT_EQ(read("sum by (a.b) (\u00fc)", all), "sum by (\"a.b\") ({\"\u00fc\"})");
  EXPECT_EQ(read("a. + 1", all), "{\"a.\"} + 1");
  expect_refused(".a", "unexpected character", all);
  expect_refused("a.b", "unexpected character");
}

TEST(PromqlParser, ReadsMetricsQlWhereItIsAllowed) {
  const ParseOptions metricsql{.metricsql = true};
  for (const char* query :
       {"rate(m[5i])", "m[1h:2i] offset -3i", "m default 0", "a if b ifnot c or d default e",
        "rate(m[5m]) keep_metric_names", "(a + b) keep_metric_names", "default + if"}) {
    EXPECT_EQ(read(query, metricsql), query);
    EXPECT_EQ(read(query).contains("parse error"), query != std::string_view("default + if"));
  }
  EXPECT_EQ(read("a.b{c.d='x'}", metricsql), R"({"a.b", "c.d"="x"})");
  expect_refused("5i", "an expression", metricsql);
  expect_refused("m @ 5i", "a time", metricsql);
  expect_refused("rate(m[i])", "'i'", metricsql);
}

TEST(PromqlParser, ReadsFunctionsAndRangesOfMetricsQl) {
  const ParseOptions metricsql{.metricsql = true};
  for (const char* query :
       {"rate(m)", "sum(rate(m))", "median_over_time(m[5m])", "median by (a) (m)",
        "share without (a) (rate(m[5m]))", "label_set(m, \"a\", \"b\")", "union(a, b, c)", "now()",
        "topk_avg by (job) (3, m, \"other\")", "max_over_time(rate(m[5m])[1h:])", "m[5m]",
        "m[5m] / 2", "rollup_rate(m[5i] offset 1i)", "clamp_max(a, b)", "median + any"}) {
    EXPECT_EQ(read(query, metricsql), query);
  }
  EXPECT_EQ(read("max_over_time(rate(m[5m])[1h])", metricsql), "max_over_time(rate(m[5m])[1h:])");
  EXPECT_EQ(read("any(m,) by (a,)", metricsql), "any by (a) (m)");
  for (const char* query : {"rate(m)", "median(m)", "median by (a) (m)", "rate(m[5m])[1h]",
                            "union(a, b)", "rate(m[5m],)"}) {
    EXPECT_TRUE(read(query).contains("parse error")) << query;
  }
  expect_refused("rate('m')", "expected type range vector", metricsql);
  expect_refused("union by (a) (m)", "an operator or the end", metricsql);
  expect_refused("rates(m)", "unknown function", metricsql);
}

TEST(PromqlParser, OperatorsBindAsInPrometheus) {
  const auto shape = [](std::string_view query) {
    const auto parsed = parse(query);
    if (!parsed) {
      return parsed.error().text();
    }
    std::string text;
    const auto draw = [&](const auto& self, const Expr& expr) -> void {
      if (const auto* const binary = std::get_if<Binary>(&expr.node)) {
        text += '<';
        self(self, *binary->left);
        text += ' ';
        self(self, *binary->right);
        text += '>';
      } else if (const auto* const unary = std::get_if<Unary>(&expr.node)) {
        text += '-';
        self(self, *unary->expr);
      } else {
        text += print(expr);
      }
    };
    draw(draw, **parsed);
    return text;
  };
  EXPECT_EQ(shape("a - b - c"), "<<a b> c>");
  EXPECT_EQ(shape("a ^ b ^ c"), "<a <b c>>");
  EXPECT_EQ(shape("a + b * c"), "<a <b c>>");
  EXPECT_EQ(shape("a * b + c"), "<<a b> c>");
  EXPECT_EQ(shape("a or b and c"), "<a <b c>>");
  EXPECT_EQ(shape("a == b + c"), "<a <b c>>");
  EXPECT_EQ(shape("-a ^ b"), "-<a b>");
  EXPECT_EQ(shape("-a * b"), "<-a b>");
  EXPECT_EQ(shape("a ^ -b * c"), "<<a -b> c>");
  EXPECT_EQ(shape("a atan2 b * c"), "<<a b> c>");
  EXPECT_EQ(shape("a unless b and c"), "<<a b> c>");
}

TEST(PromqlParser, RefusesWhatPrometheusRefuses) {
  expect_refused("", "unexpected end of query");
  expect_refused("foo{", "unexpected end of query");
  expect_refused("foo}", "unexpected '}'");
  expect_refused("foo{a}", "behind a label name");
  // To VictoriaMetrics these are names.
  expect_refused("foo{offset}", "behind a label name");
  expect_refused("foo{sum,a=\"b\"}", "behind a label name");
  expect_refused("sum by (without) (foo)", "a label name");
  expect_refused("sum by (nan) (foo)", "a label name");
  expect_refused("group_left + foo", "an expression");
  // Prometheus accepts these.
  expect_refused("1 + on() 2", "vector matching only allowed");
  expect_refused("foo <= on() 010", "vector matching only allowed");
  expect_refused("foo * ignoring() group_left() 1", "vector matching only allowed");
  expect_refused("foo + on() 08", "bad number");
  expect_refused("foo @ 00.5", "bad number");
  expect_refused("foo{a=b}", "a string as value");
  expect_refused("foo{a=\"b\" c=\"d\"}", "',' or '}'");
  expect_refused("foo{,}", "a label name");
  expect_refused("{}", "at least one non-empty matcher");
  expect_refused("{a=\"\"}", "at least one non-empty matcher");
  expect_refused("{a=~\".*\"}", "at least one non-empty matcher");
  expect_refused("{a!=\"b\"}", "at least one non-empty matcher");
  expect_refused("foo{__name__=\"bar\"}", "set twice");
  expect_refused("foo{a=~\"(\"}", "bad regular expression");
  expect_refused("foo{a=~\"a)(b\"}", "bad regular expression");
  expect_refused("foo[0s]", "greater than 0");
  expect_refused("foo[5m", "':' or ']'");
  expect_refused("foo[]", "a duration");
  expect_refused("sum(foo)[5m]", "ranges only allowed for vector selectors");
  expect_refused("(foo)[5m]", "ranges only allowed for vector selectors");
  expect_refused("foo offset 5m [5m]", "no offset modifiers allowed before range");
  expect_refused("foo @ 5 [5m]", "no @ modifiers allowed before range");
  expect_refused("foo offset 5m offset 5m", "multiple times");
  expect_refused("foo @ 1 @ 2", "multiple times");
  expect_refused("foo @ inf", "out of bounds");
  expect_refused("foo @ start", "'('");
  expect_refused("1 offset 5m", "offset modifier must be preceded");
  expect_refused("sum(foo) @ 1", "@ modifier must be preceded");
  expect_refused("foo[1h:1m][5m:1m]", "subquery is only allowed on instant vector");
  expect_refused("1[5m:1m]", "subquery is only allowed on instant vector");
  expect_refused("rate(foo)", "expected type range vector");
  expect_refused("rate(foo[5m], 1)", "at most 1");
  expect_refused("rate()", "exactly 1");
  expect_refused("round(foo, 1, 2)", "at most 2");
  expect_refused("label_join(foo, 'a')", "at least 3");
  expect_refused("label_replace(foo, 'a', 'b', 'c')", "exactly 5");
  expect_refused("nosuch(foo)", "unknown function");
  expect_refused("RATE(foo[5m])", "unknown function");
  expect_refused("sum()", "expected 1, got 0");
  expect_refused("sum(foo, bar)", "expected 1, got 2");
  expect_refused("topk(foo)", "expected 2, got 1");
  expect_refused("topk('a', foo)", "expected type scalar in aggregation parameter");
  expect_refused("sum(1)", "expected type instant vector");
  expect_refused("sum(foo[5m])", "expected type instant vector");
  expect_refused("sum(foo,)", "an expression");
  expect_refused("sum by a (foo)", "'('");
  expect_refused("sum by (inf) (foo)", "a label name");
  expect_refused("1 and 2", "set operator");
  expect_refused("foo and 2", "set operator");
  expect_refused("1 == 2", "must use BOOL");
  expect_refused("foo + bool bar", "bool modifier");
  expect_refused("foo + 'a'", "only scalar and instant vector types");
  expect_refused("foo[5m] + bar", "only scalar and instant vector types");
  expect_refused("-'a'", "a sign is for");
  expect_refused("-foo[5m]", "a sign is for");
  expect_refused("foo + on(a) group_left(a) bar", "at once");
  expect_refused("foo and on(a) group_left bar", "no grouping allowed");
  expect_refused("foo + on(a) 1", "vector matching only allowed");
  expect_refused("foo + group_left bar", "unexpected");
  expect_refused("foo bar", "an operator or the end");
  expect_refused("foo + ", "unexpected end of query");
  expect_refused("on", "an expression");
  expect_refused("bool(foo)", "unknown function");
  expect_refused("'a", "without an end");
  expect_refused("'a\nb'", "without an end");
  expect_refused("'a\\", "without an end");
  expect_refused("'a\\'", "without an end");
  expect_refused("`a\\", "without an end");
  expect_refused("'a\\\n'", "escape");
  expect_refused("'\\q'", "escape");
  expect_refused("1.2.3", "bad number");
  expect_refused("1h1y", "bad number");
  expect_refused("foo ! bar", "unexpected character");
  expect_refused("foo !", "unexpected character: '!'");
  expect_refused("foo{a!", "unexpected character: '!'");
  expect_refused("foo{a=~", "a string as value");
  expect_refused("foo; bar", "unexpected character: ';'");
  expect_refused("foo{\u00fc=\"x\"}", "unexpected character");
  expect_refused("foo\xff", "invalid UTF-8");
  expect_refused(std::string_view("foo\0bar", 7), "NUL");
  expect_refused("info(a, b)", "not allowed");
  expect_refused("limitk(1, a)", "not allowed");
}

TEST(PromqlParser, NewerSyntaxIsBehindItsSwitches) {
  const ParseOptions old{.prometheus3 = false};
  expect_refused(R"({"a.b"})", "a label name", old);
  expect_refused("foo[300]", "a duration", old);
  expect_refused("foo offset 0s", "greater than 0", old);
  expect_refused("5m", "an expression", old);
  expect_refused("histogram_avg(foo)", "not allowed", old);
  EXPECT_EQ(read("holt_winters(foo[5m], 0.5, 0.5)"), "holt_winters(foo[5m], 0.5, 0.5)");
  expect_refused("holt_winters(foo[5m], 0.5, 0.5)", "not allowed", {.prometheus2 = false});
  const ParseOptions all{.experimental = true};
  EXPECT_EQ(read("limitk(1, a)", all), "limitk(1, a)");
  EXPECT_EQ(read("info(a, {b=\"c\"})", all), R"(info(a, {b="c"}))");
  expect_refused("info(a, sum(b))", "label selectors", all);
  expect_refused("info(a, b{c=\"d\"})", "label selectors", all);
}

TEST(PromqlParser, ListsOfWordsDoNotCountAsLength) {
  EXPECT_EQ(size_without_lists("m{a=\"1|2\"}"), 7U);
  EXPECT_EQ(size_without_lists("m{a=~'(1|b)',c=`x y`}"), 13U);
  EXPECT_EQ(size_without_lists(R"(m{a=~"1\\.b"})"), 8U);
  for (const std::string_view text : {R"(m{a="\""})", "m{a=\"1*2\"}", "m # \"1|2\"",
                                      "m # '\n-1-1-1 # '", "\"1", "'", "\"1\\", ""}) {
    EXPECT_EQ(size_without_lists(text), text.size()) << text;
  }
  const std::string list(200'000, '1');
  EXPECT_TRUE(parse("m{a=\"" + list + "\"}"));
  EXPECT_FALSE(parse("m{a=\"" + list + "*\"}"));
  EXPECT_FALSE(parse("m{a=\"" + std::string(1'100'000, '1') + "\"}"));
}

TEST(PromqlParser, TellsWhere) {
  EXPECT_EQ(read("sum(a) +\n  rate(\u00e9)"), "2:8: parse error: unexpected character: '\u00e9'");
  EXPECT_EQ(
      read("foo + rate(bar)"),
      "1:7: parse error: expected type range vector in call to function \"rate\", got instant "
      "vector");
}

TEST(PromqlParser, HostileSizesAreRefused) {
  expect_refused(std::string(70'000, ' ') + "a", "longer than");
  expect_refused(std::string(300, '(') + "a" + std::string(300, ')'), "nested too deeply");
  expect_refused(std::string(5'000, '-') + "a", "nested too deeply");
  std::string chain = "a";
  for (int i = 0; i < 5'000; ++i) {
    chain += "+a";
  }
  expect_refused(chain, "too many operators");
  std::string powers = "a";
  for (int i = 0; i < 5'000; ++i) {
    powers += "^a";
  }
  expect_refused(powers, "nested too deeply");
}

TEST(PromqlParser, EveryFunctionTakesItsOwnSignature) {
  for (const Function& function : all_functions()) {
    std::string query = std::string(function.name) + "(";
    for (std::size_t i = 0; i < function.at_least; ++i) {
      query += i == 0 ? "" : ", ";
      switch (function.arguments.at(i)) {
        case ValueType::kScalar:
          query += "1";
          break;
        case ValueType::kString:
          query += "\"s\"";
          break;
        case ValueType::kInstantVector:
          query += "m";
          break;
        case ValueType::kRangeVector:
          query += "m[5m]";
          break;
      }
    }
    query += ")";
    EXPECT_EQ(read(query, {.experimental = true}), query);
  }
}

TEST(PromqlNodes, AreVisitedFromTheOutsideToTheInside) {
  const auto parsed = parse("topk by (x) (scalar(a), -(b)) + max_over_time(c[5m:1m])");
  ASSERT_TRUE(parsed) << parsed.error().text();
  std::string nodes;
  for_each_node(**parsed, [&](const Expr& expr) { nodes += print(expr) + "\n"; });
  EXPECT_EQ(nodes,
            "topk by (x) (scalar(a), -(b)) + max_over_time(c[5m:1m])\n"
            "topk by (x) (scalar(a), -(b))\n"
            "scalar(a)\n"
            "a\n"
            "-(b)\n"
            "(b)\n"
            "b\n"
            "max_over_time(c[5m:1m])\n"
            "c[5m:1m]\n"
            "c\n");
}

TEST(PromqlSelectors, AreVisitedAndMayBeChanged) {
  auto parsed = parse(
      "a + on(x) sum by (y) (max_over_time(b[5m:]) or topk(scalar(c), d)) - -(rate(e[1h] offset "
      "1d)) "
      "+ label_replace({f=\"g\"}, 'a', 'h', 'i', 'j')");
  ASSERT_TRUE(parsed) << parsed.error().text();
  std::string names;
  for_each_selector(**parsed, [&](VectorSelector& selector) {
    names += selector.name + ",";
    selector.matchers.push_back({"uuid", MatchOperator::kEqual, "1"});
  });
  EXPECT_EQ(names, "a,b,c,d,e,,");
  EXPECT_EQ(print(**parsed),
            R"(a{uuid="1"} + on (x) sum by (y) (max_over_time(b{uuid="1"}[5m:]) or )"
            R"(topk(scalar(c{uuid="1"}), d{uuid="1"})) - -(rate(e{uuid="1"}[1h] offset 1d)) + )"
            R"(label_replace({f="g", uuid="1"}, "a", "h", "i", "j"))");
}

TEST(PromqlSelector, StandsAlone) {
  const auto text = [](std::string_view query, bool empty = false) {
    const auto parsed = parse_selector(query, {}, empty);
    return parsed ? print(*parsed) : parsed.error().text();
  };
  EXPECT_EQ(text("up{a='b'}"), R"(up{a="b"})");
  EXPECT_EQ(text("{a='b'}"), R"({a="b"})");
  EXPECT_EQ(text("{}", true), "{}");
  for (const char* query :
       {"{}", "up[5m]", "up offset 5m", "up @ 1", "sum(up)", "1", "up or up", ""}) {
    EXPECT_NE(text(query).find("parse error"), std::string::npos) << query;
  }
}

/// The pattern of a selector's only matcher, as it is printed.
std::string printed_pattern(const std::string& pattern,
                            MatchOperator op = MatchOperator::kMatches) {
  VectorSelector selector;
  selector.name = "up";
  selector.matchers.push_back({.label = "uuid", .op = op, .value = pattern});
  const auto parsed = parse_selector(print(selector));
  EXPECT_TRUE(parsed) << pattern;
  return parsed ? parsed->matchers.at(0).value : std::string();
}

TEST(PromqlSelector, HasNoParenthesesAroundAListOfWords) {
  for (const auto& [pattern, printed] : {std::pair("(a|b)", "a|b"),
                                         {"(a)", "a"},
                                         {"(a|)", "a|"},
                                         {"(5b0c-77|a_b)", "5b0c-77|a_b"},
                                         {R"((a\.b|\(c\)|d\|e))", R"(a\.b|\(c\)|d\|e)"}}) {
    EXPECT_EQ(printed_pattern(pattern), printed);
    EXPECT_EQ(printed_pattern(pattern, MatchOperator::kNotMatches), printed);
    EXPECT_EQ(printed_pattern(pattern, MatchOperator::kEqual), pattern);
    EXPECT_EQ(printed_pattern(pattern, MatchOperator::kNotEqual), pattern);
  }
  // All others stay as they are.
  for (const std::string pattern :
       {"a|b",        "()",        "((a|b))",   "(a)|(b)",    "(a|b)c",    "c(a|b)",
        "(a|b)|c",    "(a|(b|c))", "(a(b)|c)",  "(?i:a|b)",   "(?:a|b)",   "(?i)(a|b)",
        "(?P<n>a|b)", "(a.c|b)",   "(a*|b)",    "(a|b)?",     "(a|b){2}",  "^(a|b)$",
        "(a|b)$",     "(^a|b$)",   "[(]a|b[)]", R"(\(a|b\))", R"((a|\d))", "(\u00e9|a)"}) {
    EXPECT_EQ(printed_pattern(pattern), pattern);
    EXPECT_EQ(printed_pattern(pattern, MatchOperator::kNotMatches), pattern);
  }
}

TEST(PromqlSelector, AcceptsTheSameAsBeforeItWasPrinted) {
  constexpr std::string_view kAlphabet = "ab|()\\.?i:";
  std::vector<std::string> words = {""};
  for (std::size_t i = 0; i < 57; ++i) {  // all of up to two characters, some of three
    for (const char c : {'a', 'b', '|', '(', ')', '.', '\\'}) {
      words.push_back(words[i] + c);
    }
  }
  std::uint64_t state = 1;
  const auto random = [&state] { return (state = state * 6364136223846793005U + 1) >> 33U; };
  int changed = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string inner;
    for (std::uint64_t length = random() % 7; length > 0; --length) {
      inner += kAlphabet[random() % kAlphabet.size()];
    }
    const std::string pattern = "(" + inner + ")";
    const RE2 before(pattern, RE2::Quiet);
    if (!before.ok()) {
      continue;
    }
    const std::string printed = printed_pattern(pattern);
    if (printed == pattern) {
      continue;
    }
    ++changed;
    const RE2 after(printed, RE2::Quiet);
    ASSERT_TRUE(after.ok()) << pattern << " " << printed;
    for (const std::string& word : words) {
      EXPECT_EQ(RE2::FullMatch(word, before), RE2::FullMatch(word, after))
          << pattern << " " << word;
    }
  }
  EXPECT_GT(changed, 100);
}

TEST(PromqlSelector, PatternsAreCounted) {
  std::string query = "up{";
  for (int i = 0; i < 500; ++i) {
    query += i % 2 == 0 ? "a=~'.+'," : "a!~'.+',";
  }
  EXPECT_TRUE(parse(query + "}"));
  EXPECT_FALSE(parse(query + "a=~'.+'}"));
  EXPECT_FALSE(parse_selector(query + "a=~'.+'}"));
  EXPECT_TRUE(parse(query + "a=~'.+'}", {.max_patterns = 501}));
}

}  // namespace
}  // namespace ceems::promql
