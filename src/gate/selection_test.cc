#include "gate/selection.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gate/profile_request.h"
#include "gate/selection.h"
#include "promql/matcher/matcher.h"
#include "promql/parser.h"

namespace ceems::gate {
namespace {

using promql::MatchOperator;
using promql::VectorSelector;

const SelectionRules kTsdb;
const SelectionRules kProfiles = ProfileRules{}.selection;

/// "passes", or the reason of the refusal.
std::string outcome(std::string_view text, const SelectionRules& rules) {
  auto selector = promql::parse_selector(text);
  if (!selector) {
    return "no selector: " + selector.error().text();
  }
  Selection selection(rules);
  const auto added = selection.add(*selector);
  return added ? "passes" : std::string(added.error().reason);
}

/// As Pyroscope writes matchers before grafana/pyroscope#4496.
std::string raw(const VectorSelector& selector) {
  std::string out = "{";
  const auto add = [&](std::string_view label, std::string_view op, std::string_view value) {
    out += out.size() > 1 ? "," : "";
    out += label;
    out += op;
    out += '"';
    out += value;
    out += '"';
  };
  if (!selector.name.empty()) {
    add("__name__", "=", selector.name);
  }
  for (const promql::Matcher& matcher : selector.matchers) {
    constexpr std::array<std::string_view, 4> kOperators{"=", "!=", "=~", "!~"};
    add(matcher.label, kOperators.at(static_cast<std::size_t>(matcher.op)), matcher.value);
  }
  return out + "}";
}

constexpr std::array<const char*, 17> kRawSafe = {
    R"({service_name="own"})",
    R"({service_name="own", pod!="a'b`c#d{e}f,g=h"})",
    R"({service_name="own", namespace="a/b:c d"})",
    "{service_name=`own`}",
    "{service_name='own'}",
    "{service_name=\"own\", x=\"\u00fc\"}",
    R"({service_name=~"own|own2"})",
    R"({service_name="own", x=~".+"})",
    R"({service_name="own", x=~"a\\.b"})",
    R"({service_name="own", x!~"\\(\\)\\[\\]\\{\\}\\|\\^\\$\\-\\/\\.\\+\\*\\?"})",
    R"({"service_name"="own"})",
    R"({service_name="own", __profile_type__="process_cpu:cpu:nanoseconds:cpu:nanoseconds"})",
    R"({service_name="own", __period_type__="cpu", __period_unit__="nanoseconds"})",
    R"({service_name="own", __session_id__="1"})",
    R"(process_cpu{service_name="own"})",
    R"({"a.b", service_name="own"})",
    R"({service_name="own", "service.version"="1"})",
};

TEST(RawText, OfPlainTextsStaysTheSameSelector) {
  for (const char* text : kRawSafe) {
    EXPECT_EQ(outcome(text, kProfiles), "passes") << text;
    // Either no selector any more, or the same one.
    const auto selector = promql::parse_selector(text);
    ASSERT_TRUE(selector) << text;
    if (const auto again = promql::parse_selector(raw(*selector))) {
      EXPECT_EQ(raw(*again), raw(*selector)) << text;
      EXPECT_EQ(again->matchers.size() + (again->name.empty() ? 0 : 1),
                selector->matchers.size() + (selector->name.empty() ? 0 : 1))
          << text;
    }
  }
}

TEST(RawText, ThatCouldBecomeAnotherSelectorIsRefused) {
  for (const char* text : {
           R"({service_name!="\"} #", service_name="own"})",
           R"({service_name!='"} #', service_name="own"})",
           "{service_name!=`\"} #`, service_name=\"own\"}",
           R"({service_name="own", x="a\"b"})",
           R"({service_name="own", x=~"a\"b"})",
           R"({service_name="own", x!~"a\"b"})",
           R"({service_name="own", x="a\\"})",
           R"({service_name="own", x=~"a\\\\"})",
           R"({service_name=~"own\\\\", x=","})",
           R"({service_name="own", x="a\\.b"})",
           R"({service_name="own", x=~"a\\d"})",
           R"({service_name="own", x=~"a\\x22"})",
           R"({service_name="own", x=~"a\\\"b"})",
           R"({service_name="own", x=~"\\Q.\\E"})",
           R"({service_name="own", x="a\nb"})",
           R"({service_name="own", x="a\tb"})",
           R"({service_name="own", x="\x00"})",
           R"({service_name="own", x="\x7f"})",
           R"({service_name="own", x=~"a\nb"})",
           R"({service_name="own", x="\xff"})",
           R"({service_name="own", x="\x22"})",
           R"({service_name="own", x="\u0022"})",
           R"({service_name="own", "x=\"\"} #"="y"})",
           R"({service_name="own", "a b"="y"})",
           R"({service_name="own", "a,b"="y"})",
           R"({service_name="own", "a\nb"="y"})",
           R"({"a b", service_name="own"})",
           R"({"x\"} #", service_name="own"})",
       }) {
    EXPECT_EQ(outcome(text, kProfiles), "raw_text") << text;
  }
  // Prometheus and its kin write texts with escapes.
  EXPECT_EQ(outcome(R"(x{uuid="own", y="a\"b\n", "a b"=~"\\d+"})", kTsdb), "passes");
}

