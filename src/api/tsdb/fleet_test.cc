#include "api/tsdb/fleet.h"

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using tsdb::FakeTransport;

std::string fleet_vector(const std::vector<std::pair<std::string, std::string>>& values,
                         const std::string& label = "hostname") {
  std::string result;
  for (const auto& [name, value] : values) {
    result += fmt::format("{}{{\"metric\":{{\"{}\":\"{}\"}},\"value\":[0,\"{}\"]}}",
                          result.empty() ? "" : ",", label, name, value);
  }
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
}

/// n1 runs a unit, n2 has nothing to do for an hour, n3 was last seen an hour ago.
Result<net::ClientResponse> nodes(const FakeTransport::Request& request) {
  const std::string query = request.first("query");
  const auto has = [&query](std::string_view text) { return query.contains(text); };
  const auto at = [](std::int64_t ms) { return std::to_string(ms / 1000); };
  if (has("hostname=\"n1\"") && request.path.ends_with("_range")) {
    return FakeTransport::ok(
        has("ceems_gpu")
            ? R"({"status":"success","data":{"resultType":"matrix","result":[]}})"
            : R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{},)"
              R"("values":[[1000,"12.34567"],[1060,"NaN"],[1120,"3"]]}]}})");
  }
  if (has("count by (uuid)")) {
    return FakeTransport::ok(fleet_vector({{"1", "1"}, {"2", "1"}, {"99", "1"}}, "uuid"));
  }
  if (has("> 0)[2d")) {
    return FakeTransport::ok(fleet_vector({{"n1", at(kNow)}, {"n2", at(kNow - kHour)}}));
  }
  if (has("[1d:5m]")) {
    return FakeTransport::ok(
        fleet_vector({{"n1", at(kNow)}, {"n2", at(kNow)}, {"n3", at(kNow - kHour)}, {"", "1"}}));
  }
  if (has("timestamp")) {
    return FakeTransport::ok(fleet_vector({{"n1", at(kNow)}, {"n2", at(kNow)}, {"x", at(kNow)}}));
  }
  if (has("ceems_cpu_seconds_total")) {
    return FakeTransport::ok(fleet_vector({{"n1", "97.123456"}, {"n2", "0.4"}, {"n3", "NaN"}}));
  }
  if (has("ceems_cpu_count")) {
    return FakeTransport::ok(fleet_vector({{"n1", "64"}, {"n2", "64"}}));
  }
  if (has("ceems_compute_units")) {
    return FakeTransport::ok(fleet_vector({{"n1", "1"}, {"n2", "0"}}));
  }
  if (has("increase(ceems_node_energy")) {
    return FakeTransport::ok(fleet_vector({{"n1", "72000000"}, {"n2", "18000000"}}));
  }
  if (has(":1h]")) {
    return FakeTransport::ok(fleet_vector({{"n2", "1"}}));
  }
  if (has("ceems_node_energy")) {
    return FakeTransport::ok(fleet_vector({{"n1", "411.25"}, {"n2", "150"}}));
  }
  if (has("ceems_unallocated")) {
    return FakeTransport::ok(fleet_vector({{"n2", "7200000"}}));
  }
  if (request.path.ends_with("_range")) {
    std::string points;
    for (int hour = 0; hour < 24; ++hour) {
      points += fmt::format("{}[{},\"{}\"]", hour == 0 ? "" : ",",
                            (kNow - (24 - hour) * kHour) / 1000, hour >= 11 && hour < 15 ? 20 : 50);
    }
    return FakeTransport::ok(
        R"({"status":"success","data":{"resultType":"matrix","result":[)"
        R"({"metric":{"provider":"owid","country_code":"FR"},"values":[[1,"60"]]},)"
        R"({"metric":{"provider":"rte","country_code":"FR"},"values":[)" +
        points + "]}]}}");
  }
  return FakeTransport::ok(fleet_vector({}));
}

class FleetTest : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    auto transport =
        std::make_unique<FakeTransport>([this](const auto& request) { return answer_(request); });
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
  json::value data(const std::string& target) {
    const auto response = get("/api/v1/" + target, "root");
    EXPECT_EQ(response.status, 200) << target << response.body;
    return json::parse(response.body).at("data");
  }

  FakeTransport::Answer answer_ = nodes;
  FakeTransport* transport_ = nullptr;
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
};

