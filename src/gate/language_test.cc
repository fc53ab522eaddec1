// The language of the servers' queries, as a table of kinds of expressions. For a new release, add
// its kinds. The test makes every combination of the parts of a kind.

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "gate/tsdb_request.h"
#include "net/http.h"
#include "promql/parser.h"
#include "promql/selectors.h"

namespace ceems::gate {
namespace {

struct Kind {
  std::string_view since;
  /// Capital letters in '$' stand for the parts below.
  std::string_view text;
  bool metricsql = false;
};

constexpr std::array kKinds = {
    Kind{"2.0", "$V$"},
    Kind{"2.0", "$F$($M$)"},
    Kind{"2.0", "$V$ $O$ $V$"},
    Kind{"2.0", "$A$ by (job) ($V$)"},
    Kind{"2.0", "histogram_quantile(0.9, $V$)"},
    Kind{"2.0", "label_replace($V$, 'a', '$1', 'b', '(.*)')"},
    Kind{"2.0", "$V$ * on (job) group_left (a) $V$"},
    Kind{"2.7", "max_over_time(($V$)[1h:5m])"},
    Kind{"2.25", "$M$ @ end() offset 5m"},
    Kind{"3.0", "sum by ('a.b') ($V$)"},
    Kind{"3.0", "{'m', 'a.b'='x', uuid='1'}"},
    Kind{"3.0", "m{uuid='1'} offset 300"},
    Kind{"3.0", "info($V$, {uuid='1'})"},
    Kind{"3.0", "info($V$, {uuid='1', __name__=~'.+_info'})"},
    Kind{"3.0", "limitk(2, $V$)"},
    Kind{"3.0", "limit_ratio(0.5, $V$)"},
    Kind{"3.0", "$E$_over_time($M$)"},
    Kind{"3.4", "double_exponential_smoothing($M$, 0.5, 0.5)"},
    Kind{"3.5", "sum by (a:b) ($V$)"},
    Kind{"3.5", "m{''='0', uuid='1'}"},
    Kind{"3.5", "m{a=~'(?<n>a)', uuid='1'}"},
    Kind{"3.5", "m{a=~'.{1000}.{1000}', uuid='1'}"},
    Kind{"3.11", "$V$ </ 10"},
    Kind{"3.11", "histogram_sum($V$ >/ $S$)"},
    Kind{"3.14", "$F$(m{uuid='1'}[$D$])"},
    Kind{"3.14", "$F$(m{uuid='1'}[$D$:$D$])"},
    Kind{"3.14", "m{uuid='1'} offset $D$"},
    Kind{"3.14", "m{uuid='1'} offset -($D$)"},
    Kind{"3.14", "first_over_time($M$)"},
    Kind{"3.14", "m{uuid='1'} @ 2m"},
    Kind{"3.14", "$V$ + fill(0) $V$"},
    Kind{"3.14", "$V$ * on (job) group_left fill_left(-1) fill_right(NaN) $V$"},
    Kind{"3.14", "integral($M$)"},
    Kind{"3.14", "histogram_quantiles($V$, 'q', 0.5, 0.9, 0.99)"},
    Kind{"3.14", "start_timestamp($V$)"},
    Kind{"3.14", "$V$ * $T$()"},
    Kind{"3.14", "max_of(1, scalar($V$)) + min_of(2, scalar($V$))"},
    Kind{"3.16", "$F$(m{uuid='1'}[5m] $Z$)"},
    Kind{"3.16", "$F$(m{uuid='1'}[5m] $Z$ offset 5m @ start())"},
    Kind{"3.16", "m{uuid='1'} $Z$"},
    Kind{"3.16", "m.n{a.b='x', uuid='1'}"},
    Kind{"3.16", "sum by (a.b) (\u00fcber{uuid='1'})"},
    Kind{"1.0", "rate(m{uuid='1'}[5i])", true},
    Kind{"1.0", "max_over_time(m{uuid='1'}[1h:2i] offset 1i)", true},
    Kind{"1.0", "$V$ $Q$ $V$", true},
    Kind{"1.0", "$V$ default 0", true},
    Kind{"1.0", "$F$($M$) keep_metric_names", true},
    Kind{"1.0", "($V$ + $V$) keep_metric_names", true},
    Kind{"1.0", "m.n{a.b='x', uuid='1'}", true},
    Kind{"1.0", "$F$(m{uuid='1'})", true},
    Kind{"1.0", "$F$($V$)", true},
    Kind{"1.0", "max_over_time($F$($M$)[1h])", true},
    Kind{"1.0", "$G$($M$)", true},
    Kind{"1.0", "$H$ by (job) ($V$)", true},
    Kind{"1.0", "$H$($V$,) without (job)", true},
    Kind{"1.0", "label_set($V$, 'a', 'b')", true},
    Kind{"1.0", "union($V$, $F$($V$), $V$)", true},
    Kind{"1.0", "topk_avg(3, $V$, 'other=sum')", true},
    Kind{"1.0", "m{uuid='1'}[5m] / 2 + now()", true},
};

const std::map<char, std::vector<std::string_view>>& parts() {
  static const std::map<char, std::vector<std::string_view>> all = {
      {'V', {"m{uuid='1'}", "({uuid=~'1|2', job!='x'})", "abs(m{uuid=\"1\"})"}},
      {'M', {"m{uuid='1'}[5m]", "({uuid='2'})[1h:1m]"}},
      {'S', {"1", "-Inf", "5m", "scalar(m{uuid='1'})", "(time() - 0x1F)"}},
      {'F', {"rate", "increase", "avg_over_time", "absent_over_time", "changes"}},
      {'A', {"sum", "count", "group", "STDDEV"}},
      {'O',
       {"+", "-", "*", "/", "%", "^", "==", "!= bool", "<", ">=", "and", "unless", "or", "atan2"}},
      {'D',
       {"5m", "90", "5m * 2", "step()", "range() / 2", "max_of(step(), 1m)", "min_of(1h, 2 ^ 3)",
        "-step() + 1h", "(5m)", "1h % 7m"}},
      {'E', {"mad", "ts_of_first", "ts_of_last", "ts_of_min", "ts_of_max"}},
      {'T', {"start", "end", "step", "range", "pi", "time"}},
      {'Z', {"anchored", "smoothed"}},
      {'G', {"rollup_rate", "median_over_time", "increase_pure", "range_avg", "running_sum"}},
      {'H', {"median", "any", "share", "mode", "zscore"}},
      {'Q', {"default", "if", "ifnot", "DEFAULT"}},
  };
  return all;
}

/// All texts of a kind. Equal parts of one kind vary independently.
std::vector<std::string> texts_of(std::string_view kind) {
  std::vector<std::string> all = {""};
  while (!kind.empty()) {
    const bool is_part = kind.size() > 2 && kind[0] == '$' && kind[2] == '$';
    std::vector<std::string> next;
    for (const std::string& text : all) {
      if (!is_part) {
        next.push_back(text + kind.front());
        continue;
      }
      for (const std::string_view part : parts().at(kind[1])) {
        next.push_back(text + std::string(part));
      }
    }
    kind.remove_prefix(is_part ? 3 : 1);
    all = std::move(next);
  }
  return all;
}

std::string replaced(std::string text, std::string_view from, std::string_view to, std::size_t at) {
  return text.replace(at, from.size(), to);
}

class Language : public ::testing::TestWithParam<Kind> {
 protected:
  Language() {
    rules.selection.language.experimental = true;
    rules.selection.refuse_open = true;
  }

