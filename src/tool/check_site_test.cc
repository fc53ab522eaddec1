#include <fmt/format.h>
#include <gtest/gtest.h>

#include "net/client/client.h"
#include "net/http.h"
#include "net/server/server.h"
#include "testing/fake_clock.h"
#include "tool/site/examine.h"
#include "tsdb/fake_transport.h"

namespace ceems::tool {
namespace {

using tsdb::FakeTransport;

/// The states and texts of the findings about a TSDB with these answers to questions for labels.
std::string said_about(const FakeTransport::Answer& answer_labels) {
  ceems::testing::FakeClock clock;
  auto transport = std::make_unique<FakeTransport>(
      [&](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
        if (request.path.contains("/label")) {
          EXPECT_EQ(request.first("match[]"), R"({uuid="ceems_tool asks whether matchers count"})");
          EXPECT_NE(request.first("start"), "");
          return answer_labels(request);
        }
        return FakeTransport::ok(
            R"({"status":"success","data":{"resultType":"vector","result":[]}})");
      });
  tsdb::Client client("http://prometheus", std::move(transport), clock);
  std::string said;
  for (const Finding& finding : examine_site({.tsdb = &client,
                                              .tsdb_url = "http://prometheus",
                                              .api_url = "",
                                              .lb_url = "",
                                              .now_ms = clock.now_ms()})) {
    if (finding.text.contains("match[]")) {
      said += std::string(to_string(finding.state)) + ": " + finding.text + "\n";
    }
  }
  return said;
}

TEST(CheckSite, SaysThatATsdbIgnoresMatchers) {
  const std::string ignores =
      "problem: it ignores match[] of labels and their values: ceems_lb refuses them to users\n";
  EXPECT_EQ(said_about(
                [](const auto&) { return FakeTransport::ok(R"({"status":"success","data":[]})"); }),
            "");
  EXPECT_EQ(said_about([](const auto&) {
              return FakeTransport::ok(R"({"status":"success","data":["up"]})");
            }),
            ignores);
  for (const std::string path : {"/labels", "/values"}) {
    EXPECT_EQ(said_about([&](const auto& request) {
                return FakeTransport::ok(request.path.ends_with(path)
                                             ? R"({"status":"success","data":["up"]})"
                                             : R"({"status":"success","data":[]})");
              }),
              ignores);
  }
  EXPECT_EQ(said_about([](const auto&) { return FakeTransport::status(404, "no such page"); }),
            "warning: cannot find out whether it honours match[] of labels: TSDB: HTTP status "
            "404: 'no such page'\n");
}

/// How an API server and a load balancer answer, by path; a stranger is one without a password.
struct Answers {
  int health = 200, users = 200, units = 200;
  int lb_health = 200, lb_query = 200;
};

/// The findings about both servers, which are one here, if it is there.
std::string said_about_servers(const Answers& answers,
                               const std::string& api_user = "",
                               bool there = true) {
  net::ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0"};
  auto server = net::Server::create(options, [&answers](const net::Request& request,
                                                        net::Response& response) {
    const std::string* user = net::find_header(request.headers, "X-Grafana-User");
    const std::string name = user == nullptr ? "" : *user;
    if (request.path == "/health") {
      response.status = answers.health;
    } else if (request.path == "/api/v1/users") {
      EXPECT_EQ(name, "ceems-tool-check-site");
      response.status = answers.users;
    } else if (request.path == "/api/v1/units/admin") {
      EXPECT_EQ(name, "root1");
      response.status = answers.units;
      response.body = R"({"status":"success","data":[]})";
    } else if (request.path == "/-/healthy") {
      response.status = answers.lb_health;
    } else if (request.path == "/api/v1/query") {
      const std::string* const cluster = net::find_header(request.headers, "X-Ceems-Cluster-Id");
      EXPECT_TRUE(cluster != nullptr && *cluster == "hpc-a");
      response.status = answers.lb_query;
    } else {
      ADD_FAILURE() << request.path;
    }
  });
  EXPECT_TRUE(server);
  const std::string url = "http://user:secret@" + (*server)->addresses()[0];
  if (there) {
    (*server)->start();
  } else {
    server->reset();  // frees the port
  }
  const auto http = net::Client::create({}).value();
  ceems::testing::FakeClock clock;
  tsdb::Client tsdb("http://prometheus", std::make_unique<FakeTransport>([](const auto&) {
                      return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "down"));
                    }),
                    clock);
  std::string said;
  for (const Finding& finding : examine_site({.tsdb = &tsdb,
                                              .stranger = http.get(),
                                              .api = http.get(),
                                              .lb = http.get(),
                                              .tsdb_url = "http://prometheus",
                                              .api_url = url,
                                              .api_user = api_user,
                                              .lb_url = url,
                                              .lb_cluster = "hpc-a",
                                              .now_ms = clock.now_ms()})) {
    EXPECT_FALSE(finding.text.contains("secret")) << finding.text;
    EXPECT_EQ(finding.state == State::kOk, finding.fix.empty()) << finding.text;
    if (finding.subject == "api server" || finding.subject == "lb") {
      const std::string_view address = std::string_view(url).substr(url.find('@') + 1);
      std::string text = finding.text;
      if (const std::size_t at = text.find(address); at != std::string::npos) {
        text.replace(at, address.size(), "HOST");
      }
      said += fmt::format("{} {}: {}\n", finding.subject, to_string(finding.state), text);
    }
  }
  return said;
}

