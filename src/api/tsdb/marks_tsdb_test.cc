#include "api/tsdb/marks_tsdb.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using tsdb::FakeTransport;

std::string mark_labels(const std::string& metric,
                        const std::string& more,
                        const std::string& host = "n1",
                        const std::string& uuid = "1") {
  return fmt::format(R"({}"uuid":"{}","hostname":"{}",{})",
                     metric.empty() ? "" : fmt::format(R"("__name__":"{}",)", metric), uuid, host,
                     more);
}

/// An answer out of pairs of labels and values; those with "," have several.
std::string marks_answer(const std::vector<std::pair<std::string, std::string>>& all,
                         bool matrix = false) {
  std::string result;
  for (const auto& [labels, values] : all) {
    result += fmt::format(R"({}{{"metric":{{{}}},)", result.empty() ? "" : ",", labels);
    if (!matrix) {
      result += fmt::format(R"("value":[1,"{}"]}})", values);
      continue;
    }
    result += R"("values":[)";
    std::size_t at = 0;
    for (int time = 0; at <= values.size(); time += 100) {
      const std::size_t end = std::min(values.find(',', at), values.size());
      result += fmt::format(R"({}[{},"{}"])", time == 0 ? "" : ",", time + 100,
                            values.substr(at, end - at));
      at = end + 1;
    }
    result += "]}";
  }
  return fmt::format(R"({{"status":"success","data":{{"resultType":"{}","result":[{}]}}}})",
                     matrix ? "matrix" : "vector", result);
}

const std::string kRegion = "ceems_compute_unit_region_";  // NOLINT(cert-err58-cpp)
constexpr const char* kSolve = R"("region":"solve")";
constexpr const char* kStep = R"("result":"step","unit":"")";

/// One region of a unit, if the query asks for last values.
std::string one_region(const std::string& uuid, const std::string& query) {
  std::vector<std::pair<std::string, std::string>> all;
  if (query.starts_with("last")) {
    all.emplace_back(mark_labels(kRegion + "seconds_total", kSolve, "n1", uuid), "5");
  }
  return marks_answer(all);
}

/// Two nodes. On n2, the exporter was restarted.
Result<net::ClientResponse> restarted(const FakeTransport::Request& request) {
  const std::string query = request.first("query");
  if (request.path.ends_with("/query_range")) {
    return FakeTransport::ok(marks_answer(
        {{mark_labels(kRegion + "seconds_total", kSolve, "n2"), "10,60,5,25"},
         {mark_labels(kRegion + "count_total", kSolve, "n2"), "0,3,0,1"},
         {mark_labels("ceems_compute_unit_results_total", kStep, "n2"), "100,300,50,50"},
         {mark_labels("ceems_compute_unit_results_total", R"("result":"new","unit":"")", "n2"),
          "7"}},
        true));
  }
  if (query.starts_with("last_over_time")) {
    const std::string joules = kRegion + "energy_joules_total";
    const std::string of_unit = "ceems_compute_unit_energy_joules_total";
    return FakeTransport::ok(marks_answer({
        {mark_labels(kRegion + "seconds_total", kSolve), "80"},
        {mark_labels(kRegion + "seconds_total", R"("region":"solve","instance":"copy")"), "79"},
        {mark_labels(kRegion + "count_total", kSolve), "4"},
        {mark_labels(joules, R"("region":"solve","domain":"node")"), "8000"},
        {mark_labels(kRegion + "self_energy_joules_total", kSolve), "7500"},
        {mark_labels(kRegion + "seconds_total", kSolve, "n2"), "25"},
        {mark_labels(kRegion + "count_total", kSolve, "n2"), "1"},
        {mark_labels("ceems_compute_unit_results_total", kStep, "n2"), "50"},
        {mark_labels("ceems_compute_unit_results_total", kStep), "1000"},
        {mark_labels(of_unit, R"("domain":"node")"), "9000"},
        {mark_labels(of_unit, R"("domain":"node")", "n2"), "5000"},
        {mark_labels("ceems_compute_unit_fom", R"("fom":"loss","unit":"1")"), "-2.5"},
        {mark_labels("ceems_compute_unit_fom", R"("fom":"loss","unit":"1")", "n2"), "-3.5"},
        {mark_labels(kRegion + "seconds_total", R"("region":"bad")"), "NaN"},
        {mark_labels(kRegion + "seconds_total", R"("region":"worse")"), "-1"},
        {mark_labels(kRegion + "seconds_total",
                     fmt::format(R"("region":"{}")", std::string(65, 'x'))),
         "1"},
        {mark_labels("up", kSolve), "1"},
        {mark_labels(kRegion + "seconds_total", kSolve, "n1", "others"), "99"},
    }));
  }
  return FakeTransport::ok(
      marks_answer({{mark_labels("", kSolve), "0"},
                    {mark_labels("", kSolve, "n2"), "1"},
                    {mark_labels("", R"("fom":"loss","unit":"1")"), "-2"},
                    {mark_labels("", R"("fom":"loss","unit":"1")", "n2"), "-3"}}));
}

