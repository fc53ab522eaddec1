// Idle units, budgets, prices and the bill through the API.
#include <atomic>

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "api/tsdb/fleet.h"
#include "base/time/durations.h"
#include "store/nodes.h"
#include "testing/eventually.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ceems::testing::eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using tsdb::FakeTransport;

constexpr std::int64_t kDecember = kNow - 31 * kDayMs;
constexpr std::int64_t kUnitsOfKwh = 1'000'000'000;

std::string vector_of(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string result;
  for (const auto& [uuid, value] : values) {
    result += fmt::format("{}{{\"metric\":{{\"uuid\":\"{}\"}},\"value\":[0,\"{}\"]}}",
                          result.empty() ? "" : ",", uuid, value);
  }
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
}

/// JSON as the server writes it; boost::json writes numbers with exponents.
std::string text_of(const json::value& value) {
  if (value.is_double()) {
    return fmt::to_string(value.as_double());
  }
  std::string text;
  if (const auto* array = value.if_array()) {
    for (const json::value& item : *array) {
      text += (text.empty() ? "" : ",") + text_of(item);
    }
    return "[" + text + "]";
  }
  if (const auto* object = value.if_object()) {
    for (const auto& [key, item] : *object) {
      text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", std::string(key), text_of(item));
    }
    return "{" + text + "}";
  }
  return json::serialize(value);
}

class Insight : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    for (const std::string cluster : {"hpc-a", "hpc-b"}) {
      auto transport = std::make_unique<FakeTransport>(
          [this, cluster](const auto& request) { return answer(cluster, request); });
      transports_.push_back(transport.get());
      tsdbs_[cluster].client =
          std::make_unique<tsdb::Client>("http://t", std::move(transport), clock_);
    }
    restart();
  }

  /// ada's unit 10 of hpc-a has run since kNow - 1 h and has been idle for two hours, which cannot
  /// be; 11 and 12 are of bob.
  Result<net::ClientResponse> answer(const std::string& cluster,
                                     const FakeTransport::Request& request) const {
    const std::string query = request.first("query");
    if (query == "price") {
      ++priced_;
      EXPECT_TRUE(eventually([this] { return !hangs_; }));
    }
    if (!nonsense_.empty()) {
      return nonsense_ == "html" ? FakeTransport::ok("<html>log in</html>")
                                 : FakeTransport::ok(vector_of({{"10", nonsense_}}));
    }
    if (down_ || (cluster == "hpc-b" && other_down_)) {
      return fail(ErrorCode::kUnavailable, "http://secret: refused");
    }
    if (request.path.ends_with("_range")) {
      return FakeTransport::ok(R"({"status":"success","data":{"resultType":"matrix","result":[)" +
                               range_ + "]}}");
    }
    if (cluster != "hpc-a") {
      return FakeTransport::ok(vector_of({}));
    }
    if (query.contains("[2d:5m]")) {
      return FakeTransport::ok(
          vector_of({{"11", std::to_string((kNow + kHour) / 1000)}, {"10", "1"}}));
    }
    if (query.contains("idle_seconds")) {
      return FakeTransport::ok(vector_of({{"10", "1"}, {"11", "0.995"}, {"1", "1"}, {"", "1"}}));
    }
    return FakeTransport::ok(vector_of({{"11", "600"}, {"10", "NaN"}}));
  }

  void restart() {
    ApiOptions options;
    options.fleet = &fleet_;
    options.roles.support = {"sue"};
    options.site = site_;
    options.site.clusters = {{.id = "hpc-a", .manager = "slurm", .series = true},
                             {.id = "hpc-b", .manager = "slurm", .series = true}};
    options.accounting = accounting_;
    make(std::move(options));
  }

  json::value data(const std::string& target, const std::string& user = "root") {
    const auto response = get("/api/v1/" + target, user);
    EXPECT_EQ(response.status, 200) << target << response.body;
    return json::parse(response.body).at("data");
  }

  /// Bob's unit 11 in partition gpu, and 12 in partition service.
  void write_idle_units() {
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {kNow, kNow + 2 * kHour};
    for (const std::string uuid : {"11", "12"}) {
      model::Unit unit = job(uuid, "bob", "fluids");
      unit.started_at_ts = kNow - kHour;
      unit.ended_at_ts = 0;
      unit.ended_at = "Unknown";
      unit.state = "RUNNING";
      unit.allocation =
          uuid == "11" ? R"({"cpus":8,"gpus":2,"mem":1,"nodes":1,"array_job":7,"array_task":4})"
                       : R"({"cpus":8,"gpus":2,"mem":1,"nodes":1})";
      unit.tags = uuid == "11" ? R"({"partition":"gpu"})" : R"({"partition":"service"})";
      update.units.push_back(unit);
    }
    write(update);
    clock_.advance(std::chrono::hours(2));
  }

  void write_days() {
    ASSERT_TRUE(db_->writer().lead().value());
    for (int number = 0; number < 31; ++number) {
      const std::int64_t day = kDecember + number * kDayMs;
      ASSERT_TRUE(db_->writer().write_nodes(
          {.cluster_id = "hpc-a",
           .start_ms = day,
           .end_ms = day + kDayMs,
           .day_ms = day,
           .energies = {{.node = "n1",
                         .energy = 10 * kUnitsOfKwh,
                         .idle = 2 * kUnitsOfKwh,
                         .system = kUnitsOfKwh,
                         .unallocated = kUnitsOfKwh,
                         .covered_ms = kDayMs}},
           .facts = {{.node = "n1", .node_class = "big", .source = "redfish"}}}));
    }
  }

  SiteOptions site_ = {.currency = "EUR"};
  AccountingOptions accounting_;
  std::string range_;
  bool down_ = false;
  bool other_down_ = false;              ///< hpc-b's alone
  std::string nonsense_;                 ///< every answer is a page or has this value
  std::atomic<bool> hangs_ = false;      ///< questions for prices wait
  mutable std::atomic<int> priced_ = 0;  ///< how many there were
  std::vector<FakeTransport*> transports_;
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
};

