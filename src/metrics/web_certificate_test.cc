#include "metrics/web_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(WebCertificateGauge, IsAbsentWithoutTlsAndHoldsTheLatestEnd) {
  Registry registry("test", "the test");
  const auto on_certificate = web_certificate_gauge(registry);
  std::string page;
  registry.append_page(page);
  EXPECT_THAT(page, Not(HasSubstr("certificate")));
  on_certificate(1'800'000'000);
  on_certificate(1'900'000'000);
  page.clear();
  registry.append_page(page);
  EXPECT_THAT(page, HasSubstr("# TYPE ceems_web_certificate_not_after_timestamp_seconds gauge\n"
                              "ceems_web_certificate_not_after_timestamp_seconds 1.9e+09\n"));
}

}  // namespace
}  // namespace ceems::metrics
