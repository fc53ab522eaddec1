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
  auto request = TsdbRequest::read({.method = "GET", .target = target}, rules);
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

}  // namespace
}  // namespace ceems::gate
