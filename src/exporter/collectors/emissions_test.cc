#include "exporter/collectors/emissions.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/emissions/test_service.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using emissions::environment_of;

class EmissionsTest : public ::testing::Test {
 protected:
  EmissionsTest() : host_(dir_.path()) {}

  testing::TempDir dir_;
  TestContext host_;
};

TEST_F(EmissionsTest, ExportsTheStaticProvidersWithoutHostname) {
  auto collector = make_emissions_collector(host_.context, {"owid", "global"}, environment_of({}));
  ASSERT_TRUE(collector);
  start_and_wait(**collector);
  Result<> result;
  const std::string page = samples_of(**collector, &result);
  EXPECT_TRUE(result);
  EXPECT_NE(page.find("ceems_emissions_gCo2_kWh{country=\"World\",country_code=\"ZZ\",provider="
                      "\"global\",provider_name=\"World Average\"} 445\n"),
            std::string::npos);
  EXPECT_NE(page.find("ceems_emissions_gCo2_kWh{country=\"France\",country_code=\"FR\",provider="
                      "\"owid\",provider_name=\"OWID\"} "),
            std::string::npos);
  EXPECT_EQ(page.find("hostname"), std::string::npos);
  EXPECT_TRUE((*collector)->source_ages().empty());
}

TEST_F(EmissionsTest, ServesTheAnswerOfAServiceAndItsAge) {
  const emissions::TestService service(
      [](const net::Request& /*request*/, net::Response& response) {
        response.body = R"({"results":[{"taux_co2":20}]})";
      });
  auto collector = make_emissions_collector(host_.context, {"rte"},
                                            environment_of({{"__RTE_BASE_URL", service.url()}}));
  ASSERT_TRUE(collector);
  EXPECT_EQ(samples_of(**collector), "");
  start_and_wait(**collector);
  std::string page;
  EXPECT_TRUE(testing::eventually([&] {
    page = samples_of(**collector);
    return !page.empty();
  }));
  EXPECT_EQ(page,
            "ceems_emissions_gCo2_kWh{country=\"France\",country_code=\"FR\",provider=\"rte\","
            "provider_name=\"RTE eCO2 Mix\"} 20\n");
  host_.clock.advance(std::chrono::seconds(90));
  const auto ages = (*collector)->source_ages();
  ASSERT_EQ(ages.size(), 1U);
  EXPECT_EQ(ages[0].source, "rte");
  EXPECT_EQ(ages[0].age, std::chrono::seconds(90));
}

TEST_F(EmissionsTest, AnUnavailableServiceDoesNotFailTheScrape) {
  auto collector = make_emissions_collector(
      host_.context, {"rte"}, environment_of({{"__RTE_BASE_URL", "http://127.0.0.1:1"}}));
  ASSERT_TRUE(collector);
  start_and_wait(**collector);
  Result<> result;
  EXPECT_EQ(samples_of(**collector, &result), "");
  EXPECT_TRUE(result);
}

TEST_F(EmissionsTest, AnUnusableProviderEndsTheStart) {
  const auto collector = make_emissions_collector(host_.context, {"emaps"}, environment_of({}));
  ASSERT_FALSE(collector);
  EXPECT_EQ(collector.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ceems::exporter
