#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "api/tsdb/fleet.h"
#include "base/time/durations.h"
#include "store/reports.h"
#include "testing/eventually.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;
using tsdb::FakeTransport;

constexpr std::int64_t kRunMs = kHour;
/// Of the first of several runs, one each three hours.
constexpr std::int64_t kFirstRun = kNow - 20 * kDayMs;

/// A run of an hour with 4 GPUs that waited for ten minutes.
model::Unit run_of(const std::string& user, std::size_t number, double kwh) {
  model::Unit unit = job(user + "-" + std::to_string(number), user, "p-" + user);
  unit.name = "train-" + std::to_string(number);
  unit.started_at_ts = kFirstRun + static_cast<std::int64_t>(number) * 3 * kHour;
  unit.created_at_ts = unit.started_at_ts - 10 * kMinuteMs;
  unit.ended_at_ts = unit.started_at_ts + kRunMs;
  unit.started_at = std::to_string(unit.started_at_ts);
  unit.allocation =
      R"({"cpus":32,"gpus":4,"nodes":1,"mem":128e9,"time_limit":43200,"req_cpus":32})";
  unit.tags = R"({"partition":"gpu"})";
  unit.total_time_seconds = {
      {"walltime", 3600}, {"alloc_cputime", 32 * 3600}, {"alloc_gputime", 4 * 3600}};
  unit.metric(model::Metric::kAvgCpuUsage) = {{"global", 50}};
  unit.metric(model::Metric::kTotalCpuEnergyUsageKwh) = {{"total", kwh}};
  unit.metric(model::Metric::kTotalCpuEmissionsGms) = {{"rte_total", kwh * 50}};
  for (const model::Metric metric :
       {model::Metric::kTotalCpuEnergyUsageKwh, model::Metric::kTotalCpuEmissionsGms}) {
    unit.has_metric[static_cast<std::size_t>(metric)] = true;
  }
  return unit;
}

class UnitsCheck : public store::AnyDatabase, public ::testing::WithParamInterface<store::Backend> {
 protected:
  UnitsCheck() : AnyDatabase(GetParam()) {}