  /// The text that is sent on, or the reason of the refusal in brackets. Fills `units`.
  std::string ask(const std::string& query) {
    const std::string target = "/api/v1/query?query=" + net::url_encode(query);
    auto read = TsdbRequest::read(
        ParsedRequest({.method = "GET", .target = target}), rules, Budget::kFull,
        GetParam().metricsql ? TsdbServer::kVictoriaMetrics : TsdbServer::kPrometheus);
    if (!read) {
      return "<" + std::string(read.error().reason) + "> " + read.error().message;
    }
    units = read->selection().units();
    const auto fields = parse_form(read->forward().query);
    return fields && fields->size() == 1 ? fields->front().second : "<form>";
  }

  TsdbRules rules;
  std::set<std::string, std::less<>> units;
};

TEST_P(Language, IsUnderstoodAndEverySelectorIsConfined) {
  const promql::ParseOptions options{.experimental = true, .metricsql = GetParam().metricsql};
  for (const std::string& query : texts_of(GetParam().text)) {
    const std::string sent = ask(query);
    ASSERT_FALSE(sent.starts_with('<')) << query << " -> " << sent;
    auto parsed = promql::parse(sent, options);
    ASSERT_TRUE(parsed) << query << " -> " << sent << ": " << parsed.error().text();
    promql::for_each_selector(**parsed, [&](const promql::VectorSelector& selector) {
      EXPECT_TRUE(std::ranges::any_of(selector.matchers,
                                      [](const promql::Matcher& matcher) {
                                        return matcher.label == "uuid" &&
                                               (matcher.value == "1" || matcher.value == "2" ||
                                                matcher.value == "1|2");
                                      }))
          << query << " -> " << sent;
    });
    EXPECT_EQ(ask(sent), sent) << query;
  }
}

TEST_P(Language, NamesEveryForeignUnitAndLeavesNoSelectorOpen) {
  for (const std::string& query : texts_of(GetParam().text)) {
    for (std::size_t at = query.find("uuid"); at != std::string::npos;
         at = query.find("uuid", at + 1)) {
      const std::string open = ask(replaced(query, "uuid", "user", at));
      EXPECT_TRUE(open.starts_with("<no_unit>")) << query << " -> " << open;
      const std::size_t value = query.find_first_of("'\"", at) + 1;
      const std::string foreign = replaced(query, "1", "foreign", value);
      const std::string sent = ask(foreign);
      EXPECT_TRUE(!sent.starts_with('<') &&
                  units.contains("foreign") == foreign.contains("foreign"))
          << foreign << " -> " << sent;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Language, ::testing::ValuesIn(kKinds));

class LanguageRefusals : public Language {};

TEST_P(LanguageRefusals, AreWhatNobodyKnows) {
  for (const char* query :
       {"m{uuid='1'} some_day", "m{uuid='1'} ~~ 1", "some_day(m{uuid='1'})", "m{uuid='1' or a='b'}",
        "m{uuid='1'}[5m] sometimes", "rate(m{uuid='1'}[n])", "rate(m{uuid='1'}[5m * n])",
        "m{uuid='1'} offset n", "m{uuid='1'} @ n", "WITH (x = 1) m{uuid='1'}"}) {
    EXPECT_TRUE(ask(query).starts_with("<syntax>")) << query << " -> " << ask(query);
  }
  const std::string info = ask("info(m{uuid='1'})");
  EXPECT_TRUE(info.starts_with("<function> info() needs a second argument")) << info;
}

INSTANTIATE_TEST_SUITE_P(Servers,
                         LanguageRefusals,
                         ::testing::Values(Kind{"3.16", ""}, Kind{"1.0", "", true}));

TEST(LanguageOfVictoriaMetrics, IsForItsServersOnly) {
  TsdbRules rules;
  for (const char* query : {"rate(m{uuid='1'}[5i])", "m{uuid='1'} default 0",
                            "rate(m{uuid='1'}[5m]) keep_metric_names"}) {
    const std::string target = "/api/v1/query?query=" + net::url_encode(query);
    const auto read = TsdbRequest::read(ParsedRequest({.method = "GET", .target = target}), rules);
    ASSERT_FALSE(read) << query;
    EXPECT_EQ(read.error().reason, "syntax");
  }
}

}  // namespace
}  // namespace ceems::gate