TEST_F(Insight, ListsUnitsThatDoNothing) {
  write_idle_units();
  accounting_.idle_exempt_partitions = {"gpu"};
  restart();
  const json::value rows = data("insight/idle/admin");
  // Unit 1 has ended; an unknown one has no owner.
  ASSERT_EQ(rows.as_array().size(), 2U);
  EXPECT_EQ(text_of(rows.at(0)),
            fmt::format(R"({{"cluster_id":"hpc-a","uuid":"11","array":"7_4","user":"bob",)"
                        R"("project":"fluids",)"
                        R"("partition":"gpu","since_ts":{},"idle_s":3600,"cpus":8,"gpus":2,)"
                        R"("watts":600,"kwh":0.6,"exempt":"partition"}})",
                        kNow + kHour));
  EXPECT_EQ(rows.at(1).at("since_ts").as_int64(), kNow - kHour);  // since it began
  EXPECT_TRUE(rows.at(1).at("watts").is_null());
  EXPECT_TRUE(rows.at(1).at("kwh").is_null());
  EXPECT_TRUE(rows.at(1).at("exempt").is_null());
  EXPECT_FALSE(rows.at(1).as_object().contains("array"));
  EXPECT_FALSE(rows.at(1).as_object().contains("cost"));  // there is no price
  EXPECT_EQ(data("insight/idle", "ada").as_array().size(), 1U);
  EXPECT_EQ(data("insight/idle", "sue").as_array().size(), 0U);
  EXPECT_EQ(data("insight/idle?cluster_id=hpc-b").as_array().size(), 0U);
  EXPECT_EQ(data("insight/idle?project=optics").as_array().size(), 0U);
  EXPECT_EQ(text_of(data("insight/idle/admin")), text_of(rows));
}

TEST_F(Insight, AsksLittleOfTheTsdb) {
  write_idle_units();
  data("insight/idle/admin");
  EXPECT_LE(transports_[0]->requests().size(), 4U);
  EXPECT_LE(transports_[1]->requests().size(), 4U);
  const std::size_t before = transports_[0]->requests().size();
  data("insight/idle", "ada");
  EXPECT_EQ(transports_[0]->requests().size(), before);
  down_ = true;
  clock_.advance(std::chrono::minutes(2));
  const auto response = get("/api/v1/insight/idle/admin", "root");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, Not(HasSubstr("secret")));
}

TEST_F(Insight, AClusterWhoseTsdbFailsDoesNotHideTheOthers) {
  write_idle_units();
  const auto missing = [this](const std::string& path) {
    return text_of(json::parse(get("/api/v1/" + path, "root").body).at("missing"));
  };
  EXPECT_EQ(missing("insight/idle/admin"), "[]");
  other_down_ = true;
  clock_.advance(std::chrono::minutes(2));
  EXPECT_EQ(data("insight/idle/admin").as_array().size(), 2U);
  const std::string other = R"([{"cluster_id":"hpc-b","reason":"unavailable"}])";
  EXPECT_EQ(missing("insight/idle/admin"), other);
  EXPECT_EQ(missing("insight/idle/admin?cluster_id=hpc-a"), "[]");
  EXPECT_EQ(get("/api/v1/insight/idle/admin?cluster_id=hpc-b", "root").status, 503);
  EXPECT_EQ(missing("insight/nodes/admin"), other) << "the signs of broken hardware";
}