TEST_F(FleetTest, TellsBusyIdleAndSilentNodesApart) {
  const json::value answer = data("nodes/admin");
  EXPECT_THAT(body("nodes/admin", "root"),
              HasSubstr(fmt::format(
                  R"([["hpc-a","n2","idle",0,64,0.4,null,null,null,150,{},2,{}],)"
                  R"(["hpc-a","n3","silent",null,null,null,null,null,null,null,null,null,{}],)"
                  R"(["hpc-a","n1","busy",1,64,97.12,null,null,null,411.3,null,null,{}]])",
                  kNow - kHour, kNow, kNow - kHour, kNow)));
  EXPECT_EQ(json::serialize(answer.at("counts")), R"({"busy":1,"idle":1,"silent":1})");
  EXPECT_EQ(json::serialize(answer.at("watts")), "5.613E2");
  EXPECT_EQ(json::serialize(answer.at("idle_watts")), "150");
  EXPECT_EQ(json::serialize(answer.at("idle_kwh")), "2");
  // Of the node that is measured, over the same hours.
  EXPECT_EQ(json::serialize(answer.at("month_kwh")), "5");
  EXPECT_TRUE(answer.at("covered").is_null());  // the month begins now
  EXPECT_EQ(json::serialize(answer.at("missing")),
            R"([{"cluster_id":"hpc-b","reason":"no_tsdb"}])");
}

TEST_F(FleetTest, AsksForTheClusterOnlyAndOnceAMinute) {
  data("nodes/admin");
  const std::size_t asked = transport_->requests().size();
  for (const auto& request : transport_->requests()) {
    if (const std::string query = request.first("query"); !query.empty()) {
      EXPECT_THAT(query, HasSubstr("ceems_id=\"hpc-a\""));
    }
  }
  data("nodes/admin?state=idle");
  EXPECT_EQ(transport_->requests().size(), asked);
  clock_.advance(std::chrono::seconds(61));
  data("nodes/admin");
  EXPECT_GT(transport_->requests().size(), asked);
}

TEST_F(FleetTest, ListsNodesInPages) {
  const std::string base = "nodes/admin?columns=host&sort=host&limit=2";
  const json::value first = json::parse(body(base, "root"));
  EXPECT_EQ(json::serialize(first.at("data").at("rows")), R"([["n1"],["n2"]])");
  const std::string cursor(first.at("next").as_string());
  const json::value second = json::parse(body(base + "&cursor=" + cursor, "root"));
  EXPECT_EQ(json::serialize(second.at("data").at("rows")), R"([["n3"]])");
  EXPECT_FALSE(second.as_object().contains("next"));
  EXPECT_TRUE(second.as_object().contains("previous"));
  EXPECT_EQ(json::serialize(data("nodes/admin?columns=host&sort=watts").at("rows")),
            R"([["n1"],["n2"],["n3"]])");
  EXPECT_EQ(body("nodes/admin?columns=host,cpu&state=busy&format=csv", "root"),
            "host,cpu\r\nn1,97.12\r\n");
  for (const char* wrong :
       {"sort=x", "order=x", "columns=x", "state=x", "limit=0", "format=x", "cursor=x"}) {
    EXPECT_EQ(get(std::string("/api/v1/nodes/admin?") + wrong, "root").status, 400) << wrong;
  }
}

TEST_F(FleetTest, SaysWhatIsMissing) {
  answer_ = [](const auto& /*request*/) {
    return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "http://secret: refused"));
  };
  const std::string answer = body("nodes/admin", "root");
  EXPECT_THAT(answer, HasSubstr(R"({"cluster_id":"hpc-a","reason":"unavailable"})"));
  EXPECT_THAT(answer, ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(get("/api/v1/grid", "ada").status, 503);
  EXPECT_EQ(get("/api/v1/units/on-node/admin?cluster_id=hpc-a&host=n1", "root").status, 503);
  make();  // a site without any TSDB
  EXPECT_TRUE(data("grid").at("now").is_null());
  EXPECT_TRUE(data("units/on-node/admin?cluster_id=hpc-a&host=n1").at("source").is_null());
}

