#include "gate/request.h"

#include <gtest/gtest.h>

namespace ceems::gate {
namespace {

TEST(Refusal, HasTheFormOfTheAnswersOfPrometheus) {
  EXPECT_EQ(forbidden_units("x").body(),
            "{\"status\":\"error\",\"errorType\":\"forbidden\",\"error\":\"user do not "
            "have permissions to view unit metrics\"}\n");
}

TEST(Refusal, HasCodeAndMessageForConnect) {
  EXPECT_EQ(
      forbidden_units("x").connect_body(),
      R"({"code":"permission_denied","message":"user do not have permissions to view unit metrics",)"
      R"("status":"error","errorType":"forbidden",)"
      R"("error":"user do not have permissions to view unit metrics"})"
      "\n");
  const auto code = [](const Refusal& refusal) {
    const std::string body = refusal.connect_body();
    return body.substr(0, body.find(','));
  };
  EXPECT_EQ(code(unauthorized()), R"({"code":"unauthenticated")");
  EXPECT_EQ(code(bad_data("x", "y")), R"({"code":"invalid_argument")");
  EXPECT_EQ(code(wrong_media("x")), R"({"code":"invalid_argument")");
  EXPECT_EQ(code(wrong_method()), R"({"code":"unimplemented")");
  EXPECT_EQ(code(large_body()), R"({"code":"resource_exhausted")");
}

TEST(ConnectPath, NamesServiceAndMethod) {
  EXPECT_TRUE(is_connect_path("/querier.v1.QuerierService/SelectSeries"));
  EXPECT_TRUE(is_connect_path("/pyroscope/querier.v1.QuerierService/SelectSeries"));
  EXPECT_TRUE(is_connect_path("/settings.v1.SettingsService/Get"));
  for (const char* path : {"", "/", "/ingest", "/pyroscope/render", "querier.v1.QuerierService",
                           "/querier.v1.QuerierService", "/querier.v1.QuerierService/", "a.b/c"}) {
    EXPECT_FALSE(is_connect_path(path)) << path;
  }
}

}  // namespace
}  // namespace ceems::gate
