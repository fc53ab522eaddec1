// What each manager puts in place of values that it cannot read is marked in the database and
// replaced by the first good values, with a restart of the server in between.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ingest/manager/local/local.h"
#include "ingest/manager/openstack/openstack_test_support.h"
#include "ingest/manager/slurm/slurm.h"
#include "ingest/updater/fake_tsdb.h"
#include "store/test_database.h"

namespace ceems::ingest {
namespace {

constexpr std::int64_t kStandInsHour = 3'600'000;

/// A server with a database: manager and database are new after restart().
class StandIns : public store::AnyDatabase {
 protected:
  using Make = std::function<std::unique_ptr<ResourceManager>()>;

  void begin(Make make) {
    make_ = std::move(make);
    restart();
  }
  void restart() {
    open();
    manager_ = make_();
    manager_->restore_names(db_->writer().account_names("hpc").value());
  }
  /// Fetches and stores the window from one hour after the start of kWindow to the next.
  void run_hour(int hour) {
    const model::Window window{.start_ms = kWindow.start_ms + hour * kStandInsHour,
                               .end_ms = kWindow.start_ms + (hour + 1) * kStandInsHour};
    auto units = manager_->fetch_units(window, {});
    ASSERT_TRUE(units) << units.error().message;
    auto update = store::update(window.start_ms, window.end_ms, std::move(*units));
    for (auto& unit : update.units) {
      unit.resource_manager = "any";
    }
    const auto report = db_->writer().write(update);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->skipped, 0U);
  }
  std::string stored(const std::string& column, const std::string& uuid) {
    return text("SELECT " + column + " FROM units WHERE uuid='" + uuid + "'");
  }

 private:
  Make make_;
  std::unique_ptr<ResourceManager> manager_;
};

struct JobsOfSlurm {
  std::vector<SlurmJob> in_window, by_id;
  std::vector<std::string> asked;
};

class SlurmWithoutNames final : public SlurmSource {
 public:
  explicit SlurmWithoutNames(JobsOfSlurm& all) : all_(all) {}
  Result<> jobs(model::Window /*window*/, const JobSink& job, std::stop_token /*stop*/) override {
    for (const auto& one : all_.in_window) {
      job(one);
    }
    return {};
  }
  Result<> jobs_by_id(const std::vector<std::string>& ids,
                      const JobSink& job,
                      std::stop_token /*stop*/) override {
    all_.asked.insert(all_.asked.end(), ids.begin(), ids.end());
    for (const auto& one : all_.by_id) {
      job(one);
    }
    return {};
  }
  Result<std::set<Membership>> associations(std::stop_token /*stop*/) override {
    return std::set<Membership>();
  }
  Result<ProjectLeads> coordinators(std::stop_token /*stop*/) override { return ProjectLeads(); }