TEST_F(Insight, NonsenseOfATsdbIsItsFailure) {
  write_idle_units();
  for (const std::string nonsense : {"html", "1e308", "-1e308", "9e15"}) {
    nonsense_ = nonsense;
    clock_.advance(std::chrono::minutes(2));
    const auto response = get("/api/v1/insight/idle/admin", "root");
    EXPECT_EQ(response.status, nonsense == "html" ? 503 : 200) << nonsense;
    EXPECT_EQ(response.body.contains("time-series server"), nonsense == "html") << response.body;
  }
}

TEST_F(Insight, AddsUpIdlePowerAndWhatWasNotUsed) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + kHour};
  int number = 100;
  struct Run {
    const char* partition = "";
    std::optional<double> idle = {}, not_used = {};
  };
  // Most idle power belongs to well-run jobs. One job is not measured, two are from before.
  for (const Run& run : {Run{"gpu", 3, 0.25}, Run{"gpu", 1, 0.25}, Run{"cpu", 1, 1}, Run{"cpu"},
                         Run{"old", 2}, Run{"older", 4}}) {
    model::Unit unit = job(std::to_string(number++), "bob", "fluids");
    unit.started_at_ts = kNow;
    unit.ended_at_ts = kNow + kHour / 2;
    unit.tags = fmt::format(R"({{"partition":"{}"}})", run.partition);
    store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", 8}});
    unit.idle_kwh = run.idle;
    unit.not_used_kwh = run.not_used;
    update.units.push_back(unit);
  }
  write(update);
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(text_of(data("insight/idle/admin?by=partition&cluster_id=hpc-a&from=1767225600")),
            R"([{"value":"cpu","units":2,"kwh":16,"measured_kwh":8,"idle_kwh":1,"share":0.125,)"
            R"("not_used_of_kwh":8,"not_used_kwh":1,"not_used_share":0.125},)"
            R"({"value":"gpu","units":2,"kwh":16,"measured_kwh":16,"idle_kwh":4,"share":0.25,)"
            R"("not_used_of_kwh":16,"not_used_kwh":0.5,"not_used_share":0.03125},)"
            R"({"value":"older","units":1,"kwh":8,"measured_kwh":8,"idle_kwh":4,"share":0.5,)"
            R"("not_used_of_kwh":0,"not_used_kwh":null,"not_used_share":null},)"
            R"({"value":"old","units":1,"kwh":8,"measured_kwh":8,"idle_kwh":2,"share":0.25,)"
            R"("not_used_of_kwh":0,"not_used_kwh":null,"not_used_share":null}])");
  EXPECT_EQ(data("insight/idle?by=partition&from=1767225600", "eve").as_array().size(), 0U);
  for (const char* wrong : {"by=x", "by=user&from=x", "by=user&from=9&to=8", "by=user&from=0"}) {
    EXPECT_EQ(get(std::string("/api/v1/insight/idle/admin?") + wrong, "root").status, 400) << wrong;
  }
}