TEST_F(FleetTest, FindsTheUnitsOfANode) {
  const json::value answer = data("units/on-node/admin?cluster_id=hpc-a&host=n%221");
  EXPECT_EQ(answer.at("rows").as_array().size(), 2U);
  EXPECT_EQ(answer.at("rows").at(0).at(0).as_string(), "1");
  EXPECT_EQ(answer.at("source").as_string(), "tsdb");
  EXPECT_THAT(transport_->requests().back().first("query"), HasSubstr(R"(hostname="n\"1")"));
  for (const char* wrong : {"host=n1", "cluster_id=hpc-a", "cluster_id=a,b&host=n1",
                            "cluster_id=hpc-a&host=n1&from=0", "cluster_id=hpc-a&host=n1&to=x"}) {
    EXPECT_EQ(get(std::string("/api/v1/units/on-node/admin?") + wrong, "root").status, 400)
        << wrong;
  }
}

TEST_F(FleetTest, FindsNodesByName) {
  EXPECT_EQ(json::serialize(data("nodes/admin?columns=host&q=N3").at("rows")), R"([["n3"]])");
  const json::value both = data("nodes/admin?columns=host&q=n+2");
  EXPECT_EQ(json::serialize(both.at("rows")), R"([["n2"]])");
  EXPECT_EQ(json::serialize(both.at("counts")), R"({"busy":0,"idle":1,"silent":0})");
  EXPECT_EQ(json::serialize(data("nodes/admin?columns=host&host=n1").at("rows")), R"([["n1"]])");
  EXPECT_EQ(json::serialize(data("nodes/admin?columns=host&host=N1").at("rows")), "[]");
}

TEST_F(FleetTest, TellsWhatANodeDid) {
  const std::string node = "nodes/series/admin?cluster_id=hpc-a&host=n1";
  const json::value all = data(node);
  ASSERT_EQ(all.as_array().size(), 5U);
  EXPECT_EQ(
      all.at(0),
      json::parse(R"({"name":"cpu","unit":"percent","points":[[1000000,12.35],[1120000,3]]})"));
  EXPECT_EQ(json::serialize(all.at(2)), R"({"name":"gpu","unit":"percent","points":[]})");
  for (const auto& request : transport_->requests()) {
    EXPECT_THAT(request.first("query"), HasSubstr(R"(hostname="n1",ceems_id="hpc-a")"));
    EXPECT_EQ(request.first("step"), "289");  // at most 300 points
  }
  EXPECT_EQ(data(node + "&metric=power,units").as_array().size(), 2U);
  for (const char* wrong : {"", "?cluster_id=hpc-a", "?cluster_id=hpc-a&host=n1&metric=x",
                            "?cluster_id=hpc-a&host=n1&from=0", "?cluster_id=hpc-a&host=n1&to=-1",
                            "?cluster_id=hpc-a&host=n1&from=9&to=9"}) {
    EXPECT_EQ(get(std::string("/api/v1/nodes/series/admin") + wrong, "root").status, 400) << wrong;
  }
  EXPECT_EQ(data("nodes/series/admin?cluster_id=hpc-b&host=n1").as_array().size(), 0U);
  answer_ = [](const auto& /*request*/) {
    return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "http://secret: refused"));
  };
  EXPECT_EQ(get("/api/v1/" + node, "root").status, 503);
}

std::string fleet_matrix(const std::vector<std::pair<std::string, std::string>>& series) {
  std::string result;
  for (const auto& [labels, values] : series) {
    result += fmt::format("{}{{\"metric\":{{{}}},\"values\":[{}]}}", result.empty() ? "" : ",",
                          labels, values);
  }
  return R"({"status":"success","data":{"resultType":"matrix","result":[)" + result + "]}}";
}

