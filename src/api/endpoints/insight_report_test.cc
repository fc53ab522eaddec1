// Reports that rules ask for, through the API.
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "api/statements/kept.h"
#include "api/tsdb/fleet.h"
#include "testing/eventually.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ceems::testing::eventually;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tsdb::FakeTransport;

const std::string kReport = "/api/v1/insight/report/admin?";

class InsightReport : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    for (const std::string cluster : {"hpc-a", "<b>\"/x"}) {
      tsdbs_[cluster].client = std::make_unique<tsdb::Client>(
          "http://t", std::make_unique<FakeTransport>([this, cluster](const auto& /*request*/) {
            ++asked_;
            EXPECT_TRUE(eventually([this] { return !hangs_; }));
            return answer_;
          }),
          clock_);
    }
    write(ended_unit("300", 12.5));
    clock_.advance(std::chrono::hours(2));
    restart();
  }

  void restart() {
    ApiOptions options;
    options.fleet = &fleet_;
    options.roles.support = {"sue"};
    options.site.name = "Centre <1>";
    options.site.time_zone = "UTC";
    options.site.clusters = {{.id = "hpc-a", .manager = "slurm", .series = true},
                             {.id = "<b>\"/x", .manager = "slurm", .series = true}};
    options.accounting = accounting_;
    make(std::move(options));
  }

  /// A meter with a series in each of these clusters.
  void add_meters(const std::vector<std::string>& clusters) {
    for (const std::string& cluster : clusters) {
      accounting_.facility.meters.push_back(
          {.kind = facility::MeterKind::kTotal, .name = "m", .power = "watts", .cluster = cluster});
    }
    restart();
  }

  json::value data(const std::string& query) {
    const auto response = get(kReport + query, "root");
    EXPECT_EQ(response.status, 200) << query << response.body;
    return json::parse(response.body).at("data");
  }

  static double value_of(const json::value& report, std::string_view id) {
    for (const json::value& line : report.at("lines").as_array()) {
      if (line.at("id").as_string() == id) {
        return line.at("value").to_number<double>();
      }
    }
    ADD_FAILURE() << "no line " << id;
    return -1;
  }

  std::string error(const std::string& query, int status = 400) {
    const auto response = get(kReport + query, "root");
    EXPECT_EQ(response.status, status) << query;
    return std::string(json::parse(response.body).at("error").as_string());
  }

  Result<net::ClientResponse> answer_ =
      FakeTransport::ok(R"({"status":"success","data":{"resultType":"matrix","result":[)"
                        R"({"metric":{},"values":[[1767229200,"2000"]]}]}})");
  std::atomic<int> asked_ = 0;
  std::atomic<bool> hangs_ = false;
  AccountingOptions accounting_;
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
};

TEST_F(InsightReport, KindsAreThoseOfTheTool) {
  const auto answer = json::parse(body("insight/report/kinds/admin", "root")).at("data");
  std::string kinds;
  for (const json::value& kind : answer.as_array()) {
    kinds += fmt::format("{} {:d}{:d}, ", std::string(kind.at("kind").as_string()),
                         kind.at("year").as_bool(), kind.at("month").as_bool());
  }
  EXPECT_EQ(kinds, "year 10, month 01, ghg 11, eed 11, sci 11, green-disc 11, ");
}

TEST_F(InsightReport, AreForAdminsAlone) {
  for (const std::string path : {"report/kinds/admin", "report/admin?kind=year&period=2026"}) {
    EXPECT_EQ(get("/api/v1/insight/" + path, "root").status, 200) << path;
    EXPECT_EQ(get("/api/v1/insight/" + path, "sue").status, 403) << path;
    EXPECT_EQ(get("/api/v1/insight/" + path, "ada").status, 403) << path;
    EXPECT_EQ(get("/api/v1/insight/" + path).status, 401) << path;
  }
}

