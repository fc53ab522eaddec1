// What units did on GPUs.
#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "api/tsdb/fleet.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;
using tsdb::FakeTransport;

constexpr std::int64_t kEnd = kNow / 60'000 * 60'000;

/// One series of the matrix: labels as JSON members, values by period before the last.
std::string series(const std::string& kind,
                   const std::string& host,
                   const std::string& index,
                   const std::string& uuid,
                   const std::map<int, std::string>& values,
                   const std::string& instance = "") {
  std::string points;
  for (const auto& [before, value] : values) {
    points += fmt::format("{}[{},\"{}\"]", points.empty() ? "" : ",",
                          (kEnd - before * kGpuPeriodMs) / 1000, value);
  }
  return fmt::format(
      R"({{"metric":{{"kind":"{}","hostname":"{}","index":"{}","uuid":"{}","gpuiid":"{}"}},)"
      R"("values":[{}]}})",
      kind, host, index, uuid, instance, points);
}

class Gpus : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    auto transport =
        std::make_unique<FakeTransport>([this](const auto& /*request*/) { return answer_; });
    transport_ = transport.get();
    tsdbs_["hpc-a"] = {
        .client = std::make_unique<tsdb::Client>("http://t", std::move(transport), clock_),
        .cluster_label = "ceems_id"};
    ApiOptions options;
    options.fleet = &fleet_;
    options.site.clusters = {{.id = "hpc-a", .manager = "slurm", .series = true},
                             {.id = "hpc-b", .manager = "slurm", .series = false}};
    make(std::move(options));
  }
  void found(const std::vector<std::string>& all) {
    answer_ = FakeTransport::ok(
        fmt::format(R"({{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}})",
                    fmt::join(all, ",")));
  }
  json::value data(const std::string& target, const std::string& user) {
    const auto response = get("/api/v1/" + target, user);
    EXPECT_EQ(response.status, 200) << target << response.body;
    return json::parse(response.body).at("data");
  }

  Result<net::ClientResponse> answer_ = FakeTransport::ok("");
  FakeTransport* transport_ = nullptr;
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
};

TEST_F(Gpus, ShowOwnUnitsAndThatThereAreOthers) {
  // Unit 10 is ada's and runs; unit 3 is eve's; unit 99 is not in the database.
  found({series("busy", "g1", "0", "10", {{0, "0.6666"}, {1, "1.02"}}),
         series("sm", "g1", "0", "10", {{0, "0.3333"}}), series("busy", "g1", "0", "3", {{4, "1"}}),
         series("busy", "g1", "2", "99", {{0, "0.5"}}),
         series("gpu", "g1", "2", "", {{0, "40"}, {1, "40"}}),
         series("gpu", "g1", "10", "", {{0, "40"}})});
  const json::value board = data("gpus", "ada");
  EXPECT_EQ(board.at("step_s").as_int64(), 600);
  EXPECT_EQ(board.at("times").as_array().size(), 7U);
  EXPECT_EQ(board.at("times").as_array().back().as_int64(), kEnd);
  const auto row = [](std::string_view gpu, std::string_view cells) {
    return json::parse(fmt::format(
        R"({{"cluster_id":"hpc-a","host":"g1","gpu":"{}","instance":"","cells":{}}})", gpu, cells));
  };
  const json::array& rows = board.at("rows").as_array();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0], row("0", R"([null,null,{"units":[],"others":true},null,null,)"
                              R"({"units":[{"uuid":"10","user":"ada","busy":1,"sm":null}],)"
                              R"("others":false},)"
                              R"({"units":[{"uuid":"10","user":"ada","busy":0.667,"sm":0.333}],)"
                              R"("others":false}])"));
  EXPECT_EQ(rows[1], row("2", R"([null,null,null,null,null,{"units":[],"others":false},)"
                              R"({"units":[],"others":true}])"));
  EXPECT_EQ(rows[2].at("gpu").as_string(), "10");  // by number
  EXPECT_EQ(board.at("missing"), json::parse(R"([{"cluster_id":"hpc-b","reason":"no_tsdb"}])"));
  const std::string text = body("gpus", "ada");
  EXPECT_THAT(text, Not(HasSubstr("eve")));
  EXPECT_THAT(text, Not(HasSubstr("99")));
  EXPECT_THAT(text, Not(HasSubstr("0.5")));
}

TEST_F(Gpus, ShowAdminsEverything) {
  found(
      {series("busy", "g1", "0", "3", {{4, "1"}}), series("busy", "g1", "0", "99", {{0, "0.5"}})});
  const json::value board = data("gpus/admin?cluster_id=hpc-a", "root");
  EXPECT_EQ(board.at("rows").as_array().at(0).at("cells"),
            json::parse(R"([null,null,{"units":[{"uuid":"3","user":"eve","busy":1,"sm":null}],)"
                        R"("others":false},null,null,null,)"
                        R"({"units":[{"uuid":"99","user":null,"busy":0.5,"sm":null}],)"
                        R"("others":false}])"));
  EXPECT_TRUE(board.at("missing").as_array().empty());
  EXPECT_EQ(get("/api/v1/gpus/admin", "ada").status, 403);
}

TEST_F(Gpus, ShowAUnitOnlyWhileItLived) {
  // Unit 1 ended half an hour ago; the same number now is somebody else's.
  found({series("busy", "g1", "0", "1", {{0, "0.9"}, {4, "0.5"}})});
  const json::value cells = data("gpus", "ada").at("rows").as_array().at(0).at("cells");
  EXPECT_EQ(cells.as_array().at(2).at("units").as_array().size(), 1U);
  EXPECT_EQ(cells.as_array().at(6), json::parse(R"({"units":[],"others":true})"));
}

TEST_F(Gpus, ListInstancesInPlaceOfTheirGpu) {
  found({series("gpu", "g1", "0", "", {{0, "1"}}), series("gpu", "g1", "1", "", {{0, "1"}}),
         series("busy", "g1", "0", "10", {{0, "0.5"}}, "3")});
  const json::array rows = data("gpus", "ada").at("rows").as_array();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("instance").as_string(), "3");
  EXPECT_EQ(rows[1].at("gpu").as_string(), "1");
}

TEST_F(Gpus, AskTheTsdbOnceAMinuteAndOnlyForTheCluster) {
  found({});
  data("gpus", "ada");
  data("gpus", "bob");
  ASSERT_EQ(transport_->requests().size(), 1U);
  const auto request = transport_->requests().front();
  EXPECT_THAT(request.first("query"),
              HasSubstr(R"(ceems_compute_unit_gpu_busy_seconds_total{ceems_id="hpc-a"}[600s])"));
  EXPECT_EQ(request.first("step"), "600");
  clock_.advance(std::chrono::minutes(1));
  data("gpus", "ada");
  EXPECT_EQ(transport_->requests().size(), 2U);
}

TEST_F(Gpus, NameClustersWhoseTsdbDoesNotAnswer) {
  answer_ = fail(ErrorCode::kUnavailable, "down");
  EXPECT_EQ(data("gpus", "ada").at("missing"),
            json::parse(R"([{"cluster_id":"hpc-a","reason":"unavailable"},)"
                        R"({"cluster_id":"hpc-b","reason":"no_tsdb"}])"));
}

}  // namespace
}  // namespace ceems::api