  void TearDown() override { server_.reset(); }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
    if (IsSkipped()) {
      return;
    }
    // From the newest to the oldest: 2, 1.9, ... 0.1.
    for (std::size_t i = 1; i <= 20; ++i) {
      units_.push_back(run_of("ada", i, 0.1 * static_cast<double>(i)));
    }
  }

  void make(AccountingOptions accounting = {}, Fleet* fleet = nullptr) {
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {window_ms_, window_ms_ + store::kMinute};
    window_ms_ += store::kMinute;
    update.units = units_;
    write(update);
    ApiOptions options;
    options.fleet = fleet;
    options.accounting = std::move(accounting);
    options.site.clusters = {{.id = "hpc-a", .manager = "slurm"}};
    options.site.currency = "EUR";
    auto server = ApiServer::create(std::move(options), db_->reader(), nullptr, registry_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  net::Response post(const std::string& body,
                     const std::string& user = "ada",
                     const std::string& query = "",
                     const std::string& type = "application/json") {
    auto request = request_for("POST", "/api/v1/units/check" + query,
                               {{"X-Grafana-User", user}, {"Content-Type", type}});
    request.body = body;
    net::Response response;
    server_->handle(request, response);
    return response;
  }
  json::value check(const std::string& body,
                    const std::string& user = "ada",
                    const std::string& query = "") {
    const auto response = post(body, user, query);
    EXPECT_EQ(response.status, 200) << response.body;
    return response.status == 200 ? json::parse(response.body).at("data").at(0) : json::value();
  }
  static std::string request(const std::string& members, const std::string& more = "") {
    return R"({"cluster_id":"hpc-a","request":{)" + members + "}" + more + "}";
  }

  /// Reports of the last runs of ada, with a finding in each.
  void store_reports(const std::string& rule, const std::string& numbers, std::size_t runs) {
    std::vector<store::ReportRow> rows;
    for (std::size_t i = 20; i > 20 - runs; --i) {
      const model::Unit& unit = units_.at(i - 1);
      store::ReportRow& row = rows.emplace_back();
      row.key = {"hpc-a", unit.uuid, unit.started_at_ts};
      row.ended_at_ts = unit.ended_at_ts;
      row.final = true;
      row.numbers = {.mem_peak = 28e9, .gpus = 4, .gpus_unused = unused_gpus_};
      row.findings = {{.rule = rule,
                       .severity = 3,
                       .confidence = 2,
                       .runs = 8,
                       .saves_kwh = 0.63,
                       .numbers = numbers}};
    }
    ASSERT_TRUE(db_->writer().store_reports(rows));
  }

  std::vector<model::Unit> units_;
  std::int64_t window_ms_ = kNow - kHour;
  std::size_t unused_gpus_ = 2;
  metrics::Registry registry_{"ceems_api_server", "the API server"};
  std::unique_ptr<ApiServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Databases,
                         UnitsCheck,
                         ::testing::Values(store::Backend::kSqlite, store::Backend::kPostgres));

const std::string kTrain =
    R"("name":"train-99","project":"p-ada","partition":"gpu","nodes":1,"cpus":32,"gpus":4)";

TEST_P(UnitsCheck, ExpectsWhatTheFamilyUsed) {
  make({.prices = {.gpu_hour = 0.5}});
  const json::value found = check(request(kTrain));
  EXPECT_EQ(found.at("basis"),
            json::parse(R"({"kind":"family","name":"train-#","runs":20,"days":90})"));
  const json::value& expected = found.at("expected");
  EXPECT_EQ(expected.at("wait_s").at("mid").to_number<double>(), 600);
  EXPECT_EQ(expected.at("elapsed_s").at("mid").to_number<double>(), 3600);
  EXPECT_EQ(expected.at("energy_kwh").at("mid").to_number<double>(), 1.05);
  EXPECT_EQ(expected.at("emissions_g").at("mid").to_number<double>(), 52.5);
  EXPECT_EQ(expected.at("cost").at("mid").to_number<double>(), 2);
  EXPECT_EQ(expected.at("cost").at("currency").as_string(), "EUR");
  // It grows from run to run, which the range knows.
  EXPECT_GE(expected.at("energy_kwh").at("high").to_number<double>(), 2);
  EXPECT_EQ(found.at("unused"), json::parse(R"({"cpus":16,"time_limit_s":39600})"));
  EXPECT_TRUE(found.at("suggestions").as_array().empty());
  EXPECT_TRUE(found.at("elsewhere").as_array().empty());
  EXPECT_FALSE(found.as_object().contains("held"));
  EXPECT_FALSE(found.as_object().contains("begin"));
  EXPECT_EQ(found.at("array_tasks").as_int64(), 1);
}

TEST_P(UnitsCheck, TakesAFamilyOfAnotherSizeInProportion) {
  make();
  const std::string half =
      R"("name":"train-1","project":"p-ada","partition":"gpu","nodes":1,"cpus":16,"gpus":2)";
  const json::value found = check(request(half));
  EXPECT_EQ(found.at("basis").at("kind").as_string(), "family");
  EXPECT_EQ(found.at("expected").at("energy_kwh").at("mid").to_number<double>(), 0.525);
  EXPECT_EQ(found.at("expected").at("elapsed_s").at("mid").to_number<double>(), 3600);
  EXPECT_FALSE(found.as_object().contains("unused"));
}

TEST_P(UnitsCheck, CountsRunsOnlyUpToTheTimeLimit) {
  make();
  const std::string job =
      R"("name":"train-1","project":"p-ada","partition":"gpu","nodes":1,"cpus":32,"gpus":4)";
  const json::value half = check(request(job + R"(,"time_limit_s":1800)"));
  EXPECT_EQ(half.at("expected").at("elapsed_s").at("mid").to_number<double>(), 1800);
  EXPECT_EQ(half.at("expected").at("energy_kwh").at("mid").to_number<double>(), 0.525);
  EXPECT_EQ(half.at("over_limit").to_number<int>(), 20);
  const json::value enough = check(request(job + R"(,"time_limit_s":3600)"));
  EXPECT_EQ(enough.at("expected").at("energy_kwh").at("mid").to_number<double>(), 1.05);
  EXPECT_FALSE(enough.as_object().contains("over_limit"));
}

TEST_P(UnitsCheck, TakesOtherRunsOfTheUserByGpuHours) {
  make();
  const json::value found =
      check(request(R"("name":"new","cpus":8,"gpus":1,"time_limit_s":86400)"));
  EXPECT_EQ(found.at("basis"), json::parse(R"({"kind":"user","name":"ada","runs":20,"days":90})"));
  // A quarter of the GPUs for twice the time.
  EXPECT_EQ(found.at("expected").at("energy_kwh").at("mid").to_number<double>(), 0.525);
  EXPECT_EQ(found.at("expected").at("elapsed_s").at("mid").to_number<double>(), 7200);
  // No run of theirs was without GPUs.
  const json::value none = check(request(R"("name":"new","cpus":8,"gpus":0)"));
  EXPECT_EQ(none.at("basis"), json::parse(R"({"kind":"none","name":"","runs":0,"days":90})"));
  EXPECT_EQ(none.at("expected"), json::object());
}

TEST_P(UnitsCheck, AnswersOthersOnlyWithNumbersOfSeveralPeople) {
  for (const char* user : {"u1", "u2", "u3", "u4"}) {
    units_.push_back(run_of(user, 150, 3.21987));
  }
  for (std::size_t i = units_.size() - 4; i < units_.size(); ++i) {
    units_[i].project = "shared";
  }
  make();
  const std::string job = request(R"("name":"train-1","project":"shared","partition":"gpu",)"
                                  R"("nodes":1,"cpus":32,"gpus":4)");
  EXPECT_EQ(check(job, "zoe").at("basis").at("kind").as_string(), "none");  // four people
  units_ = {run_of("u5", 155, 3.21987)};
  make();
  const json::value found = check(job, "zoe");
  EXPECT_EQ(found.at("basis"),
            json::parse(R"({"kind":"partition","name":"gpu","runs":5,"days":90})"));
  EXPECT_EQ(found.at("expected").at("energy_kwh").at("mid").to_number<double>(), 3.2);
  const std::string text = json::serialize(found);
  for (const char* secret : {"u1", "train", "ada", "3.21", "shared"}) {
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
  // One of them has most of the runs.
  units_.clear();
  for (std::size_t i = 100; i < 110; ++i) {
    units_.push_back(run_of("u1", i + 46, 1));
  }
  make();
  EXPECT_EQ(check(job, "zoe").at("basis").at("kind").as_string(), "none");
}

TEST_P(UnitsCheck, KnowsAProjectOnlyForItsMembers) {
  for (const char* user : {"u1", "u2", "u3", "u4", "u5"}) {
    units_.push_back(run_of(user, 10, 3));
    units_.back().project = "shared";
  }
  make();
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {window_ms_, window_ms_ + store::kMinute};
  update.users = std::vector<model::User>{{.name = "zoe", .projects = {"shared"}}};
  update.projects = std::vector<model::Project>{{.name = "shared", .users = {"u1", "zoe"}}};
  write(update);
  const std::string job =
      request(R"("name":"mine","project":"shared","nodes":1,"cpus":32,"gpus":4)");
  EXPECT_EQ(check(job, "zoe").at("basis").at("kind").as_string(), "project");
  EXPECT_EQ(check(job, "eve").at("basis").at("kind").as_string(), "none");
}

TEST_P(UnitsCheck, SuggestsWhatReportsFoundInTheFormOfTheRequest) {
  make();
  store_reports("gpu-unused", R"({"unused":2,"of":4,"keep":2,"left":2})", 10);
  const json::value found =
      check(request(kTrain, R"(,"directives":["--nodes=1","--gres=gpu:a100:4"])"));
  EXPECT_EQ(found.at("suggestions"),
            json::parse(R"([{"rule":"gpu-unused","text":"2 of 4 GPUs never ran a kernel. Asking )"
                        R"(for fewer starts sooner and leaves the project more of its budget.",)"
                        R"("lines":["--gres=gpu:a100:2"],"was":["--gres=gpu:a100:4"],)"
                        R"("saves":{"kwh":0.63},"seen_in":8}])"));
  EXPECT_EQ(found.at("unused").at("gpus").to_number<double>(), 2);
  EXPECT_EQ(found.at("unused").at("memory_bytes").to_number<double>(), 1e11);
  const json::value lsf = check(request(kTrain, R"(,"form":"lsf")"), "ada", "?lang=de");
  EXPECT_EQ(lsf.at("suggestions").at(0).at("lines"), json::parse(R"(["-gpu \"num=2/host\""])"));
  EXPECT_THAT(std::string(lsf.at("suggestions").at(0).at("text").as_string()),
              HasSubstr("2 von 4 GPUs"));
  // Others have no such job.
  EXPECT_TRUE(check(request(kTrain), "eve").at("suggestions").as_array().empty());
}

TEST_P(UnitsCheck, SuggestsNothingThatIsFollowedOrDone) {
  make();
  store_reports("mem-excess", R"({"peak":28e9,"reserved":128e9,"want":34e9})", 8);
  const auto suggested = [this](const std::string& memory) {
    return check(request(kTrain + R"(,"memory_bytes":)" + memory)).at("suggestions").as_array();
  };
  const json::array more = suggested("128e9");
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more.at(0).at("lines"), json::parse(R"(["--mem=35G"])"));
  EXPECT_TRUE(suggested("34e9").empty());
  // The last run no longer shows it.
  units_ = {run_of("ada", 21, 2)};
  make();
  store::ReportRow row{.key = {"hpc-a", "ada-21", units_[0].started_at_ts},
                       .ended_at_ts = units_[0].ended_at_ts,
                       .final = true};
  ASSERT_TRUE(db_->writer().store_reports({row}));
  EXPECT_TRUE(suggested("128e9").empty());
}

TEST_P(UnitsCheck, NamesWhereElseTheJobCouldRun) {
  make({.resources = {{.partition = "gpu", .gpus = 4, .gpu_hour = 1},
                      {.partition = "cpu", .audience = "everybody", .note = "starts soonest"}}});
  store_reports("good", "{}", 8);
  EXPECT_TRUE(check(request(kTrain)).at("elsewhere").as_array().empty());  // two GPUs are used
  unused_gpus_ = 4;
  units_.clear();
  for (std::size_t i = 21; i < 41; ++i) {
    units_.push_back(run_of("ada", i, 1));
  }
  make({.resources = {{.partition = "gpu", .gpus = 4, .gpu_hour = 1},
                      {.partition = "cpu", .audience = "everybody", .note = "starts soonest"}}});
  store_reports("good", "{}", 20);
  EXPECT_EQ(check(request(kTrain)).at("elsewhere"),
            json::parse(R"([{"partition":"cpu","text":"The job fits into the partition cpu, which )"
                        R"(has no GPUs. Runs like this one need none.","for":"everybody",)"
                        R"("note":"starts soonest"}])"));
}