struct MarksFixture {
  explicit MarksFixture(FakeTransport::Answer answer) {
    auto owned = std::make_unique<FakeTransport>(std::move(answer));
    transport = owned.get();
    tsdb.client = std::make_unique<tsdb::Client>("http://t", std::move(owned), clock);
    tsdb.cluster_label = "ceems_id";
  }
  std::vector<std::string> queries(const std::string& path = "/query") const {
    std::vector<std::string> all;
    for (const auto& request : transport->requests()) {
      if (request.path.ends_with(path)) {
        all.push_back(request.first("query"));
      }
    }
    return all;
  }
  testing::FakeClock clock;
  FakeTransport* transport = nullptr;
  ClusterTsdb tsdb;
};

const UnitRun& short_run() {
  static const UnitRun kRun{
      .uuid = "1", .started_ms = 100'000, .ended_ms = 400'000, .until_ms = 400'000};
  return kRun;
}

TEST(MarksTsdb, CountOnWhereTheExporterWasRestarted) {
  MarksFixture f(restarted);
  const auto all = read_marks(f.tsdb, "c1", {short_run()});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 1U);
  const UnitMarks& marks = all->front();
  ASSERT_EQ(marks.nodes.size(), 2U);
  EXPECT_EQ(marks.nodes[0].name, "n1");
  ASSERT_EQ(marks.nodes[0].regions.size(), 1U) << "values and names that cannot be are left out";
  const UnitMarks::Region& solve = marks.nodes[0].regions.at("solve");
  EXPECT_EQ(solve.seconds, 80);  // the larger of two copies
  EXPECT_EQ(solve.count, 4);
  EXPECT_EQ(solve.joules.at("node"), 8000);
  EXPECT_EQ(solve.self_joules, 7500);
  EXPECT_EQ(marks.nodes[0].joules.at("node"), 9000);
  const UnitMarks::Region& other = marks.nodes[1].regions.at("solve");
  EXPECT_EQ(other.seconds, 60 + 25);
  EXPECT_EQ(other.count, 3 + 1);
  EXPECT_TRUE(other.joules.empty());
  EXPECT_EQ(joules_of_unit(marks), 14'000);
  ASSERT_EQ(marks.results.size(), 1U);
  EXPECT_EQ(marks.results[0].n, 1000 + 300 + 50);
  ASSERT_EQ(marks.merits.size(), 1U);
  EXPECT_EQ(marks.merits[0].nodes, 2U);
  EXPECT_EQ(marks.merits[0].last, -3);
  EXPECT_EQ(marks.merits[0].mean, -2.5);
  EXPECT_EQ(f.queries().size(), 2U);
  const auto samples = f.queries("/query_range");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_THAT(samples[0], HasSubstr(R"(uuid="1",ceems_id="c1",hostname=~"n2")"));
}

TEST(MarksTsdb, OfManyUnitsAreTwoQueries) {
  MarksFixture f([](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
    if (!request.path.ends_with("/query")) {
      return FakeTransport::status(404, "");
    }
    return FakeTransport::ok(one_region("b", request.first("query")));
  });
  const auto all =
      read_marks(f.tsdb, "c1",
                 {short_run(),
                  {.uuid = "b", .started_ms = 0, .ended_ms = 86'400'000, .until_ms = 86'400'000}});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 2U);
  EXPECT_TRUE((*all)[0].nodes.empty());
  ASSERT_EQ((*all)[1].nodes.size(), 1U);
  EXPECT_EQ((*all)[1].nodes[0].regions.at("solve").seconds, 5);
  const auto queries = f.queries();
  ASSERT_EQ(queries.size(), 2U);
  EXPECT_THAT(queries[0], HasSubstr(R"(uuid="1",ceems_id="c1"}[300s] @ 400) or last_over_time()"));
  // A long life in steps, besides its last minutes.
  EXPECT_THAT(queries[0],
              HasSubstr(R"(uuid="b",ceems_id="c1"}[600s] @ 86400) or last_over_time()"));
  EXPECT_THAT(queries[0], HasSubstr(R"(uuid="b",ceems_id="c1"}[86400s:87s] @ 86400))"));
  EXPECT_THAT(queries[1], HasSubstr("resets(ceems_compute_unit_region_seconds_total{uuid=\"1\""));
  EXPECT_THAT(queries[1], HasSubstr("avg_over_time(ceems_compute_unit_fom{uuid=\"b\""));
  EXPECT_TRUE(read_marks(f.tsdb, "c1", {})->empty());
}

TEST(MarksTsdb, OfAUnitThatAsksTooMuchAreLeftOut) {
  MarksFixture f([](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
    const std::string query = request.first("query");
    if (query.find("uuid=\"big\"") != std::string::npos) {
      return FakeTransport::status(
          422, R"({"status":"error","errorType":"execution","error":"too many samples"})");
    }
    return FakeTransport::ok(one_region("1", query));
  });
  UnitRun big = short_run();
  big.uuid = "big";
  UnitRun third = short_run();
  third.uuid = "3";
  const auto all = read_marks(f.tsdb, "c1", {big, short_run(), third});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_TRUE((*all)[0].nodes.empty());
  EXPECT_EQ((*all)[1].nodes.size(), 1U);
  EXPECT_TRUE((*all)[2].nodes.empty());
  EXPECT_EQ(read_marks(f.tsdb, "c1", {big}).error().code, ErrorCode::kInvalidArgument);
}

TEST(MarksTsdb, ReportWhatGoesWrong) {
  MarksFixture f(
      [](const FakeTransport::Request& /*request*/) { return FakeTransport::status(500, "no"); });
  EXPECT_EQ(read_marks(f.tsdb, "c1", {short_run(), short_run()}).error().code,
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace ceems::api
