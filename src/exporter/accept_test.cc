#include <gtest/gtest.h>

#include "exporter/routes.h"

namespace ceems::exporter {
namespace {

constexpr const char* kText = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
constexpr const char* kOpenMetrics =
    "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores";

TEST(ChooseFormat, SelectsTextUnlessOpenMetricsIsRequested) {
  for (const char* accept :
       {"", "*/*", "text/html", "application/json;q=0.9", ";;,=,q", "text/plain",
        "application/openmetrics-text;version=2.0.0", "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.2,text/plain;q=0.3",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"}) {
    EXPECT_EQ(choose_format(accept).content_type, kText) << accept;
    EXPECT_EQ(choose_format(accept).exposition, metrics::Exposition::kText) << accept;
  }
}

TEST(ChooseFormat, SelectsOpenMetricsForPrometheus) {
  // The header of Prometheus 2.42.
  const PageFormat format = choose_format(
      "application/openmetrics-text;version=1.0.0,application/"
      "openmetrics-text;version=0.0.1;q=0.75,"
      "text/plain;version=0.0.4;q=0.5,*/*;q=0.1");
  EXPECT_EQ(format.content_type, kOpenMetrics);
  EXPECT_EQ(format.exposition, metrics::Exposition::kOpenMetrics);
}

TEST(ChooseFormat, EchoesKnownEscapings) {
  EXPECT_EQ(choose_format("text/plain; version=0.0.4; escaping=allow-utf-8").content_type,
            "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8");
  EXPECT_EQ(choose_format("application/openmetrics-text;escaping=dots").content_type,
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=dots");
  EXPECT_EQ(choose_format("text/plain;escaping=evil\r\nx").content_type, kText);
}

}  // namespace
}  // namespace ceems::exporter
