#include "exporter/emissions/provider.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/emissions/test_service.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::exporter::emissions {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

std::string header(const net::Request& request, std::string_view name) {
  const std::string* value = net::find_header(request.headers, name);
  return value != nullptr ? *value : "-";
}

class EmissionServicesTest : public ::testing::Test {
 protected:
  ProviderContext context(std::map<std::string, std::string> variables) {
    return {.clock = &clock_, .environment = environment_of(std::move(variables))};
  }

  testing::FakeClock clock_;
};

TEST_F(EmissionServicesTest, EmapsKeepsTheValueOfAZoneThatFails) {
  std::atomic<bool> broken = false;
  TestService service([&](const net::Request& request, net::Response& response) {
    if (request.path == "/v3/zones") {
      response.body = R"({"FR":{"zoneName":"France"},"DE":{"countryName":"Germany"},
                          "A B":{"zoneName":"blank"},"ZERO":{"zoneName":"z"}})";
    } else if (broken && request.query == "zone=FR") {
      response.status = 500;
    } else {
      response.body = request.query == "zone=FR"      ? R"({"carbonIntensity":50})"
                      : request.query == "zone=ZERO"  ? R"({"carbonIntensity":0})"
                      : request.query == "zone=A%20B" ? R"({"carbonIntensity":1.5})"
                      : broken                        ? R"({"carbonIntensity":301})"
                                                      : R"({"carbonIntensity":300})";
    }
  });
  auto fetch = emaps_fetch(
      context({{"EMAPS_API_TOKEN", "secret"}, {"__EMAPS_BASE_URL", service.url() + "/v3/"}}));
  ASSERT_TRUE(fetch);
  EXPECT_EQ((*fetch)({}).value(),
            (Factors{{"FR", "France", 50}, {"DE", "Germany", 300}, {"A B", "blank", 1.5}}));
  const auto requests = service.requests();
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_EQ(header(requests[0], "auth-token"), "-");
  EXPECT_EQ(header(requests[1], "auth-token"), "secret");
  EXPECT_EQ(requests[1].path, "/v3/carbon-intensity/latest");

  broken = true;
  clock_.advance(hours(23));
  EXPECT_EQ((*fetch)({}).value(),
            (Factors{{"FR", "France", 50}, {"DE", "Germany", 301}, {"A B", "blank", 1.5}}));
  clock_.advance(hours(2));
  EXPECT_EQ((*fetch)({}).value(), (Factors{{"DE", "Germany", 301}, {"A B", "blank", 1.5}}));
}

TEST_F(EmissionServicesTest, EmapsFailsIfNoZoneAnswersAndQueriesFourAtOnce) {
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  std::atomic<bool> zones = false;
  TestService service([&](const net::Request& request, net::Response& response) {
    if (request.path == "/zones" && zones) {
      response.body = "{";
      for (int i = 0; i < 12; ++i) {
        response.body += (i > 0 ? ",\"Z" : "\"Z") + std::to_string(i) + "\":{\"zoneName\":\"n\"}";
      }
      response.body += "}";
      return;
    }
    const int running = ++now;
    int before = most;
    while (running > before && !most.compare_exchange_weak(before, running)) {
    }
    std::this_thread::sleep_for(milliseconds(5));
    --now;
    response.status = 401;
    response.body = R"({"carbonIntensity":5})";
  });
  auto fetch = emaps_fetch(context({{"EMAPS_API_TOKEN", ""}, {"__EMAPS_BASE_URL", service.url()}}));
  ASSERT_TRUE(fetch);
  auto result = (*fetch)({});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "list of zones: GET /zones: status 401");
  zones = true;
  result = (*fetch)({});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kPermissionDenied);
  EXPECT_TRUE(result.error().message.ends_with("GET /carbon-intensity/latest: status 401"))
      << result.error().message;
  EXPECT_LE(most, 4);
  EXPECT_EQ(emaps_fetch(context({})).error().message,
            "environment variable EMAPS_API_TOKEN is not set");
}

