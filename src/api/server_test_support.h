#pragma once

// An API server over a database of two clusters, for tests.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "api/login/tokens.h"
#include "api/server.h"
#include "api/test_request.h"
#include "store/test_database.h"

namespace ceems::api {

using store::kHour;
using store::kNow;

class FakeSeries final : public SeriesSource {
 public:
  Result<std::vector<Series>> series(const SeriesRequest& request) override {
    asked = fmt::format("{} {} {} {}", request.cluster_id, request.uuid, request.from_ms - kNow,
                        request.to_ms - kNow);
    lives = request.lives;
    charts = fmt::format("{} by {} {} {}", fmt::join(request.charts, "+"),
                         kChartBys.at(static_cast<std::size_t>(request.by)), request.max_points,
                         request.max_lines);
    if (refuses) {
      return fail(ErrorCode::kPermissionDenied, "no label");
    }
    if (fails) {
      return fail(ErrorCode::kUnavailable, "http://secret:9090: connection refused");
    }
    if (!request.charts.empty()) {
      return std::vector<Series>{
          {.name = "gpu_use",
           .unit = "percent",
           .points = {{kNow, 12.34567}},
           .labels = {{"hostname", "n1"}, {"index", "0"}, {"gpuuuid", "GPU-1"}},
           .limit = 100},
          {.name = "ipc",
           .unit = "",
           .points = {},
           .none = NoLine::kTooShort,
           .collector = "perf"}};
    }
    return std::vector<Series>{
        {.name = "cpu", .unit = "cores", .points = {{kNow, 1.5}, {kNow + 1, 2}}}};
  }
  std::string asked;
  gate::SharedId lives;
  std::string charts;
  bool fails = false;
  bool refuses = false;
};

inline model::Unit job(const std::string& uuid,
                       const std::string& user,
                       const std::string& project) {
  model::Unit unit;
  unit.resource_manager = "slurm";
  unit.uuid = uuid;
  unit.name = "<b>" + uuid;
  unit.project = project;
  unit.groupname = "grp";
  unit.username = user;
  unit.created_at = "2025-12-31T23:00:00+0000";
  unit.created_at_ts = kNow - kHour;
  unit.started_at = "2025-12-31T23:00:00+0000";
  unit.started_at_ts = kNow - kHour;
  unit.ended_at = "2025-12-31T23:30:00+0000";
  unit.ended_at_ts = kNow - kHour / 2;
  unit.elapsed = "00:30:00";
  unit.state = "COMPLETED";
  unit.allocation = R"({"cpus":2})";
  unit.total_time_seconds = {{"walltime", 1800}, {"alloc_cputime", 3600}};
  unit.metric(model::Metric::kAvgCpuUsage) = {{"global", 41.25}};
  unit.has_metric[0] = true;
  return unit;
}

/// An update of hpc-a with a unit of bob's, which ran for half an hour and drew this energy.
inline store::ClusterUpdate ended_unit(const std::string& uuid, double kwh) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + kHour};
  model::Unit unit = job(uuid, "bob", "fluids");
  unit.started_at_ts = kNow;
  unit.ended_at_ts = kNow + kHour / 2;
  store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", kwh}});
  update.units.push_back(unit);
  return update;
}

class ServerTest : public store::AnyDatabase {
 protected:
  explicit ServerTest(store::Backend backend = store::Backend::kSqlite) : AnyDatabase(backend) {}

  /// The server ends before the members of derived fixtures, which it uses.
  void TearDown() override { server_.reset(); }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
    if (IsSkipped()) {
      return;
    }
    ASSERT_TRUE(db_->writer().write_admins("ceems", {"root", "ceems-int-svc"}));
    for (const std::string cluster : {"hpc-a", "hpc-b"}) {
      store::ClusterUpdate update;
      update.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
      update.window = {kNow - kHour, kNow};
      update.units = {job("1", "ada", "fluids"), job("2", "bob", "fluids"),
                      job("3", "eve", "optics"), job("4", "fluids:svc", "fluids"),
                      job("10", "ada", "fluids")};
      update.units.back().ended_at = "Unknown";
      update.units.back().ended_at_ts = 0;
      update.units.back().state = "RUNNING";
      update.users = std::vector<model::User>{{.name = "ada", .projects = {"fluids"}},
                                              {.name = "bob", .projects = {"fluids"}},
                                              {.name = "eve", .projects = {"optics"}},
                                              {.name = "fluids:svc", .projects = {"fluids"}}};
      update.projects = std::vector<model::Project>{
          {.name = "fluids",
           .users = cluster == "hpc-a" ? std::vector<std::string>{"ada", "bob"}
                                       : std::vector<std::string>{"bob"}},
          {.name = "optics", .users = {"eve"}}};
      write(update);
    }
    tokens_ = make_tokens();
    make({.tokens = tokens_.get()});
  }

  std::unique_ptr<login::Tokens> make_tokens(login::LoginOptions options = {}) {
    return std::make_unique<login::Tokens>(
        login::Tokens::Setup{.login = std::move(options),
                             .user_headers = {"X-Grafana-User"},
                             .open_writer = [this] { return db_->open_tokens(); }},
        db_->reader(), clock_);
  }

  void make(ApiOptions options = {}) {
    options.open_feedback = [this] { return db_->open_feedback(); };
    auto server = ApiServer::create(std::move(options), db_->reader(), &series_, registry_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  net::Response request(const std::string& method,
                        const std::string& target,
                        net::Headers headers = {}) {
    net::Response response;
    server_->handle(request_for(method, target, std::move(headers)), response);
    read_whole(response);
    return response;
  }
  net::Response get(const std::string& target, const std::string& user = "") {
    net::Headers headers;
    if (!user.empty()) {
      headers.emplace_back("X-Grafana-User", user);
    }
    return request("GET", target, headers);
  }
  std::string body(const std::string& target, const std::string& user) {
    return get("/api/v1/" + target, user).body;
  }
  static std::string header(const net::Response& response, std::string_view name) {
    const std::string* value = net::find_header(response.headers, name);
    return value == nullptr ? "(none)" : *value;
  }

  FakeSeries series_;
  metrics::Registry registry_{"ceems_api_server", "the API server"};
  std::unique_ptr<login::Tokens> tokens_;
  std::unique_ptr<ApiServer> server_;
};

}  // namespace ceems::api
