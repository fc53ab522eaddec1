#include "gate/named_clusters.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/wire_format.h"
#include "net/http.h"

namespace ceems::gate {
namespace {

/// The cluster, "" for none, or status and reason.
std::string text_of(const Checked<std::optional<std::string>>& named) {
  if (!named) {
    return std::to_string(named.error().status) + " " + std::string(named.error().reason);
  }
  return named->value_or("");
}

std::string ask(const std::string& query,
                const std::string& path = "query",
                Budget budget = Budget::kFull) {
  const bool matches = path != "query" && path != "query_range";
  const std::string target =
      "/api/v1/" + path + (matches ? "?match[]=" : "?query=") + net::url_encode(query);
  return text_of(
      cluster_named(ParsedRequest({.method = "GET", .target = target}), TsdbRules{}, budget));
}

TEST(NamedClusters, AreFoundWhateverElseIsInTheQuery) {
  for (const char* query : {
           R"(x{ceems_id="c2"})",
           R"(x{uuid="",ceems_id="c2"})",
           R"(x{uuid="a",ceems_id="c2"} + y)",
           R"(x{ceems_id="c2"} / y{ceems_id="c2"})",
           R"(x{ceems_id=~"c2"})",
           R"(x{ceems_id=~"c2|"})",
           R"(x{"ceems_id"="c2"})",
           R"(x{"ceems\x5fid"="c2"})",
           R"(x{ceems_id="c2", ceems_id!="c1"})",
           R"q(label_replace(x{ceems_id="c2"}, "a", "$1", "instance", "(.*)"))q",
           R"(info(x{ceems_id="c2"}))",
           R"(sort_by_label(x{ceems_id="c2"}, "a"))",
           R"(limitk(2, x{ceems_id="c2"}))",
           R"(rate(max_over_time(x{ceems_id="c2"}[5m])[1h:1m]))",
           R"(x{__queries__="y", ceems_id="c2"})",
       }) {
    EXPECT_EQ(ask(query), "c2") << query;
  }
  for (const char* path : {"series", "labels", "label/x/values", "admin/tsdb/delete_series"}) {
    EXPECT_EQ(ask(R"({ceems_id="c2"})", path), "c2") << path;
  }
}

TEST(NamedClusters, AreNoneInOtherQueries) {
  for (const char* query : {
           "up",
           R"(x{ceems_id!="c1"})",
           R"(x{ceems_id=~".*"})",
           R"(x{ceems_id=""})",
           R"(x{ceems_idx="c2"})",
           R"(label_replace(x, "ceems_id", "c2", "", ""))",
           R"(sum by (ceems_id) (x))",
           "no query at all (",
           R"(no query "\)",
           "",
       }) {
    EXPECT_EQ(ask(query), "") << query;
  }
}

TEST(NamedClusters, AreFoundInAnyLanguage) {
  for (const char* query : {
           R"(x{ceems_id="c1")",
           R"(x{ceems_id="c1" or y="z"})",
           R"(some_day(x{ceems_id = 'c1'} ~~ y))",
           R"(some_day x{"ceems_id"=~"c1"})",
           "# ceems_id=\"c2\"\nx{a=\"ceems_id=\\\"c2\\\"\",ceems_id=\"c1\"",
           R"(WITH (f = {ceems_id="c1"}) x{f})",
       }) {
    EXPECT_EQ(ask(query), "c1") << query;
    EXPECT_EQ(ask(query, "series"), "c1") << query;
  }
  for (const char* query :
       {R"(some day ceems_id)", R"(x{ceems_id!="c1")", R"(x{ceems_id="c1)", R"(x{ceems_id=)",
        R"(x{ceems_idx="c1")", R"(x{a.ceems_id="c1")", R"(x{ceems_id=~".*")"}) {
    EXPECT_EQ(ask(query), "") << query;
  }
  EXPECT_EQ(ask(R"(x{ceems_id="c1"} some day y{ceems_id="c2"})"), "400 cluster_label");
}

TEST(NamedClusters, ThatCannotBeToldAreRefused) {
  EXPECT_EQ(ask(R"(x{ceems_id="c1"} + y{ceems_id="c2"})"), "400 cluster_label");
  EXPECT_EQ(ask(R"(x{ceems_id=~"c1|c2"})"), "400 cluster_label");
  const RawRequest two{
      .method = "GET",
      .target = "/api/v1/series?match[]=%7Bceems_id=%22a%22%7D&match[]=%7Bceems_id=%22b%22%7D"};
  const auto named = cluster_named(ParsedRequest(two), TsdbRules{}, Budget::kFull);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().status, 400);
  EXPECT_EQ(named.error().message,
            "selectors name several clusters by 'ceems_id' ('a' and 'b'): select one at a time");
}