/// The last hours of n1 and n2, and the two GPUs of n1.
Result<net::ClientResponse> last_hours(const FakeTransport::Request& request) {
  const std::string query = request.first("query");
  const bool gpus = query.contains("index, gpuiid");
  if (!request.path.ends_with("_range")) {
    return gpus ? FakeTransport::ok(
                      R"({"status":"success","data":{"resultType":"vector","result":[)"
                      R"({"metric":{"hostname":"n1","index":"0"},"value":[0,"97.123456"]}]}})")
                : nodes(request);
  }
  const auto at = [](int hours, const char* value) {
    return fmt::format("[{},\"{}\"]", (kNow / 60'000 * 60'000 - hours * kHour) / 1000, value);
  };
  if (gpus) {
    return FakeTransport::ok(
        fleet_matrix({{R"("hostname":"n1","index":"10")", at(0, "9.99")},
                      {R"("hostname":"n1","index":"0")", at(1, "NaN") + "," + at(0, "100")}}));
  }
  if (query.contains("ceems_compute_units")) {
    return FakeTransport::ok(
        fleet_matrix({{R"("hostname":"n1")", at(0, "2")}, {R"("hostname":"n2")", at(1, "0")}}));
  }
  if (query.contains("ceems_cpu_seconds_total")) {
    return FakeTransport::ok(
        fleet_matrix({{R"("hostname":"n1")", at(1, "4.9") + "," + at(0, "3")},
                      {R"("hostname":"n2")", at(2, "5") + "," + at(1, "4.99")}}));
  }
  return FakeTransport::ok(fleet_matrix({{R"("hostname":"n1")", at(23, "411.25")}}));
}

TEST_F(FleetTest, MapsNodesWithTheirLastDay) {
  answer_ = last_hours;
  const json::value power = data("nodes/map/admin");
  EXPECT_EQ(power.at("metric").as_string(), "power");
  EXPECT_EQ(power.at("times").as_array().size(), 24U);
  EXPECT_EQ(power.at("times").at(23).as_int64(), kNow / 60'000 * 60'000);
  ASSERT_EQ(power.at("rows").as_array().size(), 3U);
  const std::string silent(22, 's');
  const std::string none = [] {
    std::string text;
    for (int i = 0; i < 23; ++i) {
      text += ",null";
    }
    return text;
  }();
  // The values of nodes/admin, then a letter and a number an hour.
  const std::string text = body("nodes/map/admin", "root");
  EXPECT_THAT(
      text, HasSubstr(fmt::format(
                R"(["hpc-a","n1",null,null,"busy",1,97.12,null,null,null,411.3,"{}ib",[411{}],[]])",
                silent, none)));
  EXPECT_THAT(text, HasSubstr(fmt::format(
                        R"(["hpc-a","n2",null,null,"idle",0,0.4,null,null,null,150,"{}bis",[],[]])",
                        std::string(21, 's'))));
  EXPECT_EQ(json::serialize(power.at("missing")), R"([{"cluster_id":"hpc-b","reason":"no_tsdb"}])");
  EXPECT_EQ(power.at("left_off").as_int64(), 0);

  const json::value gpu = data("nodes/map/admin?metric=gpu&q=N1&cluster_id=hpc-a");
  ASSERT_EQ(gpu.at("rows").as_array().size(), 1U);
  EXPECT_EQ(json::serialize(gpu.at("missing")), "[]");
  const json::value& row = gpu.at("rows").at(0);
  // By number; of a device that is not heard of now, only the past is known.
  EXPECT_EQ(json::serialize(row.at(13)),
            R"([["0",9.712E1,"-----------------------9"],["10",null,"-----------------------0"]])");
  EXPECT_EQ(json::serialize(row.at(12).at(23)), "55");  // the mean of both
  EXPECT_TRUE(row.at(12).at(22).is_null());
  EXPECT_EQ(json::serialize(data("nodes/map/admin?metric=state").at("rows").at(0).at(12)), "[]");
  EXPECT_EQ(json::serialize(data("nodes/map/admin?metric=cpu").at("rows").at(0).at(12).at(22)),
            "5");

  const std::size_t asked = transport_->requests().size();
  data("nodes/map/admin?metric=cpu");
  EXPECT_EQ(transport_->requests().size(), asked);  // kept for the minute
  for (const char* wrong : {"metric=x", "metric=units", "metric=cpu,gpu"}) {
    EXPECT_EQ(get(std::string("/api/v1/nodes/map/admin?") + wrong, "root").status, 400) << wrong;
  }
  EXPECT_EQ(get("/api/v1/nodes/map/admin", "ada").status, 403);
  answer_ = [](const auto& request) {
    return request.path.ends_with("_range")
               ? Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "http://secret"))
               : nodes(request);
  };
  const std::string lost = body("nodes/map/admin?metric=memory&cluster_id=hpc-a", "root");
  EXPECT_THAT(lost, HasSubstr(R"("missing":[{"cluster_id":"hpc-a","reason":"unavailable"}])"));
  EXPECT_THAT(lost, ::testing::Not(HasSubstr("secret")));
}

