#include "gate/gate.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "gate/gate_test_support.h"

namespace ceems::gate {
namespace {

TEST_F(GateTest, LoginsAreMappedToTheNamesOfTheCluster) {
  headers[0].second = "ALICE";
  EXPECT_EQ(outcome(R"(a{uuid="own"})").substr(0, 3), "403");
  rules.user_of = [](std::string_view login) {
    return std::string(login == "ALICE" ? "alice" : "ceems-int-svc");
  };
  const auto decision = ask(R"(a{uuid="own"})");
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->user, "alice");
  headers[0].second = "root";
  EXPECT_EQ(outcome(R"(a{uuid="own"})").substr(0, 3), "403");
}

TEST_F(GateTest, OwnUnitsPassInEverySpelling) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"(a{uuid="own"})", R"(a{uuid="own"})"},
      {R"(a{ uuid = 'own' })", R"(a{uuid="own"})"},
      {"a{uuid=`own`}", R"(a{uuid="own"})"},
      {R"(a{uuid=~"own1|own2"})", R"(a{uuid=~"own1|own2"})"},
      {R"(a{uuid=~"^own$"})", R"(a{uuid=~"^own$"})"},
      {R"(a{uuid=~"own[12]"})", R"(a{uuid=~"own[12]"})"},
      {R"q(a{uuid=~"(?:own)"})q", R"q(a{uuid=~"(?:own)"})q"},
      {R"q(a{uuid=~"own(1|2)"})q", R"q(a{uuid=~"own(1|2)"})q"},
      {R"(a{uuid="\x6fwn"})", R"(a{uuid="own"})"},
      {R"(a{uuid="own",gpuuuid="GPU-01234"})", R"(a{uuid="own", gpuuuid="GPU-01234"})"},
      {R"({__name__=~".+",uuid="own"})", R"({__name__=~".+", uuid="own"})"},
      {R"(a{uuid="own"}[1h:1m])", R"(a{uuid="own"}[1h:1m])"},
      {R"(rate(a{uuid="own"}[5m] @ 1 offset 1d))", R"(rate(a{uuid="own"}[5m] @ 1.000 offset 1d))"},
      {R"(a{uuid="own"} / on(x) b{uuid="own1"} # c)", R"(a{uuid="own"} / on (x) b{uuid="own1"})"},
      {R"(a{uuid="own",uuid!="x"})", R"(a{uuid="own", uuid!="x"})"},
      {R"({"a","uuid"="own"})", R"(a{uuid="own"})"},
      {R"(a{uuid="own"} * on() group_left ceems_emissions_gCo2_kWh{provider="rte"})",
       R"(a{uuid="own"} * on () group_left () ceems_emissions_gCo2_kWh{provider="rte"})"},
      {"1+1", "1 + 1"},
      {"vector(1)", "vector(1)"},
      {"time()", "time()"},
      {R"q(label_replace(a{uuid="own"},"x","$1","instance","(.*)"))q",
       R"q(label_replace(a{uuid="own"}, "x", "$1", "instance", "(.*)"))q"},
  };
  for (const auto& [query, forwarded] : cases) {
    EXPECT_EQ(outcome(query), forwarded) << query;
  }
}