TEST_F(InsightReport, HaveTheSameNumbersOnThePageAndInFiles) {
  const json::value page = data("kind=month&period=2026-01");
  EXPECT_EQ(page.at("period").as_string(), "2026-01");
  EXPECT_EQ(page.at("site").as_string(), "Centre <1>");
  EXPECT_DOUBLE_EQ(value_of(page, "units_kwh"), 12.5);
  EXPECT_TRUE(page.at("appendix").as_object().empty());
  const auto file = get(kReport + "kind=month&period=2026-01&format=json", "root");
  EXPECT_EQ(header(file, "Content-Type"), "application/json");
  EXPECT_EQ(header(file, "Content-Disposition"), R"(attachment; filename="month-2026-01.json")");
  EXPECT_EQ(header(file, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header(file, "Cache-Control"), "no-store");
  const json::value whole = json::parse(file.body);
  EXPECT_EQ(whole.at("lines"), page.at("lines"));
  EXPECT_EQ(whole.at("written"), page.at("written"));
  EXPECT_FALSE(whole.at("appendix").at("usage_days").as_array().empty());
}

TEST_F(InsightReport, AreFilesOfTheirKind) {
  struct Form {
    std::string format, type, start;
  };
  for (const Form& form :
       {Form{"md", "text/markdown; charset=utf-8", "# "},
        Form{"csv", "text/csv; charset=utf-8", "Report,"},
        Form{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "PK\3\4"},
        Form{"html", "text/html; charset=utf-8", "<!DOCTYPE html>"}}) {
    const auto file = get(kReport + "kind=ghg&period=2026&format=" + form.format, "root");
    EXPECT_EQ(file.status, 200) << form.format;
    EXPECT_EQ(header(file, "Content-Type"), form.type);
    EXPECT_EQ(header(file, "Content-Disposition"),
              fmt::format("attachment; filename=\"ghg-2026.{}\"", form.format));
    EXPECT_THAT(file.body, StartsWith(form.start));
    if (form.format == "html") {
      EXPECT_THAT(file.body, AllOf(HasSubstr("Centre &lt;1&gt;"), Not(HasSubstr("Centre <1>"))));
    }
  }
}

TEST_F(InsightReport, OfAClusterSaysSo) {
  const json::value report = data("kind=year&period=2026&cluster_id=hpc-a");
  EXPECT_EQ(report.at("notes").at(0).as_string(), "Only of the cluster hpc-a.");
  const auto file =
      get(kReport + "kind=year&period=2026&format=md&cluster_id=%3Cb%3E%22%2Fx", "root");
  EXPECT_EQ(header(file, "Content-Disposition"), R"(attachment; filename="year-2026-_b___x.md")");
}

TEST_F(InsightReport, RefuseWhatTheyDoNotKnow) {
  const std::string kinds =
      "query parameter 'kind': expected one of year, month, ghg, eed, sci, green-disc";
  EXPECT_EQ(error(""), kinds);
  EXPECT_EQ(error("period=2026"), kinds);
  EXPECT_EQ(error("kind=%00year&period=2026"), kinds);
  EXPECT_EQ(error("kind=../etc/passwd&period=2026"), kinds);
  EXPECT_EQ(error("kind=year"),
            "query parameter 'period': '': expected a year or month such as 2026 or 2026-11");
  for (const std::string period :
       {"26", "2026-13", "2026-1", "2026-11-30", "-026", "9999", "2026%00", "20%0A26", "1970"}) {
    EXPECT_THAT(error("kind=ghg&period=" + period),
                AllOf(StartsWith("query parameter 'period': "), Not(HasSubstr("\n"))))
        << period;
  }
  EXPECT_LT(error("kind=ghg&period=" + std::string(5000, '9')).size(), 200U);
  EXPECT_EQ(error("kind=ghg&period=2027"), "query parameter 'period': '2027' has not begun");
  EXPECT_EQ(error("kind=year&period=2026-01"), "query parameter 'period': '2026-01' is not a year");
  EXPECT_EQ(error("kind=month&period=2026"), "query parameter 'period': '2026' is not a month");
  for (const std::string format : {"pdf", "JSON", "xlsx%22", "json,csv"}) {
    EXPECT_EQ(error("kind=ghg&period=2026&format=" + format),
              "query parameter 'format': expected md, csv, json, xlsx or html")
        << format;
  }
  EXPECT_EQ(error("kind=ghg&period=2026&cluster_id=hpc-z"),
            "query parameter 'cluster_id': no cluster has the ID 'hpc-z'");
  EXPECT_EQ(error("kind=ghg&period=2026&cluster_id=hpc-a&cluster_id=hpc-z"),
            "query parameter 'cluster_id': expected one cluster, or none for the whole site");
}

TEST_F(InsightReport, AreKeptForAMinute) {
  const std::string query = "kind=ghg&period=2026";
  const auto written = [&] { return std::string(data(query).at("written").as_string()); };
  const std::string first = written();
  clock_.advance(std::chrono::seconds(59));
  EXPECT_EQ(written(), first);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_NE(written(), first);
}

TEST_F(InsightReport, AskADeadTsdbOnceAndAreNotKept) {
  add_meters({"hpc-a", "hpc-a", "<b>\"/x", "hpc-a"});
  answer_ = fail(ErrorCode::kTimeout, "no answer in 10 s");
  const json::value report = data("kind=year&period=2026");
  EXPECT_EQ(asked_, 2) << "one question for each TSDB";
  const std::string notes = json::serialize(report.at("notes"));
  EXPECT_THAT(notes, HasSubstr("meter m (total): "));
  EXPECT_THAT(notes, HasSubstr("no answer in 10 s"));
  data("kind=year&period=2026");
  EXPECT_EQ(asked_, 4) << "the next request tries again";
}

TEST_F(InsightReport, TwoAreMadeAtOnce) {
  add_meters({"hpc-a"});
  hangs_ = true;
  std::vector<std::jthread> others;
  for (const std::string kind : {"year", "ghg"}) {
    others.emplace_back([this, kind] { data("kind=" + kind + "&period=2026"); });
  }
  EXPECT_TRUE(eventually([this] { return asked_ == 2; }));
  const auto refused = get(kReport + "kind=sci&period=2026", "root");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(header(refused, "Retry-After"), "5");
  EXPECT_THAT(refused.body, HasSubstr("other reports are being made, try again later"));
  hangs_ = false;
  others.clear();
  EXPECT_EQ(get(kReport + "kind=sci&period=2026", "root").status, 200);
}

TEST_F(InsightReport, OnlyTheLastOnesAreKept) {
  KeptStatements kept(clock_);
  const auto statement = std::make_shared<const statement::Document>();
  for (const std::string key : {"a", "b", "a", "c", "d", "e"}) {
    kept.keep(key, statement);
  }
  EXPECT_EQ(kept.find("b"), nullptr) << "the oldest made room";
  for (const std::string key : {"a", "c", "d", "e"}) {
    EXPECT_EQ(kept.find(key), statement) << key;
  }
  clock_.advance(std::chrono::minutes(1));
  EXPECT_EQ(kept.find("e"), nullptr);
}

}  // namespace
}  // namespace ceems::api
