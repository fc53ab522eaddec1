#include "gate/unit_filters.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/gate.h"
#include "net/http.h"

namespace ceems::gate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// alice may see what `units` names.
class ManyUnits final : public Owners {
 public:
  Result<bool> is_admin(const std::string& user) override { return user == "root"; }
  Result<bool> may_see(const std::string& user,
                       const std::string& /*cluster*/,
                       const UnitSet& asked) override {
    return user == "alice" && std::ranges::includes(units, asked);
  }
  Result<UnitSet> units_of(const std::string& user,
                           const std::string& /*cluster*/,
                           const promql::TimeSpan& /*alive*/,
                           std::size_t /*limit*/) override {
    return user == "alice" ? units : UnitSet();
  }
  Result<SharedIds> shared_ids(const std::string& /*user*/,
                               const std::string& /*cluster*/,
                               const UnitSet& /*units*/) override {
    return SharedIds();
  }

  UnitSet units = {};
};

std::string encoded(std::string_view text) {
  return net::url_encode(text);
}

class UnitFiltersTest : public ::testing::Test {
 protected:
  UnitFiltersTest() { give(101); }

  /// Gives alice so many units.
  void give(int count) {
    owners.units.clear();
    for (int i = 0; i < count; ++i) {
      owners.units.insert(std::to_string(1000 + i));
    }
  }

  Checked<Decision> send(const std::string& target,
                         const std::string& method = "GET",
                         const std::string& body = {}) {
    return Gate(BackendType::kTsdb, rules, &owners)
        .decide(ParsedRequest(
                    {.method = method, .target = target, .content_type = kFormType, .body = body}),
                headers);
  }
  Checked<Decision> ask(std::string_view query) {
    return send("/api/v1/query?query=" + encoded(query));
  }

  static Fields fields_of(const Forward& forward) {
    const auto fields = parse_form(forward.method == "POST" ? forward.body : forward.query);
    return fields.value_or(Fields());
  }
  static std::vector<std::string> values_of(const Forward& forward, std::string_view name) {
    std::vector<std::string> values;
    for (const auto& [key, value] : fields_of(forward)) {
      if (key == name) {
        values.push_back(value);
      }
    }
    return values;
  }
  /// The query in the filtered form, or "none".
  std::string text(std::string_view query) {
    const auto decided = ask(query);
    if (!decided) {
      return "refused: " + std::string(decided.error().reason);
    }
    return decided->filtered ? values_of(*decided->filtered, "query").at(0) : "none";
  }
  [[nodiscard]] std::string listed() const {
    std::string words;
    for (const std::string& unit : owners.units) {
      words += (words.empty() ? "" : "|") + unit;
    }
    return words;
  }

  ManyUnits owners;
  GateRules rules{
      .clusters = {"c", "d"}, .servers = {{"c", TsdbServer::kVictoriaMetrics}}, .confine = true};
  net::Headers headers = {{"X-Grafana-User", "alice"}, {"X-Ceems-Cluster-Id", "c"}};
};