TEST_F(GateTest, EverySelectorMustBeConfinedToOwnUnits) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"(a{uuid="other"})", "403 foreign_unit"},
      {R"(a{uuid="own"} or a{uuid="other"})", "403 foreign_unit"},
      {"a{uuid=\"own\"} or\na{uuid=\"other\"}", "403 foreign_unit"},
      {R"(a{uuid="own"} or a)", "403 no_unit"},
      {R"(a{uuid="own"} + on() group_left b)", "403 no_unit"},
      {"a # ,uuid=\"own\"", "403 no_unit"},
      {R"(label_replace(a,'d',' uuid="own"','s',''))", "403 no_unit"},
      {R"(count_values(' uuid="own"',a))", "403 no_unit"},
      {R"({uuid=~".*",xuuid=~"own|"})", "403 no_unit"},
      {R"(a{uuid=~".*",xuuid=~"own|"})", "403 no_unit"},
      {R"({service_name=~"own|x"})", "403 no_unit"},
      {R"(a{uuid=~"own|"})", "403 empty_unit"},
      {R"(a{uuid=""})", "403 empty_unit"},
      {R"(a{uuid="",gpuuuid="GPU-1"})", "403 empty_unit"},
      {R"(a{uuid!="x"} or b{uuid="own"})", "403 no_unit"},
      {R"(a{uuid!~"x"})", "403 no_unit"},
      {R"(a{uuid=~".+"})", "403 no_unit"},
      {R"({__name__="up"})", "403 no_unit"},
      {R"(a{uuid="own",uuid="other"})", "403 foreign_unit"},
      {R"(a{uuid="own|other"})", "403 foreign_unit"},
      {R"(a{uuid=~"own|other"})", "403 foreign_unit"},
      {R"(a{uuid="\x6fther"})", "403 foreign_unit"},
      {R"(a{uuid="othe\u0072"})", "403 foreign_unit"},
      {R"({"a","uuid"="other",xuuid=~"own|"})", "403 foreign_unit"},
      {R"(max_over_time((a or b{uuid="own"})[1h:1m]))", "403 no_unit"},
      {R"(a{uuid="own"} * on(instance) group_left c)", "403 no_unit"},
      {"absent(a)", "403 no_unit"},
      {R"(info(a{uuid="own"}))", "400 syntax"},
      {R"(a{UUID="own"})", "403 no_unit"},
      {R"(a{uuid=~"(?i)own"})", "403 no_unit"},
      {R"(a{uuid=~"own\\d"})", "403 no_unit"},
      {R"({__name__=~"ceems_emissions_gCo2_kWh"})", "403 no_unit"},
      {R"({__name__=~"ceems_emissions_gCo2_kWh|up"})", "403 no_unit"},
      {"a{uuid=\"own\"", "400 syntax"},
      {"a{\u00fcuid=\"own\"}", "400 syntax"},
      {"", "400 syntax"},
      {R"(a{uuid="own",ceems_id="c1"} or b{uuid="own",ceems_id="c2"})", "403 cluster_label"},
      {R"(a{uuid="own",ceems_id=~"c.*"})", "403 cluster_label"},
      {R"(a{uuid="own",ceems_id="c9"})", "403 cluster_label"},
      {R"(a{uuid="own",ceems_id="c2"})", "403 foreign_unit"},
  };
  for (const auto& [query, reason] : cases) {
    EXPECT_EQ(outcome(query), reason) << query;
  }
}