TEST_F(FleetTest, FindsSignsOfBrokenHardwareByThreeQueries) {
  std::vector<std::string> queries;
  answer_ = [&queries](const auto& request) {
    const std::string query = request.first("query");
    queries.push_back(query);
    const auto series = [](const char* host, const char* sign, const char* value) {
      return fmt::format(
          "{{\"metric\":{{\"hostname\":\"{}\",\"sign\":\"{}\"}},\"value\":[0,\"{}\"]}}", host, sign,
          value);
    };
    std::string found = series("n1", "lost_gpu", "0");
    if (query.contains("xid")) {
      found = series("n1", "xid", "2.0003") + "," + series("n2", "ecc", "NaN") + "," +
              series("", "ecc", "1");
    } else if (query.contains("clock_reason")) {
      found = series("n1", "throttle", "43200") + "," + series("n9", "no such sign", "4");
    }
    return FakeTransport::ok(R"({"status":"success","data":{"resultType":"vector","result":[)" +
                             found + "]}}");
  };
  const json::value rows = json::parse(body("insight/nodes/admin?cluster_id=hpc-a", "root"));
  ASSERT_EQ(rows.at("data").as_array().size(), 1U) << json::serialize(rows);
  EXPECT_EQ(
      json::serialize(rows.at("data").at(0)),
      R"({"cluster_id":"hpc-a","kind":"node","node":"n1","class":"","score":50,)"
      R"("effect":null,"failures":null,"hints":["xid","throttle"],)"
      R"("signs":{"xid":2,"throttle":43200},"suggested":"scontrol update nodename=n1 )"
      R"(state=drain reason=\"ceems: 2 Xid errors of the hardware; throttled for 43200 s\""})");
  ASSERT_EQ(queries.size(), 3U);
  // The names that the GPU libraries give (exporter/gpu/library).
  EXPECT_TRUE(queries[1].contains(R"({reason=~"hardware_thermal|power_brake")")) << queries[1];
  EXPECT_THAT(queries[1], HasSubstr("increase(ceems_gpu_clock_reason_seconds_total{"));
  EXPECT_THAT(queries[2], HasSubstr("ceems_gpu_up{"));  // each GPU has it
  body("insight/nodes/admin?cluster_id=hpc-a", "root");
  EXPECT_EQ(queries.size(), 3U);  // kept
}

TEST_F(FleetTest, JudgesNodesWithoutTheTsdb) {
  answer_ = [](const auto&) {
    return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "http://secret"));
  };
  EXPECT_THAT(body("insight/nodes/admin?cluster_id=hpc-a", "root"), HasSubstr(R"("data":[])"));
}

/// What the grid had on average in the hour that ends then: less at night, and a little more every
/// week.
double grid_at(std::int64_t end_ms) {
  const std::int64_t hour = end_ms / kHour % 24;
  return 40 + static_cast<double>(std::abs(hour - 4)) +
         static_cast<double>(end_ms / (168 * kHour) % 4);
}

