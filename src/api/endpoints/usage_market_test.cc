// Market-based emissions beside location-based ones, over a year.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/server_test_support.h"
#include "base/time/durations.h"
#include "store/nodes.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

constexpr std::int64_t kYear = kNow - 365 * kDayMs;  // 2025
constexpr const char* kFields = "kwh,grams,grams_of_kwh,market_grams,market_of_kwh";

class MarketUsage : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    const std::vector<std::pair<int, std::optional<double>>> jobs{
        {35, 500}, {68, 1000}, {91, std::nullopt}};  // 5 February, 10 March, 2 April
    std::int64_t written = kYear + 34 * kDayMs;
    int kwh = 10;
    for (const auto& [day, grams] : jobs) {
      store::ClusterUpdate update;
      update.cluster = {.id = "c", .manager = "slurm", .updaters = {}};
      update.window = {written, kYear + (day + 1) * kDayMs};
      written = update.window.end_ms;
      model::Unit unit = job(std::to_string(1000 + day), "ada", "fluids");
      unit.started_at_ts = written - 2 * kHour;
      unit.ended_at_ts = written - kHour;
      store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", kwh}});
      if (grams) {
        store::with(unit, model::Metric::kTotalCpuEmissionsGms, {{"rte_total", *grams}});
      }
      kwh += 10;
      update.units.push_back(unit);
      update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada"}}};
      write(update);
    }
    const auto bill = [](int from, int to, const std::string& kgco2) {
      return store::Bill{.cluster_id = "",
                         .start_ms = kYear + from * kDayMs,
                         .end_ms = kYear + to * kDayMs,
                         .energy = 1'000'000'000'000,  // 1000 kWh
                         .kgco2 = kgco2};
    };
    // February has 100 g/kWh, the bill of March does not say it, and April was without emissions.
    ASSERT_TRUE(store::import_bills({.directory = dir_.path().string(), .url = url_},
                                    {bill(31, 59, "100"), bill(59, 90, ""), bill(90, 120, "0")},
                                    false));
    make();
  }
  json::value data(const std::string& rest, const std::string& user = "root") {
    const auto response =
        get(fmt::format("/api/v1/usage/series{}?from={}&to={}&cluster_id=c&{}",
                        user == "root" ? "/admin" : "", kYear / 1000, kNow / 1000 - 1, rest),
            user);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).at("data");
  }
  /// Known values, as a sum.
  static std::optional<double> sum_of(const json::value& line) {
    std::optional<double> sum;
    for (const json::value& value : line.as_array()) {
      if (!value.is_null()) {
        sum = sum.value_or(0) + value.to_number<double>();
      }
    }
    return sum;
  }
};

TEST_F(MarketUsage, IsKnownForMonthsWhoseBillSaysIt) {
  const json::value months = data(fmt::format("step=month&field={}", kFields));
  const auto first = [&months](const char* field) {
    std::vector<std::optional<double>> values;
    for (const json::value& value : months.at("values").at(field).at(0).as_array()) {
      values.push_back(value.is_null() ? std::nullopt : std::optional(value.to_number<double>()));
    }
    values.resize(5);
    return values;
  };
  using Kwh = std::vector<std::optional<double>>;
  constexpr auto kUnknown = std::nullopt;
  EXPECT_EQ(first("kwh"), (Kwh{kUnknown, 10, 20, 30, 0}));
  EXPECT_EQ(first("grams"), (Kwh{kUnknown, 500, 1000, kUnknown, 0}));
  EXPECT_EQ(first("grams_of_kwh"), (Kwh{kUnknown, 10, 20, 0, 0}));
  EXPECT_EQ(first("market_grams"), (Kwh{kUnknown, 1000, kUnknown, 0, 0}));
  EXPECT_EQ(first("market_of_kwh"), (Kwh{kUnknown, 10, 0, 30, 0}));
  EXPECT_EQ(months.at("totals").at("market_grams").at(0).to_number<double>(), 1000);
  EXPECT_EQ(months.at("totals").at("market_of_kwh").at(0).to_number<double>(), 40);
}

TEST_F(MarketUsage, OfAYearIsTheSumOfItsMonthsAndOfItsDays) {
  for (const std::string by : {"none", "project", "user", "cluster"}) {
    const auto sums = [&](const std::string& step, const std::string& user) {
      return data(fmt::format("step={}&by={}&field={}", step, by, kFields), user);
    };
    const json::value months = sums("month", "root");
    const json::value days = sums("day", "root");
    const json::value own = sums("month", "ada");
    EXPECT_EQ(months.at("times").as_array().size(), 12U);
    EXPECT_EQ(days.at("times").as_array().size(), 365U);
    for (const auto& field : {"kwh", "grams", "grams_of_kwh", "market_grams", "market_of_kwh"}) {
      const double total = months.at("totals").at(field).at(0).to_number<double>();
      EXPECT_GT(total, 0) << field;
      EXPECT_EQ(sum_of(months.at("values").at(field).at(0)), total) << field << by;
      EXPECT_EQ(sum_of(days.at("values").at(field).at(0)), total) << field << by;
      EXPECT_EQ(own.at("totals").at(field).at(0).to_number<double>(), total) << field << by;
    }
  }
}