TEST_F(GateTest, NestedAndLongQueriesAreRefused) {
  EXPECT_EQ(outcome(std::string(300, '(') + "1" + std::string(300, ')')), "400 syntax");
  EXPECT_EQ(outcome(std::string(70'000, ' ') + "1"), "400 syntax");
  std::string many = "a{uuid=~\"";
  for (int i = 0; i < 10'000; ++i) {
    many += std::to_string(i) + "|";
  }
  EXPECT_EQ(outcome(many + "x\"}"), "400 too_many_units");
}

TEST_F(GateTest, TheClusterOfTheLabelCounts) {
  const auto answer = ask(R"(a{uuid="far",ceems_id="c2"})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->cluster, "c2");
  EXPECT_EQ(answer->units, std::vector<std::string>{"far"});
}

TEST_F(GateTest, SelectorsArePinnedToTheClusterWhereTheOperatorChoseIt) {
  rules.pin_cluster = true;
  EXPECT_EQ(outcome(R"(a{uuid="dup"} + b{uuid="own"})"),
            R"(a{uuid="dup", ceems_id="c1"} + b{uuid="own", ceems_id="c1"})");
  EXPECT_EQ(outcome(R"(a{uuid="dup",ceems_id="c2"} + b{uuid="far"})"),
            R"(a{uuid="dup", ceems_id="c2"} + b{uuid="far", ceems_id="c2"})");
  EXPECT_EQ(outcome("ceems_emissions_gCo2_kWh"), "ceems_emissions_gCo2_kWh");
  EXPECT_EQ(text_of(send("GET", "/api/v1/labels?match[]=" + encoded("a{uuid='own'}")), "match[]"),
            R"(a{uuid="own", ceems_id="c1"})");
  rules.confine = true;
  owners.owned[{"alice", "c1"}] = {"own"};
  EXPECT_EQ(outcome("up"), R"(up{uuid="own", ceems_id="c1"})");
}

TEST_F(GateTest, HiddenLabelsAreNotCopied) {
  rules.tsdb.selection.hidden_labels = {"instance"};
  EXPECT_EQ(outcome(R"q(label_replace(a{uuid="own"},"x","$1","instance","(.*)"))q"),
            "403 function");
  EXPECT_EQ(outcome(R"(label_join(a{uuid="own"},"x",",","job","instance"))"), "403 function");
  EXPECT_EQ(outcome(R"(abs(label_join(a{uuid="own"},"x",",","instance")))"), "403 function");
  EXPECT_EQ(outcome(R"(label_join(a{uuid="own"},"x",",","job"))"),
            R"(label_join(a{uuid="own"}, "x", ",", "job"))");
}

TEST_F(GateTest, FunctionsOfMetricsQlDoNotCopyHiddenLabels) {
  rules.servers = {{"c1", TsdbServer::kVictoriaMetrics}};
  const std::string copy = R"(label_copy(a{uuid="own"}, "instance", "x"))";
  EXPECT_EQ(outcome(copy), copy);
  rules.tsdb.selection.hidden_labels = {"instance"};
  EXPECT_EQ(outcome(copy), "403 function");
  EXPECT_EQ(outcome(R"(median(label_value(a{uuid="own"}, "instance")))"), "403 function");
  EXPECT_EQ(outcome(R"(median_over_time(a{uuid="own"}))"), R"(median_over_time(a{uuid="own"}))");
  EXPECT_EQ(outcome(R"(union(a{uuid="own"}, median by (x) (b)))"), "403 no_unit");
}

TEST_F(GateTest, ParametersAreReadOnce) {
  const std::string own = encoded(R"(a{uuid="own"})");
  EXPECT_EQ(text_of(send("GET", "/api/v1/query?query=a&query=" + own), ""), "400 parameters");
  EXPECT_EQ(text_of(send("POST", "/api/v1/query?query=" + own, "query=a"), ""), "400 parameters");
  EXPECT_EQ(text_of(send("GET", "/api/v1/query?query=" + own + "&time=1&time=2"), ""),
            "400 parameters");
  EXPECT_EQ(text_of(send("GET", "/api/v1/query?time=1"), ""), "400 parameters");
  EXPECT_EQ(text_of(send("GET", "/api/v1/query?query=" + own + ";x=1"), ""), "400 encoding");
  EXPECT_EQ(text_of(send("GET", "/api/v1/query?query=%zz"), ""), "400 encoding");
  EXPECT_EQ(text_of(send("GET", "/api/v1/query?query=%ff"), ""), "400 encoding");
  EXPECT_EQ(text_of(send("GET", "/api/v1/query?query=1%00"), ""), "400 encoding");
  // Encoded twice: '%7B' is not a brace.
  EXPECT_EQ(text_of(send("GET", "/api/v1/query?query=" + encoded(own)), ""), "400 syntax");
}

TEST_F(GateTest, ParametersAreBounded) {
  std::string many = "query=1";
  for (int i = 1; i < 1000; ++i) {
    many += "&x=";
  }
  EXPECT_TRUE(send("POST", "/api/v1/query", many));
  EXPECT_EQ(text_of(send("POST", "/api/v1/query", many + "&x="), ""), "400 parameters");
  const std::string selector =
      "match[]=" + encoded("{uuid='own',x='" + std::string(33'000, '!')) + encoded("'}");
  EXPECT_TRUE(send("POST", "/api/v1/series", selector));
  EXPECT_EQ(text_of(send("POST", "/api/v1/series", selector + "&" + selector), ""), "400 size");
}

TEST_F(GateTest, OnlyKnownParametersGoOn) {
  const auto answer = send("POST", "/api/v1/query_range?dedup=false&storeMatch[]=x",
                           "start=1&end=2&step=15s&engine=x&query=" + encoded("a{uuid='own'}"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->forward.method, "POST");
  EXPECT_EQ(answer->forward.path, "/api/v1/query_range");
  EXPECT_EQ(answer->forward.query, "");
  EXPECT_EQ(answer->forward.body, "start=1&end=2&step=15s&query=" + encoded(R"(a{uuid="own"})"));
  EXPECT_EQ(answer->forward.content_type, "application/x-www-form-urlencoded");
}

TEST_F(GateTest, TheBodyOfAGetIsDropped) {
  const auto answer = send("GET", "/api/v1/query?query=1", "query=a");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->forward.body, "");
}

TEST_F(GateTest, EveryMatchMustPass) {
  const std::string own = "match[]=" + encoded(R"({uuid="own"})");
  EXPECT_EQ(text_of(send("GET", "/api/v1/series?" + own), "match[]"), R"({uuid="own"})");
  EXPECT_EQ(text_of(send("GET", "/api/v1/labels?" + own), "match[]"), R"({uuid="own"})");
  EXPECT_EQ(text_of(send("GET", "/api/v1/label/job/values?" + own), "match[]"), R"({uuid="own"})");
  EXPECT_EQ(text_of(send("GET", "/api/v1/series?" + own + "&match[]=up"), ""), "403 no_unit");
  EXPECT_EQ(text_of(send("GET", "/api/v1/series?match[]=" + encoded(R"({job=~".+"})")), ""),
            "403 no_unit");
  EXPECT_EQ(text_of(send("GET", "/api/v1/labels"), ""), "403 no_unit");
  EXPECT_EQ(text_of(send("GET", "/api/v1/label/uuid/values"), ""), "403 no_unit");
  EXPECT_EQ(text_of(send("GET", "/api/v1/label/uuid/values?match[]=" +
                                    encoded(R"({x="y",xuuid=~"own|"})")),
                    ""),
            "403 no_unit");
  EXPECT_EQ(text_of(send("GET", "/api/v1/series?match[]=" + encoded("sum(a)")), ""), "400 syntax");
}

TEST_F(GateTest, LabelsMayHaveDotsInTheirNames) {
  const std::string own = "match[]=" + encoded(R"({uuid="own"})");
  const std::string others = "match[]=" + encoded(R"({uuid="other"})");
  for (const std::string name : {"k8s.pod", "U__k8s_2e_pod", "U__", "a.b.c", "a..b", "_.x"}) {
    const std::string path = "/api/v1/label/" + name + "/values";
    const auto passed = send("GET", path + "?" + own);
    ASSERT_TRUE(passed) << name;
    EXPECT_EQ(passed->forward.path, path);
    EXPECT_EQ(text_of(passed, "match[]"), R"({uuid="own"})") << name;
    EXPECT_EQ(text_of(send("GET", path + "?" + others), ""), "403 foreign_unit") << name;
    EXPECT_EQ(text_of(send("GET", path), ""), "403 no_unit") << name;
  }
  EXPECT_EQ(send("GET", "/api/v1/label/k8s%2epod/values?" + own)->forward.path,
            "/api/v1/label/k8s.pod/values");
  for (const std::string name : {".", "..", "k8s.pod%00", "k8s%2fpod", "k8s%252epod"}) {
    EXPECT_EQ(send("GET", "/api/v1/label/" + name + "/values?" + own).error().status, 400) << name;
  }
  for (const std::string name : {".a", "1.a", "k8s%20pod", "k8s.pod%3f", "\u00e9"}) {
    EXPECT_EQ(send("GET", "/api/v1/label/" + name + "/values?" + own).error().status, 403) << name;
  }
}

TEST_F(GateTest, PathsAreAListAndNothingElse) {
  const std::string query = "?query=1&match[]=" + encoded(R"({uuid="own"})");
  for (const char* path : {"/api/v1/query", "/api/v1/query/", "/api/v1//query",
                           "//api/v1/query_range", "/api/v1/query_exemplars", "/api/v1/series",
                           "/api/v1/labels", "/api/v1/label/a_b/values", "/api/v1/%71uery"}) {
    EXPECT_TRUE(send("GET", path + query)) << path;
  }
  EXPECT_EQ(send("GET", "/api/v1//query/?query=1")->forward.path, "/api/v1/query");
  for (const char* path : {"/",
                           "/api/v1/status/config",
                           "/api/v1/status/config/",
                           "/federate",
                           "/federate/",
                           "/api/v1/read",
                           "/api/v1/write",
                           "/api/v1/admin/tsdb/delete_series/",
                           "/api/v1/Query",
                           "/whatever/query",
                           "/query",
                           "/api/v1/metadata",
                           "/api/v1/targets",
                           "/api/v1/rules",
                           "/api/v1/format_query",
                           "/api/v1/status/buildinfo",
                           "/health",
                           "/api/v1/label//values",
                           "/api/v1/label/a/b/values",
                           "/api/v1/label/a-b/values",
                           "/x/api/v1/query"}) {
    const auto answer = send("GET", path + query);
    ASSERT_FALSE(answer) << path;
    EXPECT_EQ(answer.error().status, 403) << path;
    EXPECT_EQ(answer.error().message, "user do not have permissions to this resource") << path;
  }
  for (const char* path :
       {"/api/v1/label/..%2f..%2fx/values", "/federate/%2e%2e/api/v1/query", "/api/v1/../v1/query",
        "/api/v1/./query", "/api/v1/query%00", "/api/v1\\query", "/api/v1/%5cquery",
        "/api/v1/%2571uery", "/api/v1/%zz", "api/v1/query", "/api/v1/query#x"}) {
    const auto answer = send("GET", path + query);
    ASSERT_FALSE(answer) << path;
    EXPECT_EQ(answer.error().status, 400) << path;
  }
  rules.tsdb.prefixes = {"", "/prometheus"};
  EXPECT_TRUE(send("GET", "/prometheus/api/v1/query?query=1"));
  rules.tsdb.editors = true;
  EXPECT_TRUE(send("GET", "/api/v1/format_query?query=sum(up)"));
  EXPECT_TRUE(send("GET", "/prometheus/api/v1/status/buildinfo"));
  EXPECT_TRUE(send("GET", "/api/v1/metadata"));
}

TEST_F(GateTest, OtherMethodsAndBodiesAreRefused) {
  EXPECT_EQ(text_of(send("PUT", "/api/v1/series?match[]=up"), ""), "405 method");
  EXPECT_EQ(text_of(send("DELETE", "/api/v1/series?match[]=up"), ""), "405 method");
  EXPECT_EQ(text_of(send("OPTIONS", "/api/v1/query?query=1"), ""), "405 method");
  EXPECT_EQ(
      text_of(send("POST", "/api/v1/query", "query=1", "multipart/form-data; boundary=x"), ""),
      "415 media_type");
  EXPECT_EQ(text_of(send("POST", "/api/v1/query", "query=1", "text/plain"), ""), "415 media_type");
  EXPECT_TRUE(
      send("POST", "/api/v1/query", "query=1", "Application/X-WWW-Form-Urlencoded; charset=utf-8"));
  EXPECT_EQ(text_of(send("POST", "/api/v1/query", std::string((1U << 20U) + 1, 'x')), ""),
            "413 size");
  content_encoding = "gzip";
  EXPECT_EQ(text_of(send("POST", "/api/v1/query", "query=1"), ""), "415 media_type");
}

TEST_F(GateTest, IdentityAndClusterMustBeToldOnce) {
  headers = {{"X-Ceems-Cluster-Id", "c1"}};
  EXPECT_EQ(outcome("1"), "401 user");
  headers = {{"X-Grafana-User", ""}, {"X-Ceems-Cluster-Id", "c1"}};
  EXPECT_EQ(outcome("1"), "401 user");
  headers = {{"X-Grafana-User", "alice"}, {"x-grafana-user", "root"}, {"X-Ceems-Cluster-Id", "c1"}};
  EXPECT_EQ(outcome("1"), "401 user");
  headers = {{"X-Grafana-User", "alice"}};
  EXPECT_EQ(outcome("1"), "400 cluster");
  headers = {{"X-Grafana-User", "alice"}, {"X-Ceems-Cluster-Id", "C1"}};
  EXPECT_EQ(outcome("1"), "400 cluster");
  headers = {
      {"X-Grafana-User", "alice"}, {"X-Ceems-Cluster-Id", "c1"}, {"X-Ceems-Cluster-Id", "c2"}};
  EXPECT_EQ(outcome("1"), "400 cluster");
  headers = {{"X-Grafana-User", "alice"},
             {"X-Ceems-Cluster-Id", "c1"},
             {"X-Ceems-Admin-User", "root"},
             {"X-Ceems-Logged-User", "root"}};
  EXPECT_EQ(outcome(R"(a{uuid="other"})"), "403 foreign_unit");
}

TEST_F(GateTest, AdminsPassWithEverything) {
  headers = {{"X-Grafana-User", "root"}, {"X-Ceems-Cluster-Id", "c1"}};
  for (const char* target :
       {"/api/v1/status/config", "/api/v1/query?query=up", "/federate", "/x"}) {
    const auto answer = send("GET", target);
    ASSERT_TRUE(answer) << target;
    EXPECT_TRUE(answer->admin);
    EXPECT_EQ(answer->forward.path, "");
  }
  EXPECT_EQ(ask(R"(up{ceems_id="c2"})")->cluster, "c2");
  EXPECT_TRUE(decided_inline);
}

TEST_F(GateTest, RequestsOfAdminsGoWhereTheirSelectorsSay) {
  headers = {{"X-Grafana-User", "root"}, {"X-Ceems-Cluster-Id", "c1"}};
  for (const char* query :
       {R"(up{uuid="",ceems_id="c2"})", R"(up{uuid=~".*",ceems_id="c2"} or up)",
        R"q(label_replace(up{ceems_id="c2"},"a","$1","instance","(.*)"))q",
        R"(info(up{ceems_id="c2"}))", R"(sort_by_label(up{ceems_id="c2"},"a"))"}) {
    const auto answer = ask(query);
    ASSERT_TRUE(answer) << query;
    EXPECT_EQ(answer->cluster, "c2") << query;
  }
  EXPECT_EQ(ask(R"(up{ceems_id="c9"})")->cluster, "c9");  // no server has it: 503
  EXPECT_EQ(ask("up and and")->cluster, "c1");
  EXPECT_EQ(outcome(R"(up{ceems_id="c1"} + up{ceems_id="c2"})"), "400 cluster_label");
  EXPECT_EQ(ask(R"(up{ceems_id="c2")")->cluster, "c2");
  for (const char* path : {"/api/v1/label/..%2f..%2fx/values", "/federate/%2e%2e/api/v1/query"}) {
    EXPECT_EQ(text_of(send("GET", path), ""), "400 path") << path;
  }
  rules.tsdb.selection.hidden_labels = {"instance"};
  EXPECT_EQ(ask(R"q(label_join(up{ceems_id="c2"},"a",",","instance"))q")->cluster, "c2");
}

TEST_F(GateTest, InternalLabelsAreForAdminsOnly) {
  const std::string query = R"({__name__="__embedded_queries__",uuid="own",__queries__="x"})";
  EXPECT_EQ(outcome(query), "403 internal_label");
  EXPECT_EQ(outcome(R"(sum(rate(x{uuid="own",__queries__="x"}[5m])))"), "403 internal_label");
  EXPECT_EQ(text_of(send("GET", "/api/v1/series?match[]=" + encoded(query)), ""),
            "403 internal_label");
  EXPECT_EQ(outcome(R"({__name__=~"ceems_.*",uuid="own"})"),
            R"({__name__=~"ceems_.*", uuid="own"})");
  headers = {{"X-Grafana-User", "root"}, {"X-Ceems-Cluster-Id", "c1"}};
  EXPECT_TRUE(ask(query));
}

TEST_F(GateTest, OutagesDenyAndMakeNoAdmins) {
  owners.broken = true;
  EXPECT_EQ(outcome(R"(a{uuid="own"})"), "403 owners_unknown");
  headers = {{"X-Grafana-User", "root"}, {"X-Ceems-Cluster-Id", "c1"}};
  EXPECT_EQ(outcome("up"), "403 no_unit");
}

TEST_F(GateTest, OpenSelectorsAreConfinedWhereTheOperatorChoseIt) {
  rules.confine = true;
  EXPECT_EQ(outcome("sum(up)"), R"(sum(up{uuid=~"dup|own|own1|own2"}))");
  EXPECT_EQ(outcome(R"(a{uuid="own"} or b)"), R"(a{uuid="own"} or b{uuid=~"dup|own|own1|own2"})");
  EXPECT_EQ(outcome(R"(a{uuid!="own"})"), R"(a{uuid!="own", uuid=~"dup|own|own1|own2"})");
  EXPECT_EQ(outcome(R"(a{uuid="other"} or b)"), "403 foreign_unit");
  EXPECT_EQ(text_of(send("GET", "/api/v1/labels"), "match[]"), R"({uuid=~"dup|own|own1|own2"})");
  owners.owned[{"alice", "c1"}] = {"a.b"};
  EXPECT_EQ(outcome("up"), R"(up{uuid="a.b"})");
  owners.owned[{"alice", "c1"}] = {"a.b", "c"};
  EXPECT_EQ(outcome("up"), R"(up{uuid=~"a\\.b|c"})");
  // A unit without id would stand for every series without unit.
  owners.owned[{"alice", "c1"}] = {"", "c"};
  EXPECT_EQ(outcome("up"), R"(up{uuid="c"})");
  owners.owned[{"alice", "c1"}] = {""};
  EXPECT_EQ(outcome("up"), "403 no_unit");
  owners.owned.clear();
  EXPECT_EQ(outcome("up"), "403 no_unit");
}

TEST_F(GateTest, ConfiningMakesNoRequestTooLong) {
  rules.confine = true;
  UnitSet& own = owners.owned[{"alice", "c1"}];
  own.clear();
  for (int i = 0; i < 1000; ++i) {
    own.insert("5b0cd2f7-1c7e-4d4e-9b6f-" + std::to_string(1'000'000'000'000 + i));
  }
  EXPECT_TRUE(ask("a + b + c + d + e + f + g + h"));
  std::string query = "a";
  for (int i = 0; i < 100; ++i) {
    query += " + a";
  }
  EXPECT_EQ(outcome(query), "400 too_many_units");
}

TEST_F(GateTest, TenThousandUnitsAreNotTooMany) {
  rules.confine = true;
  UnitSet& own = owners.owned[{"alice", "c1"}];
  own.clear();
  std::string listed;
  for (int i = 0; i < 10'000; ++i) {
    own.insert(std::to_string(1'000'000 + i));
    listed += (i == 0 ? "" : "|") + std::to_string(1'000'000 + i);
  }
  EXPECT_EQ(outcome("up"), "up{uuid=~\"" + listed + "\"}");
  // As a variable of a dashboard writes them; the server gets them without parentheses.
  const std::string sent = "up{uuid=~\"" + listed + "\"}";
  for (const std::string& pattern : {listed, "(" + listed + ")"}) {
    const std::string query = "up{uuid=~\"" + pattern + "\"}";
    EXPECT_EQ(outcome(query + " + " + query), sent + " + " + sent);
    EXPECT_EQ(text_of(send("GET", "/api/v1/label/job/values?match[]=" + encoded(query)), "match[]"),
              sent);
  }
  own.insert("1.x");
  EXPECT_EQ(outcome("up"), "400 too_many_units");
  EXPECT_EQ(outcome("up{uuid=~\"" + listed + "|1\\\\.x\"}"), "400 too_many_units");
  EXPECT_EQ(outcome("up{uuid=~\"1000000|1\\\\.x\"}"), "up{uuid=~\"1000000|1\\\\.x\"}");
  rules.confine = false;
  EXPECT_EQ(outcome("up{uuid=~\"" + listed + "|2\"}"), "400 too_many_units");
  own.erase("1000000");
  EXPECT_EQ(outcome("up{uuid=~\"" + listed + "\"}"), "403 foreign_unit");
}

TEST_F(GateTest, NoPartOfTheNewerLanguagesHidesASelector) {
  const std::vector<std::string> hiding = {
      R"(m{uuid="own" or uuid="1"})",
      R"(m{uuid="own" or job="x"})",
      R"(m{uuid="own", or job="x"})",
      "WITH (x = m) x",
      R"(WITH (f = {job="x"}) m{uuid="own", f})",
      R"(m{uuid="own"} default n)",
      R"(m{uuid="own"} if n)",
      R"(m{uuid="own"} ifnot n{uuid!="own"})",
      R"(m{uuid="own"} keep_metric_names n)",
      R"(rate(m{uuid="own"}[max_of(5m, scalar(n))]))",
      R"(rate(m{uuid="own"}[n]))",
      R"(m{uuid="own"} offset scalar(n))",
      R"(m{uuid="own"} @ scalar(n))",
      R"(m{uuid="own"} + fill(scalar(n)) m{uuid="own"})",
      R"(m{uuid="own"} + fill(n) m{uuid="own"})",
      R"(info(m{uuid="own"}))",
      R"(info(m{uuid="own"}, {job="x"}))",
      R"(info(m{uuid="own"}, {__name__="n_info"}))",
      R"(info(m{uuid="own"}, {uuid=~".*"}))",
      R"(info(m, {uuid="own"}))",
      R"(histogram_quantiles(m{uuid="own"}, "q", scalar(n)))",
      R"(limitk(scalar(n), m{uuid="own"}))",
      R"(min_of(1, scalar(n)))",
      R"(m.n{a.b="own"})",
      R"(m.n{uuid!="other"})",
      R"({"m.n"})",
      R"({"m.n", "uuid"!="own"})",
      R"({"uuid"="own", "uuid"="1"})",
      R"(m{U__uuid="own"})",
      R"(m{"uu\x69d"="1"})",
      R"(m{uuid="own"} </ n)",
      R"(m[5m] smoothed)",
      R"(n{job="x"} anchored)",
      "m{uuid=\"own\"} # \"\n + n",
      R"(union(m{uuid="own"}, n))",
      R"(label_copy(n, "a", "b"))",
      R"(median by (x) (m{uuid="own"}, n))",
      R"(rate(m{uuid="own"}[5m] + n))",
      R"(label_value(union(m{uuid="own"}, median_over_time(n)), "a"))",
      R"(max_over_time(rate(n)[1h]))",
  };
  for (const bool experimental : {false, true}) {
    rules.tsdb.selection.language.experimental = experimental;
    for (const TsdbServer server :
         {TsdbServer::kPrometheus, TsdbServer::kThanos, TsdbServer::kVictoriaMetrics}) {
      rules.servers = {{"c1", server}};
      for (const std::string& query : hiding) {
        EXPECT_TRUE(outcome(query).starts_with("40")) << query << " " << outcome(query);
      }
    }
  }
  // What is confined is confined wherever it stands, and printed in a form that all servers read.
  rules.confine = true;
  owners.owned[{"alice", "c1"}] = {"own"};
  EXPECT_EQ(outcome("info(m, {job=\"x\"})"), R"(info(m{uuid="own"}, {job="x", uuid="own"}))");
  EXPECT_EQ(outcome("m.n default n{a.b=\"x\"}"),
            R"({"m.n", uuid="own"} default n{"a.b"="x", uuid="own"})");
  EXPECT_EQ(outcome("m + fill(0) n"),
            R"(m{uuid="own"} + fill_left (0) fill_right (0) n{uuid="own"})");
}

TEST_F(GateTest, ALongQueryIsSentInABody) {
  const std::string query = "up{uuid=\"own\", x=\"" + std::string(7000, 'x') + "\"}";
  for (const std::string path : {"query", "query_range", "query_exemplars", "series", "labels"}) {
    const bool matches = path == "series" || path == "labels";
    const std::string form = (matches ? "match%5B%5D=" : "query=") + encoded(query);
    const auto answer = send("GET", "/api/v1/" + path + "?" + form);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->forward.method, "POST") << path;
    EXPECT_EQ(answer->forward.query, "") << path;
    EXPECT_EQ(answer->forward.body, form) << path;
    EXPECT_EQ(answer->forward.content_type, kFormType) << path;
  }
  const auto values = send("GET", "/api/v1/label/job/values?match[]=" + encoded(query));
  ASSERT_TRUE(values);
  EXPECT_EQ(values->forward.method, "GET");  // servers have no POST for it
  EXPECT_EQ(values->forward.body, "");
}

TEST_F(GateTest, OnlyUnitsThatLivedInTheAskedTimeAreAdded) {
  rules.confine = true;
  constexpr std::int64_t kHour = 3'600'000;
  const std::int64_t now = 1'000'000 * kHour;
  const auto asked = [&](const std::string& target) {
    owners.asked.clear();
    EXPECT_TRUE(send("GET", "/api/v1/" + target)) << target;
    EXPECT_FALSE(owners.asked.empty()) << target;
    const promql::TimeSpan span = owners.asked.empty() ? promql::TimeSpan{} : owners.asked.front();
    return std::pair{(span.from_ms - now) / (kHour / 4), (span.to_ms - now) / (kHour / 4)};
  };
  using Quarters = std::pair<std::int64_t, std::int64_t>;
  const std::string at_now = "time=" + std::to_string(now / 1000) + "&query=";
  EXPECT_EQ(asked("query?" + at_now + "up"), (Quarters{-2, 2}));
  EXPECT_EQ(asked("query?" + at_now + "up[7d:1h]"), (Quarters{-4 * 24 * 7 - 2, 2}));
  EXPECT_EQ(asked("query?" + at_now + "rate(up[1h] offset 1d)"),
            (Quarters{-4 * 25 - 2, -4 * 24 + 2}));
  EXPECT_EQ(asked("query?" + at_now + "up @ 0"), (Quarters{-4'000'000 - 1, -4'000'000 + 2}));
  const std::string range = "start=" + std::to_string((now - 10 * kHour) / 1000) +
                            "&end=" + std::to_string((now - 8 * kHour) / 1000) + "&step=60&query=";
  EXPECT_EQ(asked("query_range?" + range + "up"), (Quarters{-42, -30}));
  EXPECT_EQ(asked("query_range?" + range + "up @ end()"), (Quarters{-34, -30}));
  EXPECT_EQ(asked("series?match[]=up&" + range), (Quarters{-41, -30}));
  EXPECT_EQ(asked("series?match[]=up"),
            (Quarters{-4'000'001, kFarTime / (kHour / 4) + 2 - 4'000'000}));
  EXPECT_EQ(asked("query_range?query=up"), asked("series?match[]=up")) << "times that are missing";
}

TEST_F(GateTest, NoUnitInTheAskedTimeGivesAnEmptyAnswer) {
  rules.confine = true;
  owners.none_alive = true;
  owners.owned[{"alice", "c1"}] = {"own"};
  EXPECT_EQ(outcome("up"), R"(up{uuid="own"})");
  owners.owned.clear();
  EXPECT_EQ(outcome("up"), "403 no_unit");
}

TEST_F(GateTest, IdsThatNobodyHasAreNotAskedFor) {
  const std::string longest(512, 'x');
  owners.owned[{"alice", "c1"}] = {longest, longest + "x"};
  EXPECT_TRUE(ask("a{uuid=\"" + longest + "\"}"));
  EXPECT_EQ(outcome("a{uuid=\"" + longest + "x\"}"), "403 foreign_unit");
}

TEST_F(GateTest, NobodyIsTheServiceAccount) {
  headers = {{"X-Grafana-User", "ceems-int-svc"}, {"X-Ceems-Cluster-Id", "c1"}};
  EXPECT_EQ(outcome("1"), "403 user");
  EXPECT_EQ(text_of(send("GET", "/api/v1/status/config"), ""), "403 user");
}

TEST_F(GateTest, WithoutOwnersEverythingPassesButUnknownClusters) {
  const Gate open(BackendType::kTsdb, rules, nullptr);
  const auto passes =
      open.decide(ParsedRequest({.method = "GET", .target = "/x"}), {{"X-Ceems-Cluster-Id", "c1"}});
  ASSERT_TRUE(passes);
  EXPECT_TRUE(passes->admin) << "nothing is hidden in answers";
  EXPECT_FALSE(open.decide(ParsedRequest({.method = "GET", .target = "/x"}), {}));
}

}  // namespace
}  // namespace ceems::gate