TEST(NamedClusters, AreFoundInFormsThatCannotBeDecoded) {
  for (const auto& [query, cluster] : std::map<std::string, std::string>{
           {"query=%zz{ceems_id='a'}", "a"},
           {"query=x%7Bceems_id%3D%22a%22%7D&time=%zz", "a"},
           {"query=x{ceems_id=%22a%22}%2Bvector(1);x=1", "a"},
           {"query=%zz", ""},
           {"other=%zz{ceems_id='a'}", ""},
           {"query=%zz{ceems_id='a'}&query={ceems_id='b'}", "400 cluster_label"}}) {
    const std::string target = "/api/v1/query?" + query;
    EXPECT_EQ(text_of(cluster_named(ParsedRequest({.method = "GET", .target = target}), TsdbRules{},
                                    Budget::kFull)),
              cluster)
        << query;
  }
}

TEST(NamedClusters, AreReadFromFormsAndFromNothingElse) {
  const std::string query = "query=x%7Bceems_id%3D%22c2%22%7D";
  const auto post = [&](std::string_view type, std::string_view encoding = {}) {
    return text_of(cluster_named(ParsedRequest({.method = "POST",
                                                .target = "/api/v1/query",
                                                .content_type = type,
                                                .content_encoding = encoding,
                                                .body = query}),
                                 TsdbRules{}, Budget::kFull));
  };
  EXPECT_EQ(post("application/x-www-form-urlencoded; charset=utf-8"), "c2");
  EXPECT_EQ(post("application/x-protobuf", "snappy"), "");
  EXPECT_EQ(post("application/x-www-form-urlencoded", "gzip"), "");
  EXPECT_EQ(post(""), "");
}

TEST(NamedClusters, PathsMustBeReadInOneWay) {
  for (const char* path : {"/api/v1/label/..%2f..%2fx/values", "/api/v1/../v1/query",
                           "/api/v1/./query", "/api/v1/%5cquery", "api/v1/query"}) {
    EXPECT_EQ(text_of(cluster_named(ParsedRequest({.method = "GET", .target = path}), TsdbRules{},
                                    Budget::kFull)),
              "400 path")
        << path;
    EXPECT_EQ(
        text_of(cluster_named(ParsedRequest({.method = "POST", .target = path}), ProfileRules{})),
        "400 path")
        << path;
  }
}

TEST(NamedClusters, AreToldAtOnceWhereNothingMustBeCompiled) {
  EXPECT_EQ(ask(R"(x{ceems_id="c2"})", "query", Budget::kInline), "c2");
  EXPECT_EQ(ask("up", "query", Budget::kInline), "");
  EXPECT_EQ(ask(R"(x{ceems_id="c2",y=~"a.*"})", "query", Budget::kInline), "c2");
  EXPECT_EQ(ask(R"(x{ceems_id=~"[a-j][a-j][a-j]"})", "query", Budget::kInline), "400 work");
  EXPECT_EQ(ask(R"(x{ceems_id="c2",y=~"a.*"})", "query", Budget::kFull), "c2");
}

TEST(NamedClusters, AreFoundInCallsOfProfiles) {
  const auto call = [](const std::string& method, const std::string& body,
                       std::string_view type = "application/json") {
    const std::string target = "/querier.v1.QuerierService/" + method;
    return text_of(cluster_named(
        ParsedRequest({.method = "POST", .target = target, .content_type = type, .body = body}),
        ProfileRules{}));
  };
  EXPECT_EQ(call("SelectSeries", R"({"labelSelector":"{ceems_id=\"c2\"}"})"), "c2");
  EXPECT_EQ(call("SelectSeries", R"({"labelSelector":"{ceems_id=\"c2\",x=\"a\\\"b\"}"})"), "c2");
  EXPECT_EQ(call("LabelNames", R"({"matchers":["{}","{ceems_id=\"c2\"}"]})"), "c2");
  EXPECT_EQ(call("LabelNames", R"({"matchers":["{ceems_id=\"c1\"}","{ceems_id=\"c2\"}"]})"),
            "400 cluster_label");
  EXPECT_EQ(call("Diff", R"({"left":{"labelSelector":"{ceems_id=\"c2\"}"},"right":{}})"), "c2");
  EXPECT_EQ(call("SelectSeries", R"({"labelSelector":"{ceems_id="})"), "");
  EXPECT_EQ(call("SelectSeries", R"({"labelSelector":"{x="})"), "");
  EXPECT_EQ(call("GetProfileStats", R"({"x":"ceems_id"})"), "");
  EXPECT_EQ(call("../../push.v1.PusherService/Push", ""), "400 path");
  std::string message;
  append_wire_field(message,
                    {.number = 2, .has_length = true, .bytes = R"({ceems_id="c2",x!~"\\d"})"});
  EXPECT_EQ(call("SelectMergeStacktraces", message, "application/proto"), "c2");
  EXPECT_EQ(call("SelectMergeStacktraces", message, "application/grpc"), "400 cluster_label");
}

}  // namespace
}  // namespace ceems::gate