TEST_F(EmissionServicesTest, RteRequestsTheLatestRecord) {
  TestService service([&](const net::Request& /*request*/, net::Response& response) {
    response.body = R"({"total_count":1,"results":[{"taux_co2":21.5,"date_heure":"x"}]})";
  });
  auto fetch = rte_fetch(context({{"__RTE_BASE_URL", service.url()}}));
  ASSERT_TRUE(fetch);
  EXPECT_EQ((*fetch)({}).value(), (Factors{{"FR", "France", 21.5}}));
  const auto requests = service.requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].path, "/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records");
  const auto query = net::parse_query(requests[0].query);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"select", "taux_co2,date_heure"},
      {"order_by", "date_heure desc"},
      {"offset", "0"},
      {"limit", "1"},
      {"timezone", "Europe/Paris"},
      {"include_links", "false"},
      {"include_app_metas", "false"},
      {"where", "date_heure in [date'2025-12-31' TO now()] and taux_co2 is not null"}};
  EXPECT_EQ(query, expected);
}

TEST_F(EmissionServicesTest, WattTimeLogsInAgainWhenItsTokenExpiredOrIsRefused) {
  std::atomic<int> logins = 0;
  std::atomic<bool> refuse = false;
  TestService service([&](const net::Request& request, net::Response& response) {
    if (request.path == "/login") {
      response.body = "{\"token\":\"t" + std::to_string(++logins) + "\"}";
    } else if (refuse) {
      response.status = 401;
    } else {
      response.body = R"({"data":[{"value":10}],"meta":{}})";
    }
  });
  auto fetch = watttime_fetch(context({{"WT_USERNAME", "u"},
                                       {"WT_PASSWORD", "p"},
                                       {"WT_REGION", "CAISO NORTH"},
                                       {"__WT_BASE_URL", service.url()}}));
  ASSERT_TRUE(fetch);
  const auto factors = (*fetch)({}).value();
  ASSERT_EQ(factors.size(), 1U);
  EXPECT_EQ(factors[0].code, "CAISO NORTH");
  EXPECT_EQ(factors[0].country, "CAISO NORTH");
  EXPECT_DOUBLE_EQ(factors[0].grams_per_kwh, 4.53592);
  auto requests = service.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(header(requests[0], "authorization"), "Basic dTpw");
  EXPECT_EQ(header(requests[1], "authorization"), "Bearer t1");
  EXPECT_EQ(requests[1].path, "/v3/historical");
  const std::vector<std::pair<std::string, std::string>> expected{
      {"start", "2025-12-31T23:45:00+00:00"},
      {"end", "2026-01-01T00:00:00+00:00"},
      {"region", "CAISO NORTH"},
      {"signal_type", "co2_moer"}};
  EXPECT_EQ(net::parse_query(requests[1].query), expected);

  clock_.advance(minutes(24));
  EXPECT_TRUE((*fetch)({}));
  EXPECT_EQ(logins, 1);
  clock_.advance(minutes(1));
  EXPECT_TRUE((*fetch)({}));
  EXPECT_EQ(logins, 2);
  refuse = true;
  EXPECT_EQ((*fetch)({}).error().message, "GET /v3/historical: status 401");
  refuse = false;
  EXPECT_TRUE((*fetch)({}));
  EXPECT_EQ(logins, 3);
}

TEST_F(EmissionServicesTest, WattTimeNamesAllMissingVariables) {
  EXPECT_EQ(watttime_fetch(context({{"WT_USERNAME", "u"}, {"WT_REGION", ""}})).error().message,
            "environment variables not set: WT_PASSWORD, WT_REGION");
}

TEST_F(EmissionServicesTest, AnAnswerThatIsTooLargeOrNotHttpIsAnError) {
  TestService service([&](const net::Request& /*request*/, net::Response& response) {
    response.body = std::string(std::size_t{5} << 20U, ' ');
  });
  auto fetch = rte_fetch(context({{"__RTE_BASE_URL", service.url()}}));
  const auto result = (*fetch)({});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  auto closed = rte_fetch(context({{"__RTE_BASE_URL", "http://127.0.0.1:1"}}));
  EXPECT_EQ((*closed)({}).error().code, ErrorCode::kUnavailable);
}