TEST(CheckSite, SaysWhatStrangersGetOfApiServerAndLoadBalancer) {
  const std::string api = "api server ok: http://HOST is healthy\n";
  const std::string api_closed =
      api + "api server ok: it does not believe strangers who they are\n";
  const std::string lb = "lb ok: http://HOST is healthy\n";
  const std::string lb_closed = lb + "lb ok: it requires a password\n";
  struct Row {
    Answers answers;
    std::string said;
  };
  for (const auto& [answers, said] : {
           Row{{.users = 401, .lb_query = 401}, api_closed + lb_closed},
           Row{{.users = 403, .lb_query = 401}, api_closed + lb_closed},
           Row{{.users = 200, .lb_query = 401},
               api +
                   "api server warning: it takes the name of the user from anybody who sends "
                   "X-Grafana-User from here\n" +
                   lb_closed},
           Row{{.users = 401, .lb_query = 200},
               api_closed + lb +
                   "lb problem: a user without units reads the series of nodes through it\n"},
           Row{{.users = 401, .lb_query = 403},
               api_closed + lb +
                   "lb warning: it takes the name of the user from anybody who sends "
                   "X-Grafana-User, without a password\n"},
           Row{{.health = 503, .lb_health = 401},
               "api server problem: http://HOST: HTTP status 503\n"
               "lb problem: http://HOST: HTTP status 401\n"},
       }) {
    EXPECT_EQ(said_about_servers(answers), said);
  }
}

TEST(CheckSite, SaysThatUnitsAreNotListedToTheAdmin) {
  EXPECT_TRUE(
      said_about_servers({.users = 401, .units = 403}, "root1")
          .contains("api server warning: units are not listed to root1: HTTP status 403\n"));
  EXPECT_FALSE(said_about_servers({.users = 401}, "root1").contains("not listed"));
}

TEST(CheckSite, SaysThatServersAreNotThere) {
  const std::string said = said_about_servers({}, "", false);
  EXPECT_TRUE(said.starts_with("api server problem: http://HOST: ")) << said;
  EXPECT_TRUE(said.contains("\nlb problem: http://HOST: ")) << said;
}

/// `count` jobs of cluster "a" that SLURM charged with 1 kWh and we with `kwh`.
std::string jobs(int count, double kwh) {
  std::string text;
  for (int job = 0; job < count; ++job) {
    text += fmt::format(
        R"({}{{"cluster_id":"a","allocation":{{"consumed_energy":3600000}},)"
        R"("total_cpu_energy_usage_kwh":{{"total":{}}},"total_gpu_energy_usage_kwh":{{"total":0.1}}}})",
        job == 0 ? "" : ",", kwh - 0.1);
  }
  return text;
}

std::string compared(const std::string& units) {
  std::string said;
  for (const Finding& finding :
       compare_with_slurm(R"({"status":"success","data":[)" + units + "]}")) {
    said += fmt::format("{}: {}", to_string(finding.state), finding.text);
  }
  return said;
}

TEST(CheckSite, ComparesEnergiesWithThoseOfSlurm) {
  EXPECT_EQ(compared(jobs(20, 1.2)), "ok: 20 jobs of cluster a: 1.20 times SLURM's ConsumedEnergy");
  EXPECT_EQ(compared(jobs(20, 1.3)),
            "warning: 20 jobs of cluster a: 1.30 times SLURM's ConsumedEnergy");
  EXPECT_EQ(compared(jobs(20, 0.75)),
            "warning: 20 jobs of cluster a: 0.75 times SLURM's ConsumedEnergy");
  EXPECT_EQ(compared(jobs(19, 9)), "") << "too few";
  EXPECT_EQ(compared(jobs(19, 9) + "," + jobs(21, 1)),
            "ok: 40 jobs of cluster a: 1.00 times SLURM's ConsumedEnergy")
      << "the median, since SLURM charges whole nodes";
}

TEST(CheckSite, LeavesOutUnitsWithoutBothEnergies) {
  for (const char* odd : {"null", "{}", R"({"cluster_id":"a","allocation":{"consumed_energy":35999},
                          "total_cpu_energy_usage_kwh":{"total":9}})",
                          R"({"cluster_id":"a","allocation":{"consumed_energy":"x"},
            "total_cpu_energy_usage_kwh":{"total":9}})",
                          R"({"cluster_id":"a","allocation":{"consumed_energy":3600000},
            "total_cpu_energy_usage_kwh":{"total":0}})",
                          R"({"cluster_id":7,"allocation":{"consumed_energy":3600000},
            "total_cpu_energy_usage_kwh":{"total":9}})"}) {
    EXPECT_EQ(compared(jobs(19, 1) + "," + odd), "") << odd;
  }
  for (const char* answer : {"", "<html>", "[]", R"({"data":{}})"}) {
    const auto findings = compare_with_slurm(answer);
    ASSERT_EQ(findings.size(), 1U) << answer;
    EXPECT_EQ(findings[0].text, "its answer to units/admin has no list of units");
  }
}

}  // namespace
}  // namespace ceems::tool
