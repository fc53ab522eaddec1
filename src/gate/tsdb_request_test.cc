#include "gate/tsdb_request.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "net/http.h"

namespace ceems::gate {
namespace {

/// The query string that is sent on for `parameters`, or the reason of the refusal.
std::string sent(const std::string& parameters,
                 const TsdbRules& rules = {},
                 const SharedIds& shared = {}) {
  const std::string target =
      "/api/v1/query?query=" + net::url_encode(R"(x{uuid="1"})") + parameters;
  auto request = TsdbRequest::read(ParsedRequest({.method = "GET", .target = target}), rules);
  if (request && !shared.empty()) {
    EXPECT_TRUE(request->restrict_times(shared, 1'700'000'000'000));
  }
  if (!request) {
    return std::string(request.error().reason);
  }
  const std::string query = request->forward().query;
  return query.substr(std::min(query.find('&'), query.size()));
}

TEST(TsdbRequest, ALookbackBelowAMillisecondDoesNotBecomeTheDefault) {
  EXPECT_EQ(sent("&lookback_delta=0.0001"), "&lookback_delta=0.001");
  EXPECT_EQ(sent("&lookback_delta=1e-9"), "&lookback_delta=0.001");
  EXPECT_EQ(sent("&lookback_delta=0.00099"), "&lookback_delta=0.001");
  for (const char* same : {"0.001", "0.0015", "0", "0.0", "5m", "300", "-1", ""}) {
    EXPECT_EQ(sent("&lookback_delta=" + std::string(same)), "&lookback_delta=" + std::string(same));
  }
  const SharedIds shared = {{"1", {.own = {{1'600'000'000'000, kFarTime}}, .others = {{1, 2}}}}};
  EXPECT_EQ(sent("&lookback_delta=0.0001", {}, shared),
            "&lookback_delta=0.001&time=1700000000.000");
  EXPECT_EQ(sent("&lookback_delta=0", {}, shared), "&lookback_delta=300.000&time=1700000000.000");
}

/// What is sent on to a server of this kind instead of `parameters`, or the reason of the refusal.
std::string sent_to(TsdbServer server,
                    const std::string& parameters,
                    const std::string& path = "query",
                    const SharedIds& shared = {}) {
  static const TsdbRules kRules;
  const std::string own = net::url_encode(R"(x{uuid="1"})");
  const std::string target = "/api/v1/" + path + "?query=" + own + "&match[]=" + own + parameters;
  auto request = TsdbRequest::read(ParsedRequest({.method = "GET", .target = target}), kRules);
  if (!request) {
    return std::string(request.error().reason);
  }
  if (const auto kept = request->keep_parameters_of(server); !kept) {
    return std::string(kept.error().reason);
  }
  if (!shared.empty()) {
    EXPECT_TRUE(request->restrict_times(shared, 1'700'000'000'000));
  }
  const std::string query = request->forward().query;
  return query.substr(std::min(query.find('&'), query.size()));
}

constexpr const char* kAll =
    "&dedup=false&partial_response=true&max_source_resolution=5m&nocache=1";

TEST(TsdbRequest, ParametersOfServersGoToTheseServersOnly) {
  EXPECT_EQ(sent(kAll), "");
  EXPECT_EQ(sent_to(TsdbServer::kPrometheus, kAll), "");
  EXPECT_EQ(sent_to(TsdbServer::kThanos, kAll),
            "&dedup=false&partial_response=true&max_source_resolution=5m");
  EXPECT_EQ(sent_to(TsdbServer::kThanos, "&max_source_resolution=auto"),
            "&max_source_resolution=auto");
  EXPECT_EQ(sent_to(TsdbServer::kThanos, kAll, "query_range"),
            "&dedup=false&partial_response=true&max_source_resolution=5m");
  EXPECT_EQ(sent_to(TsdbServer::kThanos, kAll, "series"), "&dedup=false&partial_response=true");
  EXPECT_EQ(sent_to(TsdbServer::kThanos, kAll, "labels"), "&partial_response=true");
  EXPECT_EQ(sent_to(TsdbServer::kThanos, kAll, "label/job/values"), "&partial_response=true");
  EXPECT_EQ(sent_to(TsdbServer::kThanos, kAll, "query_exemplars"), "");
  EXPECT_EQ(sent_to(TsdbServer::kVictoriaMetrics, kAll), "&nocache=1");
  EXPECT_EQ(sent_to(TsdbServer::kVictoriaMetrics, kAll, "series"), "");
}

TEST(TsdbRequest, NoParameterOfAServerCanWidenASelection) {
  for (const char* other :
       {"replicaLabels[]=uuid", "storeMatch[]=x", "engine=thanos", "explain=true", "analyze=true",
        "extra_label=uuid=2", "extra_filters[]={uuid=2}", "extra_filters=x", "max_lookback=1y",
        "latency_offset=1", "round_digits=1", "trace=1", "shard_info=x", "tenant=x",
        "accountID=1"}) {
    for (const auto server : {TsdbServer::kThanos, TsdbServer::kVictoriaMetrics}) {
      EXPECT_EQ(sent_to(server, "&" + std::string(other)), "") << other;
      EXPECT_EQ(sent_to(server, "&" + std::string(other), "query_range"), "") << other;
    }
  }
}

TEST(TsdbRequest, ParametersOfServersAreCheckedAndGivenOnce) {
  for (const char* bad :
       {"dedup=maybe", "dedup=", "partial_response=yes please", "max_source_resolution=x",
        "max_source_resolution=-5", "dedup=true&dedup=false"}) {
    EXPECT_EQ(sent_to(TsdbServer::kThanos, "&" + std::string(bad)), "parameters") << bad;
    EXPECT_EQ(sent_to(TsdbServer::kVictoriaMetrics, "&" + std::string(bad)), "") << bad;
  }
  EXPECT_EQ(sent_to(TsdbServer::kVictoriaMetrics, "&nocache=1%26uuid"), "parameters");
}

TEST(TsdbRequest, SharedIdsAreReadAtFullResolution) {
  const SharedIds shared = {{"1", {.own = {{1'600'000'000'000, kFarTime}}, .others = {{1, 2}}}}};
  EXPECT_EQ(sent_to(TsdbServer::kThanos, "&max_source_resolution=1h", "query", shared),
            "&max_source_resolution=0s&lookback_delta=300.000&time=1700000000.000");
  EXPECT_EQ(sent_to(TsdbServer::kThanos, "", "query", shared),
            "&lookback_delta=300.000&time=1700000000.000&max_source_resolution=0s");
}

}  // namespace
}  // namespace ceems::gate
