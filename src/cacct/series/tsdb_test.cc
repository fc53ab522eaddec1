#include "cacct/series/tsdb.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using tsdb::FakeTransport;

/// A TSDB that gives one answer to an instant query.
class InstantTest : public ::testing::Test {
 protected:
  InstantTest() {
    query_.name = "Power";
    query_.title = "Power(W)";
    query_.help = "mean power\x1b[2J";
    query_.instant = true;
    EXPECT_TRUE(query_.set_text(
        "avg_over_time(power{uuid=~\"{{.UUIDs}}\"}[{{.Range}}:{{.ScrapeInterval}}])"));
  }

  /// `result` is the list of the series.
  Result<> ask(const std::string& result) {
    return ask_for(FakeTransport::ok(fmt::format(
        R"({{"status":"success","data":{{"resultType":"vector","result":[{}]}}}})", result)));
  }
  Result<> ask_for(const net::ClientResponse& response) {
    auto transport = std::make_unique<FakeTransport>(
        [response](const FakeTransport::Request&) { return response; });
    auto* const seen = transport.get();
    tsdb::Client client("http://tsdb", std::move(transport), clock_);
    tsdb::QueryVariables variables;
    variables.scrape_interval = "30s";
    auto done = add_instant_value(client, query_, window_, std::move(variables), units_);
    requests_ = seen->requests();
    return done;
  }

  static Record unit(const std::string& uuid) {
    Record record;
    record.texts["uuid"] = uuid;
    return record;
  }
  [[nodiscard]] const Record::Numbers* numbers(std::size_t unit) const {
    return units_.at(unit).numbers("Power");
  }

  testing::FakeClock clock_;
  SeriesQuery query_;
  InstantWindow window_{.from = 1'700'000'000, .to = 1'700'007'200};
  std::vector<Record> units_{unit("8"), unit("7"), unit("8"), unit("a.b")};
  std::vector<FakeTransport::Request> requests_;
};

TEST_F(InstantTest, AsksOnceForAllUnitsAtTheEndOfTheWindow) {
  ASSERT_TRUE(ask(R"({"metric":{"uuid":"7"},"value":[1700007200,"1.5"]},)"
                  R"({"metric":{"uuid":"8"},"value":[1700007200,"2"]},)"
                  R"({"metric":{"uuid":"9"},"value":[1700007200,"3"]})"));
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].first("time"), "1700007200");
  EXPECT_EQ(requests_[0].first("query"), "avg_over_time(power{uuid=~\"7|8|a[.]b\"}[7200s:30s])");
  ASSERT_NE(numbers(0), nullptr);
  EXPECT_THAT(*numbers(0), ElementsAre(Pair("", 2.0)));
  EXPECT_THAT(*numbers(1), ElementsAre(Pair("", 1.5)));
  EXPECT_THAT(*numbers(2), ElementsAre(Pair("", 2.0))) << "every row of a unit has its value";
  EXPECT_EQ(numbers(3), nullptr) << "no series, no value";
}

TEST_F(InstantTest, TellsProvidersApartAndAddsUpTheRest) {
  ASSERT_TRUE(ask(R"({"metric":{"uuid":"7","provider":"rte"},"value":[1,"1"]},)"
                  R"({"metric":{"uuid":"7","provider":"rte","gpu":"1"},"value":[1,"0.5"]},)"
                  R"({"metric":{"uuid":"7","provider":"owid"},"value":[1,"4"]},)"
                  R"({"metric":{"uuid":"7","provider":"x\u001b[2J"},"value":[1,"8"]},)"
                  R"({"metric":{"uuid":"8"},"value":[1,"NaN"]},{"metric":{},"value":[1,"5"]})"));
  EXPECT_THAT(*numbers(1),
              ElementsAre(Pair("owid", 4.0), Pair("rte", 1.5), Pair("x\uFFFD[2J", 8.0)));
  EXPECT_EQ(numbers(0), nullptr) << "a value that is not a number is none";
}

TEST_F(InstantTest, AWindowOfNoLengthHasTheShortestRange) {
  window_.from = window_.to;
  ASSERT_TRUE(ask(""));
  EXPECT_THAT(requests_.at(0).first("query"), HasSubstr("[1s:30s]"));
}

TEST_F(InstantTest, AnErrorChangesNoUnit) {
  const auto failed = ask_for(FakeTransport::status(
      422, R"({"status":"error","errorType":"execution","error":"no such function"})"));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("no such function"));
  EXPECT_EQ(numbers(0), nullptr);
}

TEST_F(InstantTest, ItsFieldIsShownOnRequestAndIsSafe) {
  const Field field = instant_field(query_);
  EXPECT_EQ(field.name, "power");
  EXPECT_EQ(field.label, "Power");
  EXPECT_EQ(field.title, "Power(W)");
  EXPECT_EQ(field.help, "mean power\uFFFD[2J");
  EXPECT_TRUE(field.instant);
  EXPECT_EQ(field.max, 12U);
  EXPECT_FALSE(field.by_default);
  EXPECT_EQ(number_text(field.kind, 1.5), "1.500000");
}

}  // namespace
}  // namespace ceems::cacct