TEST_F(Insight, ShowsBudgetsOfTheCaller) {
  store::ClusterUpdate update = ended_unit("200", 6);
  store::with(update.units.front(), model::Metric::kTotalCpuEmissionsGms, {{"rte_total", 300}});
  write(update);
  clock_.advance(std::chrono::hours(12));
  accounting_.budgets = {{.cluster = "hpc-a", .project = "fluids", .amount = 10},
                         {.project = "fluids", .unit = BudgetUnit::kKgCo2, .amount = 1},
                         {.cluster = "hpc-b", .project = "optics", .amount = 1},
                         {.project = "fluids", .unit = BudgetUnit::kCost, .amount = 100},
                         {.project = "*", .amount = 1000}};
  site_.budgets = {{.cluster = "hpc-a", .project = "optics", .kwh_per_month = 7}};
  restart();
  const json::value rows = data("insight/budgets", "ada");
  ASSERT_EQ(rows.as_array().size(), 3U);
  EXPECT_EQ(text_of(rows.at(0)),
            fmt::format(R"({{"project":"fluids","cluster_id":"hpc-a","unit":"kwh","amount":10,)"
                        R"("used":6,"used_share":0.6,"burn":0,"forecast":[6,6],"period":"2026",)"
                        R"("from_ts":{},"to_ts":{},"warn":[0.5,0.8,1],"state":"warn_0.5"}})",
                        kNow, kNow + 365 * kDayMs));
  EXPECT_EQ(text_of(rows.at(1).at("used")), "0.3");
  EXPECT_TRUE(rows.at(1).at("cluster_id").is_null());
  // What it cost is not known without a price.
  EXPECT_TRUE(rows.at(2).at("used").is_null());
  EXPECT_EQ(rows.at(2).at("state").as_string(), "unknown");
  EXPECT_EQ(data("insight/budgets", "eve").as_array().size(), 2U);
  // The target of the site, which counts all projects, is for those who see the site.
  EXPECT_EQ(data("insight/budgets", "sue").as_array().size(), 6U);
  const json::value site = data("insight/budgets?project=*", "sue");
  ASSERT_EQ(site.as_array().size(), 1U);
  EXPECT_EQ(text_of(site.at(0).at("used")), "6");
  EXPECT_TRUE(data("insight/budgets?project=*", "ada").as_array().empty());
  EXPECT_EQ(data("insight/budgets?project=optics&cluster_id=hpc-a").as_array().size(), 1U);
  EXPECT_EQ(get("/api/v1/insight/budgets?format=xml", "ada").status, 400);
  EXPECT_THAT(get("/api/v1/insight/budgets?format=sacctmgr", "ada").body,
              HasSubstr("name=fluids cluster=hpc-a set GrpTRESMins=energy=14400000\n"));
  EXPECT_THAT(get("/metrics").body,
              HasSubstr("ceems_project_budget_used_ratio{cluster=\"hpc-a\",project=\"fluids\","
                        "unit=\"kwh\"} 0.6\n"));
}

TEST_F(Insight, KnowsWhatUnitsCostAtTheirTime) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + kHour};
  model::Unit unit = job("300", "bob", "fluids");
  unit.started_at_ts = kNow - kHour / 2;
  unit.ended_at_ts = kNow + kHour / 2;
  store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", 10}});
  update.units.push_back(unit);
  write(update);
  clock_.advance(std::chrono::hours(2));
  accounting_.prices.rules = {{.otherwise = 0.1}, {.from_ms = kNow, .otherwise = 0.3}};
  accounting_.prices.pue = 1.5;
  restart();
  EXPECT_EQ(text_of(data("units/list/admin?uuid=300&columns=cost").at("rows")), "[[3]]");
  EXPECT_EQ(text_of(data("units/summary/admin?uuid=300").at("cost")), "3");
  // The day counts with its own price.
  EXPECT_EQ(text_of(data("usage/series/admin?from=1767225600&to=1767232800&field=cost"
                         "&cluster_id=hpc-a&user=bob")
                        .at("totals")),
            R"({"cost":[4.5]})");
  EXPECT_TRUE(data("site").at(0).at("priced").as_bool());
}

TEST_F(Insight, KnowsWhatDaysCostByASeriesOfPrices) {
  constexpr int kDays = 6;
  for (int day = 0; day < kDays; ++day) {
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {kNow + day * kDayMs, kNow + (day + 1) * kDayMs};
    model::Unit unit = job(std::to_string(300 + day), "bob", "fluids");
    unit.started_at_ts = update.window.start_ms;
    unit.ended_at_ts = update.window.start_ms + kHour / 2;
    store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", 10}});
    update.units.push_back(unit);
    write(update);
  }
  clock_.advance(std::chrono::hours(24 * kDays));
  range_ = "";
  accounting_.prices.rules = {{.otherwise = 0.2, .query = "price", .series_cluster = "hpc-a"}};
  restart();
  EXPECT_EQ(text_of(data("usage/series/admin?from=1767225600&to=1767743999&field=cost"
                         "&cluster_id=hpc-a&user=bob")
                        .at("values")),
            R"({"cost":[[2,2,2,2,2,2]]})");
}

TEST_F(Insight, NoWorkerWaitsForPricesOfATsdb) {
  const auto waits = [this](const std::string& target) {
    return server_->waits(request_for("GET", "/api/v1/" + target, {}));
  };
  const std::vector<std::string> priced = {
      "units/list",    "units/list/admin",   "units/summary",   "units/summary/admin",
      "usage/series?", "usage/series/admin", "insight/budgets", "usage/series?step=day&field=cost"};
  for (const std::string& target : priced) {
    EXPECT_FALSE(waits(target)) << target;
  }
  accounting_.budgets = {{.project = "fluids", .unit = BudgetUnit::kCost, .amount = 100}};
  accounting_.prices.rules = {{.otherwise = 0.1},
                              {.from_ms = kNow, .query = "price", .series_cluster = "hpc-a"}};
  restart();
  for (const std::string& target : priced) {
    EXPECT_TRUE(waits(target)) << target;
  }
  for (const std::string target :
       {"units", "units/verify", "whoami", "usage/current", "projects"}) {
    EXPECT_FALSE(waits(target)) << target;
  }
}