 private:
  JobsOfSlurm& all_;
};

TEST_F(StandIns, OfSlurmAreOwnersWithANumber) {
  const auto job = [](const std::string& id, const std::string& user, bool ended) {
    SlurmJob made;
    made.id = id;
    made.user = user;
    made.group = user == "1001" ? "100" : "phys";
    made.account = "fluids";
    made.allocation.cpus = 2;
    made.start_ms = kWindow.start_ms;
    made.state = ended ? "COMPLETED" : "RUNNING";
    if (ended) {
      made.end_ms = kWindow.start_ms + kStandInsHour / 2;
    }
    return made;
  };
  JobsOfSlurm jobs;
  jobs.in_window = {job("1", "1001", true), job("2", "1001", false), job("3", "ada", false)};
  begin(
      [&jobs] { return make_slurm("hpc", std::make_unique<SlurmWithoutNames>(jobs), TimeZone()); });
  run_hour(0);
  EXPECT_EQ(stored("username", "1"), "1001");
  EXPECT_TRUE(stored("allocation", "1").ends_with(R"("nodes":0,"stand_ins":["owner"]})"));
  EXPECT_EQ(stored("allocation", "3").find("stand_ins"), std::string::npos);
  const std::string times = stored("total_time_seconds", "1");

  restart();
  // The names are back, except for a moment in which a job that had one has none.
  jobs.in_window = {job("2", "ada", false), job("3", "1001", false)};
  jobs.by_id = {job("1", "ada", true)};
  run_hour(1);
  EXPECT_EQ(jobs.asked, (std::vector<std::string>{"1"}));
  for (const char* uuid : {"1", "2", "3"}) {
    EXPECT_EQ(stored("username||' '||groupname", uuid), "ada phys") << uuid;
    EXPECT_EQ(stored("allocation", uuid).find("stand_ins"), std::string::npos) << uuid;
    EXPECT_EQ(text("SELECT username FROM ceems_unit_facts WHERE uuid='" + std::string(uuid) + "'"),
              "ada");
  }
  EXPECT_EQ(stored("total_time_seconds", "1"), times) << "no time is counted twice";
  EXPECT_EQ(stored("ended_at_ts-started_at_ts", "1"), "1800000");

  restart();
  jobs.asked.clear();
  jobs.in_window = {job("3", "ada", false)};
  run_hour(2);
  EXPECT_EQ(jobs.asked, std::vector<std::string>{}) << "nothing is left to ask for";
}

TEST_F(StandIns, OfOpenstackAreFlavorsThatWereDeleted) {
  CloudFixture cloud;
  const auto server = [](const std::string& id, bool known) {
    return R"({"id":")" + id +
           R"(","status":"ACTIVE","user_id":"u1","tenant_id":"p1","created":"2026-01-01T07:00:00Z",)"
           R"("updated":"2026-01-01T07:00:10Z","OS-SRV-USG:launched_at":"2026-01-01T08:00:00.0",)"
           R"("flavor":{"id":"f1")" +
           (known ? R"(,"vcpus":4,"ram":100,"disk":1,"swap":0,"original_name":"g"})"
                  : std::string("}")) +
           "}";
  };
  cloud.cloud.set("http://nova/v2.1/flavors/detail", R"({"flavors":[]})");
  cloud.live = {server("a", false)};
  begin([&cloud] {
    return make_openstack("hpc", cloud.options, std::make_unique<FakeTransport>(cloud.cloud),
                          TimeZone(), cloud.clock);
  });
  run_hour(0);
  EXPECT_EQ(stored("allocation", "a"),
            R"({"disk":0,"extra_specs":{},"mem":0,"name":"","stand_ins":["allocation"],)"
            R"("swap":0,"vcpus":0})");
  EXPECT_EQ(stored("total_time_seconds", "a"),
            R"({"alloc_cpumemtime":0,"alloc_cputime":0,"alloc_gpumemtime":0,"alloc_gputime":0,)"
            R"("walltime":3600})");

  restart();
  cloud.live = {server("a", true)};
  run_hour(1);
  const std::string good = R"({"disk":1,"extra_specs":{},"mem":100,"name":"g","swap":0,"vcpus":4})";
  EXPECT_EQ(stored("allocation", "a"), good);
  EXPECT_EQ(stored("total_time_seconds", "a"),
            R"({"alloc_cpumemtime":720000,"alloc_cputime":28800,"alloc_gpumemtime":0,)"
            R"("alloc_gputime":0,"walltime":7200})")
      << "the hour before counts by the flavor, too";
  EXPECT_EQ(text("SELECT cpus FROM ceems_unit_facts"), "4000");

  restart();  // which forgets the flavors that were seen
  cloud.live = {server("a", false)};
  run_hour(2);
  EXPECT_EQ(stored("allocation", "a"), good);
  EXPECT_EQ(stored("total_time_seconds", "a"),
            R"({"alloc_cpumemtime":1080000,"alloc_cputime":43200,"alloc_gpumemtime":0,)"
            R"("alloc_gputime":0,"walltime":10800})");
}

TEST_F(StandIns, OfCgroupsAreOwnerAndAllocationThatTheTsdbLacks) {
  FakeTsdb tsdb;
  const std::map<std::string, std::string> labels{{"manager", "cgroup"},
                                                  {"hostname", "n1"},
                                                  {"cgrouphostname", ""},
                                                  {"uuid", "a.service"},
                                                  {"instance", "n1:9010"}};
  const auto add = [&](const std::string& metric, auto with, double value, int from, int until) {
    std::vector<tsdb::Sample> samples;
    for (std::int64_t t = from * kStandInsHour; t <= until * kStandInsHour; t += 15'000) {
      samples.push_back({kWindow.start_ms + t, value});
    }
    tsdb.add(metric, with, samples);
  };
  add("ceems_compute_unit_start_time_seconds", labels, static_cast<double>(kWindow.start_ms) / 1000,
      0, 2);
  tsdb.now_ms = kWindow.start_ms + 3 * kStandInsHour;
  begin([&tsdb] { return make_local({}, tsdb.client(), TimeZone()); });
  run_hour(0);
  EXPECT_EQ(stored("username||allocation", "a.service"),
            R"(unknown{"cpus":0,"gpus":0,"mem":0,"stand_ins":["allocation","owner"]})");

  restart();
  auto info = labels;
  info["username"] = "ada";
  add("ceems_compute_unit_info", info, 1, 1, 2);
  add("ceems_compute_unit_cpus", labels, 2, 1, 2);
  add("ceems_compute_unit_memory_total_bytes", labels, 1 << 30, 1, 2);
  run_hour(1);
  EXPECT_EQ(stored("username||allocation", "a.service"),
            R"(ada{"cpus":2,"gpus":0,"mem":1073741824})");
  EXPECT_EQ(stored("json_extract(total_time_seconds,'$.alloc_cputime')/2", "a.service"),
            stored("json_extract(total_time_seconds,'$.walltime')", "a.service"));
}

}  // namespace
}  // namespace ceems::ingest