TEST_F(MarketUsage, OfAClusterIsByItsOwnBill) {
  ASSERT_TRUE(store::import_bills({.directory = dir_.path().string(), .url = url_},
                                  {{.cluster_id = "c",
                                    .start_ms = kYear + 31 * kDayMs,
                                    .end_ms = kYear + 59 * kDayMs,
                                    .energy = 1'000'000'000'000,
                                    .kgco2 = "7"}},
                                  false));
  make();
  EXPECT_EQ(data("step=month&field=market_grams")
                .at("totals")
                .at("market_grams")
                .at(0)
                .to_number<double>(),
            70);
}

TEST_F(MarketUsage, IsInFilesToo) {
  const std::string asked = fmt::format(
      "/api/v1/usage/series/"
      "admin?from={}&to={}&cluster_id=c&step=month&by=project&field={}&format=",
      kYear / 1000, kNow / 1000 - 1, kFields);
  const std::string csv = get(asked + "csv", "root").body;
  EXPECT_THAT(csv, ::testing::StartsWith(
                       "month,project,energy (kWh),emissions (g CO2e),energy with emissions (kWh),"
                       "\"emissions, market-based (g CO2e)\","
                       "energy with market-based emissions (kWh)\r\n"));
  EXPECT_THAT(csv, HasSubstr("\r\n2025-02-01,fluids,10,500,10,1000,10\r\n"));
  EXPECT_THAT(csv, HasSubstr("\r\n2025-03-01,fluids,20,1000,20,,0\r\n"));
  EXPECT_THAT(csv, HasSubstr("\r\n2025-04-01,fluids,30,,0,0,30\r\n"));
  EXPECT_EQ(get(asked + "xlsx", "root").body.substr(0, 4), "PK\3\4");
}

TEST_F(MarketUsage, FollowsTheConfigurationWhereNoBillSaysIt) {
  const auto sources = [](const json::value& answer) {
    std::vector<std::string> all;
    for (const json::value& one : answer.at("market").as_array()) {
      all.push_back(fmt::format("{} {}{}", one.at("kwh").to_number<double>(),
                                std::string(one.at("source").as_string()),
                                one.at("bills").as_bool() ? "bills" : ""));
    }
    return all;
  };
  EXPECT_EQ(sources(data(fmt::format("step=month&field={}", kFields))),
            std::vector<std::string>{"40 bills"});
  ApiOptions options;
  options.accounting.market = {{.grams = 7, .source = "another cluster"},
                               {.grams = 20, .source = "hydro, certificates 1 to 9"}};
  options.accounting.market[0].clusters = {"other"};
  make(std::move(options));
  const json::value months = data(fmt::format("step=month&field={}", kFields));
  EXPECT_EQ(sources(months),
            (std::vector<std::string>{"20 hydro, certificates 1 to 9", "40 bills"}));
  const json::array& grams = months.at("values").at("market_grams").at(0).as_array();
  EXPECT_EQ(grams.at(1).to_number<double>(), 1000);  // February has a bill that says it
  EXPECT_EQ(grams.at(2).to_number<double>(), 20 * 20);
  EXPECT_EQ(months.at("totals").at("grams").at(0).to_number<double>(), 1500);
  EXPECT_EQ(months.at("totals").at("market_grams").at(0).to_number<double>(), 1400);
  EXPECT_EQ(months.at("totals").at("market_of_kwh").at(0).to_number<double>(), 60);
  // Members of the project see the same, and other sums do not have it.
  EXPECT_EQ(data(fmt::format("step=month&field={}", kFields), "ada").at("market"),
            months.at("market"));
  EXPECT_FALSE(data("step=month&field=kwh,grams").as_object().contains("market"));
}

TEST_F(MarketUsage, OfAnImportWhileTheServerRunsIsThereAtOnce) {
  const std::string target = fmt::format(
      "/api/v1/usage/series/admin?from={}&to={}&cluster_id=c&step=month&field=market_grams",
      kYear / 1000, kNow / 1000 - 1);
  const std::string tag = header(get(target, "root"), "ETag");
  const auto again = [&] {
    return request("GET", target, {{"X-Grafana-User", "root"}, {"If-None-Match", tag}});
  };
  EXPECT_EQ(again().status, 304);
  ASSERT_TRUE(store::import_bills({.directory = dir_.path().string(), .url = url_},
                                  {{.start_ms = kYear + 59 * kDayMs,
                                    .end_ms = kYear + 90 * kDayMs,
                                    .energy = 1'000'000'000'000,
                                    .kgco2 = "30"}},
                                  true));
  const auto response = again();
  ASSERT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(response.body)
                .at("data")
                .at("totals")
                .at("market_grams")
                .at(0)
                .to_number<double>(),
            1000 + 20 * 30);
}

TEST_F(MarketUsage, IsNotKnownByHourOrComponent) {
  const auto status = [this](const std::string& rest) {
    return get("/api/v1/usage/series/admin?field=market_grams&" + rest, "root").status;
  };
  EXPECT_EQ(status("step=hour"), 400);
  EXPECT_EQ(status("by=component"), 400);
  EXPECT_EQ(status("by=project"), 200);
}

}  // namespace
}  // namespace ceems::api