TEST_F(Insight, MetricsDoNotWaitForPricesOfATsdb) {
  write(ended_unit("300", 10));
  clock_.advance(std::chrono::hours(2));
  accounting_.budgets = {{.project = "fluids", .unit = BudgetUnit::kCost, .amount = 100}};
  accounting_.prices.rules = {{.otherwise = 0.1, .query = "price", .series_cluster = "hpc-a"}};
  restart();
  hangs_ = true;
  const std::string gauge = "ceems_project_budget_used_ratio{";
  EXPECT_THAT(get("/metrics").body, Not(HasSubstr(gauge)));
  EXPECT_TRUE(eventually([this] { return priced_ == 1; }));
  clock_.advance(std::chrono::minutes(6));
  EXPECT_THAT(get("/metrics").body, Not(HasSubstr(gauge)));
  EXPECT_EQ(priced_, 1) << "one thread asks at a time";
  hangs_ = false;
  EXPECT_TRUE(eventually([&] { return get("/metrics").body.contains(gauge); }));
}

TEST_F(Insight, ComparesNodesWithTheBill) {
  write_days();
  ASSERT_TRUE(store::import_bills({.directory = dir_.path().string(), .url = url_},
                                  {{.cluster_id = "",
                                    .start_ms = kDecember,
                                    .end_ms = kNow,
                                    .energy = 500 * kUnitsOfKwh,
                                    .cost = "120.5",
                                    .currency = "EUR"}},
                                  false));
  range_ = R"({"metric":{},"values":[[1,"40"],[2,"60"]]},{"metric":{"x":"y"},"values":[[1,"20"]]})";
  accounting_.other_power = "pdu_watts";
  accounting_.billed = true;
  site_.pue = 1.2;
  restart();
  const json::value rows = data("insight/bill/admin?month=2025-12");
  std::string parts;
  for (const json::value& row : rows.as_array()) {
    parts += fmt::format("{}={} ", std::string(row.at("part").as_string()), text_of(row.at("kwh")));
  }
  // 60 W on average for 744 hours.
  EXPECT_EQ(parts,
            "active=186 reserved_idle=62 system=31 unallocated=31 nodes=310 other=44.64 "
            "cooling=70.928 unexplained=74.432 meter=500 ");
  EXPECT_EQ(text_of(rows.at(0)), R"({"part":"active","kwh":186,"share":0.372,"how":"measured",)"
                                 R"("billed_kwh":218.5314685})");
  EXPECT_EQ(rows.at(4).at("days").as_array().size(), 31U);
  EXPECT_EQ(text_of(rows.at(4).at("days").at(0)), fmt::format("[{},6,2,1,1]", kDecember));
  EXPECT_EQ(text_of(rows.at(4).at("coverage")), "1");
  EXPECT_EQ(text_of(rows.at(8).at("bills").at(0).at("cost")), "120.5");
  EXPECT_TRUE(rows.at(8).at("bills").at(0).at("kgco2_market").is_null());
  EXPECT_EQ(rows.at(8).at("period_start").as_int64(), kDecember);
  // The site's bill is not one of either cluster, and no other month has one.
  EXPECT_TRUE(data("insight/bill/admin?month=2025-12&cluster_id=hpc-b").at(8).at("kwh").is_null());
  EXPECT_TRUE(data("insight/bill/admin").at(8).at("kwh").is_null());
  for (const auto& request : transports_[0]->requests()) {
    EXPECT_EQ(request.first("query"), "avg_over_time((pdu_watts)[1h:1m])");
  }
  EXPECT_EQ(get("/api/v1/insight/bill/admin?month=2025-13", "root").status, 400);
  EXPECT_EQ(get("/api/v1/insight/bill/admin?month=12", "root").status, 400);
  EXPECT_EQ(get("/api/v1/insight/bill/admin", "sue").status, 403);
  EXPECT_EQ(get("/api/v1/insight/bill/admin", "ada").status, 403);
  // Without the TSDB the table shows what is known.
  down_ = true;
  clock_.advance(std::chrono::minutes(2));
  EXPECT_TRUE(data("insight/bill/admin?month=2025-12").at(5).at("kwh").is_null());
}

}  // namespace
}  // namespace ceems::api
