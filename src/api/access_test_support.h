#pragma once

// A server with people in every role, for the tests of who sees what.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/login/tokens.h"
#include "api/server.h"
#include "api/test_request.h"
#include "api/tsdb/fleet.h"
#include "report/stored.h"
#include "store/reports.h"
#include "store/test_database.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {

namespace json = boost::json;

using store::kHour;
using store::kNow;

inline std::string replaced(std::string text, const std::string& old, const std::string& by) {
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at)) {
    text.replace(at, old.size(), by);
    at += by.size();
  }
  return text;
}

class AnySeries final : public SeriesSource {
 public:
  Result<std::vector<Series>> series(const SeriesRequest& /*request*/) override {
    return std::vector<Series>{{.name = "cpu", .unit = "cores", .points = {{kNow, 1}}}};
  }
};

enum class LeadsFrom { kConfiguration, kManager };

/// Users ada (user), lea (leads p-bob on b), sue (support), root (admin) and bob; on both clusters
/// each has a unit and is the only member of the project "p-NAME".
class AccessTest : public store::AnyDatabase, public ::testing::WithParamInterface<LeadsFrom> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
    ASSERT_TRUE(db_->writer().write_admins("ceems", {"root"}));
    for (const std::string cluster : {"a", "b"}) {
      store::ClusterUpdate update;
      update.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
      update.window = {kNow - kHour, kNow};
      update.users.emplace();
      update.projects.emplace();
      for (const std::string& user : kPeople) {
        model::Unit unit;
        unit.resource_manager = "slurm";
        unit.uuid = user + "-" + cluster;
        unit.name = "secret name";
        unit.tags = R"({"workdir":"/secret","partition":"site-part"})";
        unit.username = user;
        unit.project = "p-" + user;
        unit.state = "COMPLETED";
        unit.started_at = "2025-12-31T23:00:00+0000";
        unit.started_at_ts = kNow - kHour;
        unit.ended_at = "2025-12-31T23:30:00+0000";
        unit.ended_at_ts = kNow - kHour / 2;
        unit.total_time_seconds = {{"walltime", 1800}};
        update.units.push_back(unit);
        // Listed only on request, because it has not ended.
        unit.uuid += "-2";
        unit.state = "RUNNING";
        unit.ended_at = "Unknown";
        unit.ended_at_ts = 0;
        update.units.push_back(unit);
        update.users->push_back({.name = user, .projects = {"p-" + user}});
        update.projects->push_back({.name = "p-" + user, .users = {user}});
      }
      if (GetParam() == LeadsFrom::kManager && cluster == "b") {
        update.leads = std::map<std::string, std::vector<std::string>>{{"p-bob", {"lea"}}};
      }
      write(update);
      ASSERT_NO_FATAL_FAILURE(store_reports(cluster));
    }
    for (const std::string cluster : {"a", "b"}) {
      std::string units;
      std::string busy;  // by the units that run
      for (const std::string& user : kPeople) {
        busy += fmt::format(
            "{0}{{\"metric\":{{\"hostname\":\"n1\",\"index\":\"0\",\"kind\":\"busy\","
            "\"uuid\":\"{1}-{2}-2\"}},\"values\":[[{3},\"0.25\"]]}}",
            busy.empty() ? "" : ",", user, cluster, kNow / 60000 * 60);
        units += fmt::format("{}{{\"metric\":{{\"uuid\":\"{}-{}\"}},\"value\":[0,\"1\"]}}",
                             units.empty() ? "" : ",", user, cluster);
      }
      tsdbs_[cluster].client = std::make_unique<tsdb::Client>(
          "http://t",
          std::make_unique<tsdb::FakeTransport>([units, busy, cluster](const auto& request) {
            const bool range = request.path.ends_with("_range");
            const std::string query(request.first("query"));
            std::string rows = range ? "" : units;
            if (query.contains("gpu_busy_seconds")) {
              rows = busy;
            } else if (query.contains("idle_seconds")) {  // those that run
              rows = replaced(rows, "-" + cluster + "\"", "-" + cluster + "-2\"");
            }
            return tsdb::FakeTransport::ok(R"({"status":"success","data":{"resultType":")" +
                                           std::string(range ? "matrix" : "vector") +
                                           R"(","result":[)" + rows + "]}}");
          }),
          clock_);
    }
    ASSERT_NO_FATAL_FAILURE(store_answers());
    login::LoginOptions login{.roles = {.support = {"sue"}}};
    if (GetParam() == LeadsFrom::kConfiguration) {
      login.roles.project_leads = {{.cluster_id = "b", .project = "p-bob", .users = {"lea"}}};
    }
    tokens_ = std::make_unique<login::Tokens>(
        login::Tokens::Setup{.login = std::move(login),
                             .user_headers = {"X-Grafana-User"},
                             .open_writer = [this] { return db_->open_tokens(); }},
        db_->reader(), clock_);
    for (const std::string& user : kPeople) {
      const auto made =
          tokens_->make(user, "token of " + user, access::TokenScope::kLed, std::nullopt);
      ASSERT_TRUE(made && *made);
      secrets_[user] = (*made)->secret;
    }
    ApiOptions options;
    options.tokens = tokens_.get();
    options.fleet = &fleet_;
    options.roles.support = {"sue"};
    options.site.clusters = {{.id = "a", .manager = "slurm", .series = true},
                             {.id = "b", .manager = "slurm", .series = true}};
    for (const std::string& user : kPeople) {
      for (const std::string cluster : {"a", "b"}) {
        options.accounting.budgets.push_back(
            {.cluster = cluster, .project = "p-" + user, .amount = 5});
      }
    }
    if (GetParam() == LeadsFrom::kConfiguration) {
      options.roles.project_leads = {{.cluster_id = "b", .project = "p-bob", .users = {"lea"}}};
    }
    auto server = ApiServer::create(std::move(options), db_->reader(), &series_, registry_, clock_);
    ASSERT_TRUE(server);
    server_ = std::move(*server);
  }

  /// Each ended unit has a final report, with one finding.
  void store_reports(const std::string& cluster) {
    std::vector<store::ReportRow> rows;
    for (const std::string& user : kPeople) {
      report::Report report{.cluster_id = cluster,
                            .uuid = user + "-" + cluster,
                            .started_ms = kNow - kHour,
                            .ended_ms = kNow - kHour / 2,
                            .state = report::State::kFinal,
                            .coverage = 1};
      report.job.name = "secret name";
      report.job.user = user;
      report.job.partition = "site-part";
      report.findings = {{.rule = "mem-excess",
                          .confidence = advice::Confidence::kSure,
                          .text = {{"en", "Ask for less."}},
                          .lines = {{.type = "#SBATCH --mem=secret"}}}};
      store::ReportRow& row = rows.emplace_back();
      row.key = {.cluster_id = cluster, .uuid = report.uuid, .started_at_ts = kNow - kHour};
      row.ended_at_ts = kNow - kHour / 2;
      row.final = true;
      row.version = report::kStoredVersion;
      row.body = report::to_stored(report);
      row.findings = {
          {.rule = "mem-excess", .severity = 2, .confidence = 2, .runs = 5, .numbers = "{}"}};
    }
    const auto stored = db_->writer().store_reports(rows);
    ASSERT_TRUE(stored) << stored.error().message;
    ASSERT_EQ(*stored, kPeople.size());
  }

  /// Each person has said something of the suggestion for the own unit of cluster a.
  void store_answers() {
    const auto writer = db_->open_feedback();
    ASSERT_TRUE(writer);
    for (const std::string& user : kPeople) {
      ASSERT_TRUE((*writer)->answer({.key = {"a", user + "-a", kNow - kHour},
                                     .rule = "mem-excess",
                                     .username = user,
                                     .answer = "no",
                                     .answered_ms = kNow}));
    }
  }

  /// By name, or by token.
  void identify(net::Headers& headers, const std::string& user) const {
    if (!user.empty() && by_token_) {
      headers.emplace_back("Authorization", "Bearer " + secrets_.at(user));
    } else if (!user.empty()) {
      headers.emplace_back("X-Grafana-User", user);
    }
  }

  net::Response get(const std::string& target, const std::string& user) {
    net::Headers headers;
    identify(headers, user);
    net::Response response;
    server_->handle(request_for("GET", "/api/v1/" + target, headers), response);
    read_whole(response);
    return response;
  }

  /// A request of an endpoint that takes a body.
  net::Response post(const std::string& target, const std::string& body, const std::string& user) {
    net::Headers headers{{"Content-Type", "application/json"}};
    identify(headers, user);
    net::Request request = request_for("POST", "/api/v1/" + target, headers);
    request.body = body;
    net::Response response;
    server_->handle(request, response);
    return response;
  }

  static std::string word_for(const std::set<std::string>& seen, const std::string& user) {
    std::set<std::string> expected{user + "-a", user + "-b"};
    if (seen == expected) {
      return "own";
    }
    expected.insert("bob-b");
    if (seen == expected) {
      return "own+led";
    }
    return seen.size() == 2 * kPeople.size() ? "all" : "something else";
  }

  /// Rows of units, usage, users or projects.
  std::string word_for(const json::array& rows, const std::string& user) {
    std::set<std::string> seen;
    std::set<std::string> written;  // with name and tags
    bool units = false;
    for (const json::value& value : rows) {
      const json::object& row = value.as_object();
      units = units || row.contains("uuid");
      const char* owner_field = row.contains("username") ? "username" : "name";
      std::string owner(row.at(owner_field).as_string().c_str());
      if (owner.starts_with("p-")) {
        owner.erase(0, 2);
      }
      const std::string id = owner + "-" + std::string(row.at("cluster_id").as_string().c_str());
      EXPECT_TRUE(seen.insert(id).second) << "twice: " << id;
      EXPECT_TRUE(!units || row.contains("name") == row.contains("tags"));
      if (row.contains("name")) {
        written.insert(id);
      }
    }
    const std::string word = word_for(seen, user);
    if (!units || written == seen) {
      return word;
    }
    return word == "all" && word_for(written, user) == "own" ? "all*" : "something else";
  }

  static inline const std::vector<std::string> kPeople{"ada", "lea", "sue", "root", "bob"};
  AnySeries series_;
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
  metrics::Registry registry_{"ceems_api_server", "the API server"};
  std::unique_ptr<login::Tokens> tokens_;
  bool by_token_ = false;
  std::map<std::string, std::string> secrets_;  ///< a token of each, which reads led projects
  std::unique_ptr<ApiServer> server_;
};

inline std::string name_of_leads(const ::testing::TestParamInfo<LeadsFrom>& test) {
  return test.param == LeadsFrom::kManager ? "OfTheManager" : "OfTheConfiguration";
}

}  // namespace ceems::api