TEST_F(FleetTest, ForecastsTheGridFromTheWeeksBefore) {
  std::int64_t oldest_ms = 0;
  double scale = 1;
  answer_ = [&](const FakeTransport::Request& request) {
    const std::int64_t from = std::stoll(request.first("start")) * 1000;
    const std::int64_t to = std::stoll(request.first("end")) * 1000;
    EXPECT_EQ(request.first("step"), "3600");
    EXPECT_THAT(request.first("query"), HasSubstr("avg_over_time(ceems_emissions_gCo2_kWh[1h])"));
    std::string points;
    for (std::int64_t at = from; at <= to; at += kHour) {
      if (at >= oldest_ms) {
        points += fmt::format("{}[{},\"{}\"]", points.empty() ? "" : ",", at / 1000,
                              40 + scale * (grid_at(at) - 40));
      }
    }
    return FakeTransport::ok(fleet_matrix({{R"("provider":"rte","country_code":"FR")", points}}));
  };
  const json::value whole = data("grid/forecast");
  const auto& hours = whole.at("hours").as_array();
  ASSERT_EQ(hours.size(), 48U);
  const std::int64_t first = (kNow / kHour + 1) * kHour;
  std::vector<double> medians;
  for (std::size_t i = 0; i < hours.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i) * kHour;
    std::vector<double> past;
    for (int week = 1; week <= 4; ++week) {
      past.push_back(grid_at(at + kHour - week * 168 * kHour));
    }
    std::ranges::sort(past);
    medians.push_back((past[1] + past[2]) / 2);
    EXPECT_EQ(hours[i].at(0).as_int64(), at);
    EXPECT_DOUBLE_EQ(hours[i].at(1).to_number<double>(), medians.back());
    EXPECT_DOUBLE_EQ(hours[i].at(2).to_number<double>(), past.front());
    EXPECT_DOUBLE_EQ(hours[i].at(3).to_number<double>(), past.back());
  }
  ASSERT_EQ(whole.at("windows").as_array().size(), 3U);
  for (const json::value& window : whole.at("windows").as_array()) {
    const auto length = static_cast<std::size_t>(window.at("hours").as_int64());
    double least = 1e9;
    std::size_t best = 0;
    for (std::size_t i = 0; i + length <= medians.size(); ++i) {
      double sum = 0;
      for (std::size_t j = i; j < i + length; ++j) {
        sum += medians[j];
      }
      if (sum / static_cast<double>(length) < least - 1e-6) {
        least = sum / static_cast<double>(length);
        best = i;
      }
    }
    const std::int64_t from = first + static_cast<std::int64_t>(best) * kHour;
    EXPECT_EQ(window.at("from").as_int64(), from);
    EXPECT_EQ(window.at("to").as_int64(), from + static_cast<std::int64_t>(length) * kHour);
    EXPECT_EQ(window.at("begin").as_string(), TimeZone().local(from));
    EXPECT_NEAR(window.at("g_kwh").to_number<double>(), least, 0.01);
    EXPECT_LE(window.at("g_kwh").to_number<double>(), window.at("next").to_number<double>());
  }
  // With three weeks the middle one counts; with two there is no forecast.
  oldest_ms = first - 21 * 24 * kHour;
  EXPECT_TRUE(data("grid/forecast").at("hours").at(0).at(1).is_number());
  oldest_ms = first - 14 * 24 * kHour;
  EXPECT_EQ(json::serialize(data("grid/forecast")),
            R"({"provider":null,"country":null,"hours":[],"windows":[]})");
  // Where it is the same at any time, no hour is better.
  oldest_ms = 0;
  scale = 0;
  const json::value flat = data("grid/forecast");
  EXPECT_EQ(flat.at("hours").as_array().size(), 48U);
  EXPECT_EQ(json::serialize(flat.at("windows")), "[]");
  answer_ = [](const auto& /*request*/) {
    return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "refused"));
  };
  EXPECT_EQ(get("/api/v1/grid/forecast", "ada").status, 503);
  make();  // a site without any TSDB
  EXPECT_EQ(json::serialize(data("grid/forecast").at("hours")), "[]");
}

TEST_F(FleetTest, KnowsTheBestHoursOfTheGrid) {
  const json::value grid = data("grid");
  EXPECT_EQ(json::serialize(grid.at("now")),
            fmt::format(R"({{"provider":"rte","country":"FR","g_kwh":50,"at":{}}})", kNow - kHour));
  EXPECT_EQ(grid.at("providers").as_array().size(), 2U);
  EXPECT_EQ(json::serialize(grid.at("best").at(1)), R"({"hours":4,"from":11,"to":15,"mean":20})");
  EXPECT_EQ(get("/api/v1/grid?from=5&to=4", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/grid?from=0", "ada").status, 400);
}

}  // namespace
}  // namespace ceems::api