TEST(RawText, OfUnitsThatConfineIsJudgedToo) {
  const auto confine = [](const std::string& unit) {
    auto selector = promql::parse_selector("{}", {}, true);
    Selection selection(kProfiles);
    EXPECT_TRUE(selection.add(*selector));
    const auto confined = selection.confine({unit, "a.b"});
    return confined ? "passes" : std::string(confined.error().reason);
  };
  EXPECT_EQ(confine("own"), "passes");
  EXPECT_EQ(confine(R"(o"wn)"), "raw_text");
  EXPECT_EQ(confine(R"(o\wn)"), "raw_text");
}

TEST(InternalLabels, AreNotForUsers) {
  for (const char* text : {R"(x{uuid="own", __queries__="{}"})",
                           R"({__name__="__embedded_queries__", uuid="own", __queries__="7b7d"})",
                           R"(x{uuid="own", __queries__!=""})",
                           R"(x{uuid="own", __queries__=~".*"})",
                           R"(x{uuid="own", "__queries__"="{}"})",
                           R"(x{uuid="own", __query_shard__="1_of_2"})",
                           R"(x{uuid="own", __graphite__="*"})",
                           R"(x{uuid="own", __="y"})",
                           R"(x{uuid="own", ___name__="y"})",
                           R"(x{uuid="own", __profile_type__="y"})",
                           R"(__embedded_queries__{uuid="own"})",
                           R"({"__embedded_queries__", uuid="own"})",
                           R"({__name__="__embedded_queries__", uuid="own"})",
                           R"({__name__!="__embedded_queries__", uuid="own"})",
                           R"({__name__=~"__embedded_queries__", uuid="own"})",
                           R"({__name__!~"__embedded_queries__", uuid="own"})",
                           R"({__name__=~"__embedded.*", uuid="own"})",
                           R"({__name__=~"__.+", uuid="own"})",
                           R"({__name__=~"^__embedded.*", uuid="own"})",
                           R"({__name__=~"(__embedded|x).*", uuid="own"})",
                           R"({__name__=~"x|__embedded_queries__", uuid="own"})",
                           R"({__name__=~"x.*|__embedded.*", uuid="own"})",
                           R"({__name__=~".*__embedded.*", uuid="own"})",
                           R"({__name__=~"[_]_embedded_queries__", uuid="own"})",
                           R"({__name__=~"_{2}embedded_queries__", uuid="own"})",
                           R"q({__name__=~"_(_x|y)", uuid="own"})q",
                           R"({__name__=~"x?__embedded_queries__", uuid="own"})"}) {
    EXPECT_EQ(outcome(text, kTsdb), "internal_label") << text;
  }
  EXPECT_EQ(outcome(R"({service_name="own", __queries__="x"})", kProfiles), "internal_label");
}

TEST(InternalLabels, OthersAreNone) {
  for (const char* text : {
           R"(x{uuid="own", __type__="gauge", __unit__="watts"})",
           R"({__name__="up", uuid="own"})",
           R"({__name__=~"ceems_.*", uuid="own"})",
           R"({__name__=~"ceems__x.*", uuid="own"})",
           R"({__name__=~"ceems_cpu__seconds|ceems_x", uuid="own"})",
           R"({__name__=~"(a|b)__c", uuid="own"})",
           R"({__name__=~".+", uuid="own"})",
           R"({__name__!~"ceems_.*", uuid="own"})",
           R"({__name__=~"_x.*", uuid="own"})",
           R"(_x{uuid="own"})",
           R"(x{uuid="own", y="__queries__"})",
           R"(x{uuid="own", y=~"__.*"})",
           R"(x{uuid="own", y__z="1"})",
       }) {
    EXPECT_EQ(outcome(text, kTsdb), "passes") << text;
  }
}

TEST(SharedMetrics, AreNoneOfProfiles) {
  auto selector = promql::parse_selector(R"({__name__="ceems_emissions_gCo2_kWh"})");
  ASSERT_TRUE(selector);
  Selection profiles(kProfiles);
  EXPECT_TRUE(profiles.add(*selector));
  EXPECT_TRUE(profiles.is_open());
  Selection tsdb(kTsdb);
  EXPECT_TRUE(tsdb.add(*selector));
  EXPECT_FALSE(tsdb.is_open());
}

}  // namespace
}  // namespace ceems::gate