TEST_P(UnitsCheck, SaysHowOftenRangesHeldAndWhenAStartIsGreener) {
  for (const char* user : {"u1", "u2", "u3", "u4", "u5"}) {
    for (std::size_t i = 0; i < 15; ++i) {
      units_.push_back(run_of(user, i, 5));
    }
  }
  // 300 g/kWh by day, 100 in the four hours after midnight.
  auto transport = std::make_unique<FakeTransport>([](const auto& asked) {
    const auto from = std::stoll(std::string(asked.first("start")));
    const auto to = std::stoll(std::string(asked.first("end")));
    std::string values;
    for (auto at = from; at <= to; at += 3600) {
      const auto hour = (at - 3600) / 3600 % 24;
      values += fmt::format("{}[{},\"{}\"]", values.empty() ? "" : ",", at,
                            hour < 5 && hour > 0 ? 100 : 300);
    }
    return FakeTransport::ok(
        R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":)"
        R"({"provider":"rte","country_code":"FR"},"values":[)" +
        values + "]}]}}");
  });
  ClusterTsdbs tsdbs;
  tsdbs["hpc-a"].client = std::make_unique<tsdb::Client>("http://t", std::move(transport), clock_);
  Fleet fleet(tsdbs, clock_);
  make({}, &fleet);
  clock_.advance(std::chrono::hours(12));
  json::value found;
  ASSERT_TRUE(testing::eventually([&] {  // it is read in the background
    found = check(request(kTrain, R"(,"form":"sbatch")"));
    return found.as_object().contains("held") && found.as_object().contains("begin");
  }));
  EXPECT_EQ(found.at("held").at("of").as_int64(), 60);  // the last ten of each family
  const json::value& begin = found.at("begin");
  EXPECT_EQ(begin.at("lines"), json::parse(R"(["--begin=01:00"])"));
  EXPECT_EQ(begin.at("start_ts").as_int64(), kNow + 25 * kHour);
  EXPECT_EQ(begin.at("g").to_number<double>(), 105);
  EXPECT_EQ(begin.at("now_g").to_number<double>(), 315);
  EXPECT_EQ(begin.at("basis").as_string(), "median");
  // Before the deadline there is no better hour.
  const std::string deadline = fmt::format(",\"deadline_ts\":{}", kNow + 20 * kHour);
  EXPECT_FALSE(check(request(kTrain, deadline)).as_object().contains("begin"));
  server_.reset();  // before the fleet that it uses
}