TEST_F(UnitFiltersTest, NameAHundredUnitsEach) {
  owners.units = {"a.b"};
  for (int i = 0; i < 200; ++i) {
    owners.units.insert("u" + std::to_string(1000 + i));
  }
  const auto decided = ask("sum by (job) (rate(m{job=\"x\"}[5m])) / count({__name__=~\"m.*\"})");
  ASSERT_TRUE(decided && decided->filtered);
  EXPECT_THAT(values_of(*decided->filtered, "query"),
              ElementsAre("WITH () sum by (job) (rate(m{job=\"x\", uuid!=\"\"}[5m])) / "
                          "count({__name__=~\"m.*\", uuid!=\"\"})"));
  const auto filters = values_of(*decided->filtered, "extra_filters[]");
  ASSERT_EQ(filters.size(), 3U);
  EXPECT_THAT(filters[0], StartsWith(R"({uuid=~"a\\.b|u1000|u1001|)"));
  EXPECT_TRUE(filters[0].ends_with(R"(|u1098"})")) << filters[0];
  EXPECT_TRUE(filters[1].starts_with(R"({uuid=~"u1099|)")) << filters[1];
  EXPECT_EQ(filters[2], R"({uuid=~"u1199"})");
  EXPECT_THAT(values_of(decided->forward, "extra_filters[]"), IsEmpty());
  EXPECT_THAT(values_of(decided->forward, "query").at(0), StartsWith("sum by (job) (rate(m{job="));
}

TEST_F(UnitFiltersTest, AreForManyUnitsOfServersThatHaveThem) {
  EXPECT_EQ(text("m"), R"(WITH () m{uuid!=""})");
  give(100);
  EXPECT_EQ(text("m"), "none");
  give(101);
  EXPECT_EQ(text("m{uuid=\"1000\"}"), "none");
  EXPECT_EQ(text("1"), "none");
  EXPECT_EQ(text("m{uuid=\"x\"} + m"), "refused: foreign_unit");
  for (const TsdbServer other : {TsdbServer::kPrometheus, TsdbServer::kThanos}) {
    rules.servers = {{"c", other}};
    EXPECT_EQ(text("m"), "none");
  }
  rules.servers = {{"d", TsdbServer::kVictoriaMetrics}};
  EXPECT_EQ(text("m"), "none");
  EXPECT_EQ(text("m{ceems_id=\"d\"}"), R"(WITH () m{ceems_id="d", uuid!=""})");
  headers[0].second = "bob";
  EXPECT_EQ(text("m{ceems_id=\"d\"}"), "refused: no_unit");
  headers[0].second = "root";
  EXPECT_FALSE(ask("m{ceems_id=\"d\"}")->filtered);
}

TEST_F(UnitFiltersTest, OfTenThousandUnitsKeepTheTextShort) {
  give(10'000);
  const auto decided = ask("m + n");
  ASSERT_TRUE(decided && decided->filtered);
  EXPECT_EQ(values_of(*decided->filtered, "query").at(0), R"(WITH () m{uuid!=""} + n{uuid!=""})");
  EXPECT_EQ(values_of(*decided->filtered, "extra_filters[]").size(), 100U);
  EXPECT_EQ(decided->filtered->method, "POST");
  give(10'001);
  EXPECT_EQ(text("m"), "refused: too_many_units");
}

TEST_F(UnitFiltersTest, ReplaceAListThatAllSelectorsName) {
  for (const bool confine : {false, true}) {
    rules.confine = confine;
    // As a variable of a dashboard writes it.
    const std::string all = "{uuid=~\"(" + listed() + ")\"}";
    EXPECT_EQ(text("m" + all + " / n" + all), R"(WITH () m{uuid!=""} / n{uuid!=""})");
    EXPECT_EQ(values_of(*ask("m" + all)->filtered, "extra_filters[]").size(), 2U);
    EXPECT_EQ(text("m" + all + " / n{uuid=\"1000\"}"), "none") << "n would have all";
    EXPECT_EQ(text("m{uuid=~\"" + listed() + "\", uuid=~\"1000|1001\"}"), "none");
    EXPECT_EQ(text("m{uuid=~\"" + listed() + "\", uuid!=\"1000\"}"),
              R"(WITH () m{uuid!="", uuid!="1000"})");
  }
  // Selectors with names keep them beside those without.
  EXPECT_EQ(text("m / n{uuid=\"1000\"}"), R"(WITH () m{uuid!=""} / n{uuid="1000"})");
}

TEST_F(UnitFiltersTest, LeaveSharedMetricsIn) {
  const auto decided = ask("m * on() group_left ceems_emissions_gCo2_kWh");
  ASSERT_TRUE(decided && decided->filtered);
  EXPECT_EQ(values_of(*decided->filtered, "query").at(0),
            R"(WITH () m{uuid!=""} * on () group_left () ceems_emissions_gCo2_kWh)");
  const auto filters = values_of(*decided->filtered, "extra_filters[]");
  ASSERT_EQ(filters.size(), 3U);
  EXPECT_EQ(filters[2], R"({__name__="ceems_emissions_gCo2_kWh"})");
  EXPECT_EQ(text("ceems_emissions_gCo2_kWh"), "none");
}

TEST_F(UnitFiltersTest, ConfineWhatReadsLabelsToo) {
  for (const std::string path : {"series", "labels", "label/job/values"}) {
    const auto decided = send("/api/v1/" + path + "?match[]=m&match[]=n&start=1&end=2");
    ASSERT_TRUE(decided && decided->filtered) << path;
    EXPECT_THAT(values_of(*decided->filtered, "match[]"),
                ElementsAre(R"(WITH () m{uuid!=""})", R"(WITH () n{uuid!=""})"));
    EXPECT_EQ(values_of(*decided->filtered, "extra_filters[]").size(), 2U) << path;
    const auto all = send("/api/v1/" + path);
    ASSERT_TRUE(all && all->filtered) << path;
    EXPECT_THAT(values_of(*all->filtered, "match[]"), ElementsAre(R"(WITH () {uuid!=""})"));
  }
}

TEST_F(UnitFiltersTest, OfTheUserAreDropped) {
  const std::string mine = "query=m&extra_filters[]=%7B%7D&extra_label=uuid%3Dx";
  for (const auto& decided : {send("/api/v1/query?" + mine), send("/api/v1/query", "POST", mine)}) {
    ASSERT_TRUE(decided && decided->filtered);
    for (const std::string& filter : values_of(*decided->filtered, "extra_filters[]")) {
      EXPECT_THAT(filter, StartsWith(R"({uuid=~"1)"));
    }
    EXPECT_THAT(values_of(decided->forward, "extra_filters[]"), IsEmpty());
    EXPECT_THAT(values_of(*decided->filtered, "extra_label"), IsEmpty());
  }
}

TEST_F(UnitFiltersTest, KeepTheClusterInTheText) {
  rules.pin_cluster = true;
  EXPECT_EQ(text("m"), R"(WITH () m{uuid!="", ceems_id="c"})");
}

}  // namespace
}  // namespace ceems::gate