TEST_F(EmissionServicesTest, RefreshKeepsTheLastAnswerAndRetriesSoonerAfterFailures) {
  int calls = 0;
  bool works = false;
  Refresh refresh(minutes(2), clock_, [&](const std::stop_token&) -> Result<Factors> {
    ++calls;
    if (!works) {
      return fail(ErrorCode::kUnavailable, "down");
    }
    return Factors{{"FR", "France", static_cast<double>(calls)}};
  });
  const auto after = [&](seconds time) {
    clock_.advance(time);
    const auto result = refresh.step({});
    return result ? std::to_string(static_cast<int>(result->factors->front().grams_per_kwh))
                  : result.error().message;
  };
  EXPECT_EQ(after(seconds(0)), "down");
  EXPECT_EQ(after(seconds(9)), "down");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(after(seconds(1)), "down");
  EXPECT_EQ(calls, 2);
  works = true;
  EXPECT_EQ(after(seconds(19)), "down");
  EXPECT_EQ(after(seconds(1)), "3");
  EXPECT_EQ(after(seconds(119)), "3");
  EXPECT_EQ(after(seconds(1)), "4");
  works = false;
  EXPECT_EQ(after(minutes(2)), "down");
  EXPECT_EQ(after(seconds(10)), "down");
  EXPECT_EQ(calls, 6);
}

/// Waits until the provider has factors.
std::shared_ptr<const Factors> wait_for_factors(Provider& provider) {
  std::shared_ptr<const Factors> factors;
  EXPECT_TRUE(testing::eventually([&] {
    factors = provider.factors();
    return factors != nullptr;
  }));
  return factors;
}

TEST_F(EmissionServicesTest, ARemoteProviderServesItsAnswerForADay) {
  const auto provider = remote_provider(
      "rte", "RTE", hours(48), clock_,
      [](const std::stop_token&) { return Result<Factors>(Factors{{"FR", "France", 7}}); });
  EXPECT_EQ(provider->factors(), nullptr);
  EXPECT_EQ(provider->age(), std::nullopt);
  provider->start();
  const auto factors = wait_for_factors(*provider);
  ASSERT_NE(factors, nullptr);
  EXPECT_EQ(*factors, (Factors{{"FR", "France", 7}}));
  clock_.advance(hours(24));
  EXPECT_EQ(provider->age(), hours(24));
  EXPECT_NE(provider->factors(), nullptr);
  clock_.advance(seconds(1));
  EXPECT_EQ(provider->factors(), nullptr);
  EXPECT_EQ(provider->age(), std::nullopt);
}

TEST_F(EmissionServicesTest, AHangingServiceDelaysNeitherStartNorEnd) {
  std::latch end(1);
  TestService service(
      [&](const net::Request& /*request*/, net::Response& /*response*/) { end.wait(); });
  auto fetch = rte_fetch(context({{"__RTE_BASE_URL", service.url()}}));
  auto provider = remote_provider("rte", "RTE", minutes(30), clock_, *std::move(fetch));
  provider->start();
  EXPECT_TRUE(testing::eventually([&] { return !service.requests().empty(); }));
  EXPECT_EQ(provider->factors(), nullptr);
  const auto begin = std::chrono::steady_clock::now();
  provider.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(25)) << "30 s is the timeout";
  end.count_down();
}

std::vector<std::string> keys_of(const std::vector<std::unique_ptr<Provider>>& providers) {
  std::vector<std::string> keys;
  keys.reserve(providers.size());
  for (const auto& provider : providers) {
    keys.push_back(provider->key());
  }
  return keys;
}

TEST_F(EmissionServicesTest, WithoutKeysAllUsableProvidersAreUsed) {
  EXPECT_EQ(keys_of(make_providers({}, context({})).value()),
            (std::vector<std::string>{"owid", "rte", "global"}));
  EXPECT_EQ(keys_of(make_providers({}, context({{"EMAPS_API_TOKEN", ""},
                                                {"WT_USERNAME", "u"},
                                                {"WT_PASSWORD", "p"},
                                                {"WT_REGION", "r"}}))
                        .value()),
            provider_keys());
}

TEST_F(EmissionServicesTest, AnUnusableKeyEndsTheStart) {
  EXPECT_EQ(keys_of(make_providers({"global", "owid", "owid"}, context({})).value()),
            (std::vector<std::string>{"owid", "global"}));
  EXPECT_EQ(make_providers({"emaps"}, context({})).error().message,
            "emission provider emaps: environment variable EMAPS_API_TOKEN is not set");
  EXPECT_EQ(make_providers({"owid", "wt"}, context({{"WT_USERNAME", "u"}})).error().message,
            "emission provider wt: environment variables not set: WT_PASSWORD, WT_REGION");
}

constexpr std::string_view kHeading = "alpha_2;alpha_3;name;grams_per_kwh;year;source\n";