TEST_P(UnitsCheck, RefusesWhatItCannotRead) {
  make();
  EXPECT_EQ(post(request(kTrain), "ada", "", "text/plain").status, 400);
  EXPECT_EQ(post(request(kTrain), "ada", "", "application/x-www-form-urlencoded").status, 400);
  EXPECT_EQ(post("").status, 400);
  const auto unknown = post(R"({"cluster_id":"hpc-a","colour":1})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.body, HasSubstr("unknown member 'colour'"));
  EXPECT_THAT(post(R"({"cluster_id":"hpc-z"})").body, HasSubstr("no cluster 'hpc-z'"));
  auto none = request_for("POST", "/api/v1/units/check", {{"Content-Type", "application/json"}});
  none.body = request(kTrain);
  net::Response response;
  server_->handle(none, response);
  EXPECT_EQ(response.status, 401);
  EXPECT_TRUE(server_->needs_body(none));
}

TEST_P(UnitsCheck, IsNotMovedByHostileNames) {
  make();
  for (const char* name : {"train-1' OR '1'='1", "%", "train-_", "\\u0001", "<script>",
                           "train-1\\\";--", "\\ud83d\\ude00", "{unused}"}) {
    const json::value found = check(request(R"("cpus":1,"gpus":0,"name":")" + std::string(name) +
                                            R"(","project":"' OR 1=1 --","partition":"%")"));
    EXPECT_EQ(found.at("basis").at("kind").as_string(), "none") << name;
    EXPECT_EQ(found.at("expected"), json::object());
  }
}

}  // namespace
}  // namespace ceems::api