TEST(ParseCountryTable, UsesTheLatestYearInAnyOrder) {
  const auto factors = parse_country_table(std::string("# comment\n\n") + std::string(kHeading) +
                                           "AF;AFG;Afghanistan;120;2001;x\n"
                                           "AF;AFG;Afghanistan;110.5;2002;x\n"
                                           "AF;AFG;Afghanistan;130;2000;x\n"
                                           "AF;AFG;Afghanistan;140;;x\n"
                                           "CI;CIV;Côte d'Ivoire;0;;x\n");
  ASSERT_TRUE(factors);
  EXPECT_EQ(*factors, (Factors{{"AF", "Afghanistan", 110.5}, {"CI", "Côte d'Ivoire", 0}}));
}

TEST(ParseCountryTable, NamesTheInvalidLine) {
  for (const char* bad : {"AF;AFG;Afghanistan;120;2001", "af;AFG;Afghanistan;120;2001;x",
                          "AF;AF;A;120;2001;x", "AF;AFG;;120;2001;x", "AF;AFG;A;-1;2001;x",
                          "AF;AFG;A;nan;2001;x", "AF;AFG;A;12;MM;x", "AF;AFG;A;;2001;x"}) {
    const auto factors = parse_country_table(std::string(kHeading) + bad + "\n");
    ASSERT_FALSE(factors) << bad;
    EXPECT_TRUE(factors.error().message.starts_with("line 2: expected 'alpha_2;")) << bad;
  }
  EXPECT_FALSE(parse_country_table(""));
  EXPECT_FALSE(parse_country_table("AF;AFG;Afghanistan;120;2001;x\n"));
}

TEST(CountryFactors, HoldsTheCountriesWithoutZeros) {
  const auto factors = country_factors();
  ASSERT_TRUE(factors);
  EXPECT_GE(factors->size(), 200U);
  EXPECT_TRUE(std::ranges::all_of(*factors, [](const Factor& factor) {
    return factor.grams_per_kwh > 0 && factor.grams_per_kwh < 2000;
  }));
  const auto france = std::ranges::find(*factors, "FR", &Factor::code);
  ASSERT_NE(france, factors->end());
  EXPECT_EQ(france->country, "France");
  EXPECT_NEAR(france->grams_per_kwh, 45, 35);
}

/// The names of Our World in Data, which dashboards of the reference select by, where they differ
/// from ISO 3166-1, and territories that other lists leave out.
TEST(CountryFactors, HasTheNamesAndTerritoriesOfOurWorldInData) {
  const auto factors = country_factors();
  ASSERT_TRUE(factors);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"BM", "Bermuda"},
      {"BN", "Brunei"},
      {"CD", "Democratic Republic of Congo"},
      {"CI", "Cote d'Ivoire"},
      {"CV", "Cape Verde"},
      {"EH", "Western Sahara"},
      {"FK", "Falkland Islands"},
      {"GI", "Gibraltar"},
      {"NA", "Namibia"},
      {"PS", "Palestine"},
      {"RE", "Reunion"},
      {"RU", "Russia"},
      {"SH", "Saint Helena"},
      {"TL", "East Timor"},
      {"TR", "Turkey"},
      {"VG", "British Virgin Islands"},
      {"VI", "United States Virgin Islands"}};
  for (const auto& [code, name] : expected) {
    const auto found = std::ranges::find(*factors, code, &Factor::code);
    ASSERT_NE(found, factors->end()) << code;
    EXPECT_EQ(found->country, name);
  }
}

/// The twelve countries whose numbers in Ember's newer edition are more than 1 % off.
TEST(CountryFactors, HasTheNumbersOfOurWorldInData) {
  const auto factors = country_factors();
  ASSERT_TRUE(factors);
  const std::vector<std::pair<std::string, double>> expected{
      {"AE", 492.69827}, {"AR", 358.94824}, {"BR", 103.212296}, {"BY", 313.6173},
      {"CA", 174.81425}, {"FR", 44.179085}, {"GB", 210.89114},  {"IR", 641.93616},
      {"KG", 163.70107}, {"SV", 101.56249}, {"TJ", 115.87792},  {"UA", 256.21008},
      {"VN", 471.15857}};
  for (const auto& [code, grams] : expected) {
    const auto found = std::ranges::find(*factors, code, &Factor::code);
    ASSERT_NE(found, factors->end()) << code;
    EXPECT_DOUBLE_EQ(found->grams_per_kwh, grams) << code;
  }
}

}  // namespace

}  // namespace ceems::exporter::emissions
