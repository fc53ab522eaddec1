#include "cacct/commands.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/server/server.h"
#include "testing/temp_dir.h"

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// An API server and a TSDB on the loopback interface, which the configuration of the caller names.
class Commands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_config(config_directories(true))) {
      GTEST_SKIP() << "this machine has a configuration of its own";
    }
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    auto server = net::Server::create(
        std::move(options), [this](const net::Request& request, net::Response& response) {
          const MutexLock lock(mutex_);
          targets_.push_back(request.target + (request.body.empty() ? "" : "?") + request.body);
          const std::string* user = net::find_header(request.headers, "X-Grafana-User");
          const std::string* token = net::find_header(request.headers, "Authorization");
          users_.push_back(user != nullptr ? *user : token != nullptr ? *token : "nobody");
          answer(request, response);
        });
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    server_->start();
    const std::string url = "http://" + server_->addresses().at(0);
    directory_.write("ceems/config.yml",
                     fmt::format("ceems_api_server: {{cluster_id: c, web: {{url: {0}}}}}\n"
                                 "tsdb: {{web: {{url: {0}}}, queries: "
                                 "{{cpu: 'x{{uuid=~\"%s\"}}'}}}}\n",
                                 url));
    ASSERT_EQ(::setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1), 0);
  }
  void TearDown() override { ::unsetenv("XDG_CONFIG_HOME"); }

  void answer(const net::Request& request, net::Response& response) const CEEMS_REQUIRES(mutex_) {
    if (request.path == "/api/v1/units" || request.path == "/api/v1/usage/current") {
      response.body =
          request.path == "/api/v1/units" ? units_ : R"({"status":"success","data":[]})";
      return;
    }
    response.body = answer_;
    response.status = status_;
  }

  /// Runs a command and returns what it prints to standard output, then to standard error.
  template <typename Command>
  std::pair<std::string, std::string> run_command(int expected, Command command) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = command();
    std::string out = ::testing::internal::GetCapturedStdout();
    std::string error = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(status, expected) << error;
    return {std::move(out), std::move(error)};
  }
  std::pair<std::string, std::string> report(const ReportOptions& options, int expected = 0) {
    return run_command(expected, [&] { return run_report(options, caller_); });
  }

  void set_answer(int status, std::string body) {
    const MutexLock lock(mutex_);
    status_ = status;
    answer_ = std::move(body);
  }
  void set_units(std::string body) {
    const MutexLock lock(mutex_);
    units_ = std::move(body);
  }
  std::vector<std::string> targets() {
    const MutexLock lock(mutex_);
    return targets_;
  }
  std::vector<std::string> users() {
    const MutexLock lock(mutex_);
    return users_;
  }

  testing::TempDir directory_;
  Caller caller_{.login = "ada", .uid = ::getuid(), .gid = ::getgid(), .privileged = false};

 private:
  Mutex mutex_;
  int status_ CEEMS_GUARDED_BY(mutex_) = 200;
  std::string answer_ CEEMS_GUARDED_BY(mutex_);
  std::string units_ CEEMS_GUARDED_BY(mutex_);
  std::vector<std::string> targets_ CEEMS_GUARDED_BY(mutex_);
  std::vector<std::string> users_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<net::Server> server_;
};

TEST_F(Commands, CompareTwoJobs) {
  set_answer(200, "both\n");
  const ReportOptions options{.compare = true, .ids = {"1", "2"}, .ascii = true, .so_far = true};
  EXPECT_EQ(report(options).first, "both\n");
  EXPECT_THAT(targets(), ElementsAre("/api/v1/units/compare?cluster_id=c&uuid=1&uuid=2&"
                                     "format=ascii&lang=en&width=80&so_far=true"));
  EXPECT_THAT(users(), ElementsAre("ada"));
  set_answer(404, R"({"status":"error","errorType":"not_found","error":"no"})");
  EXPECT_EQ(report(options, 1).second,
            "cacct: error: job 1 and 2: no such job among those that you may see\n");
  for (const std::vector<std::string>& ids :
       {std::vector<std::string>{"1"}, {"1", "1"}, {"1", "2", "3"}}) {
    EXPECT_THAT(report({.compare = true, .ids = ids}, 1).second,
                StartsWith("cacct: error: expected the IDs of two "));
  }
}

TEST_F(Commands, AskByAPersonalTokenInPlaceOfTheName) {
  set_answer(200, "both\n");
  const std::string token = "ceems_pat_" + std::string(43, 'x');
  const ReportOptions options{.compare = true, .ids = {"1", "2"}, .ascii = true};
  ::setenv("CEEMS_TOKEN", token.c_str(), 1);
  EXPECT_EQ(report(options).first, "both\n");
  ::setenv("CEEMS_TOKEN", "ceems_pat_short", 1);
  EXPECT_THAT(report(options, 1).second, HasSubstr("CEEMS_TOKEN: expected a personal token"));
  ::unsetenv("CEEMS_TOKEN");
  EXPECT_EQ(report(options).first, "both\n");
  EXPECT_THAT(users(), ElementsAre("Bearer " + token, "ada"));
}

TEST_F(Commands, ReportEachJobOfAnArrayAndTheirSum) {
  set_units(R"({"status":"success","data":[
    {"uuid":"71","state":"COMPLETED","total_cpu_energy_usage_kwh":{"total":1.5}},
    {"uuid":"72","state":"CANCELLED by 1000","total_cpu_energy_usage_kwh":{"total":0.25},
     "total_gpu_energy_usage_kwh":{"total":0.75,"other":8}},
    {"uuid":"71","state":"COMPLETED","total_cpu_energy_usage_kwh":{"total":1.5}}]})");
  set_answer(200, "a report\n");
  const ReportOptions options{.ids = {"7"}, .ascii = true, .width = 100};
  EXPECT_EQ(report(options).first,
            "a report\n\na report\n\n7: 2 jobs (1 CANCELLED, 1 COMPLETED), 2.50 kWh\n");
  const auto asked = targets();
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_THAT(asked[0], HasSubstr("&uuid=7&uuid=7_%2A&uuid=7%2B%2A"));
  EXPECT_EQ(asked[1], "/api/v1/units/report?cluster_id=c&uuid=71&format=ascii&lang=en&width=100");
  EXPECT_EQ(asked[2], "/api/v1/units/report?cluster_id=c&uuid=72&format=ascii&lang=en&width=100");
}

TEST_F(Commands, JoinReportsToOneListOfJson) {
  set_answer(200, R"({"status":"success","data":[{"b":1,"a":2}]})");
  EXPECT_EQ(report({.ids = {"x", "y"}, .json = true}).first,
            "[{\"a\":2,\"b\":1},{\"a\":2,\"b\":1}]\n");
  set_answer(200, R"({"status":"success","data":{}})");
  EXPECT_EQ(report({.ids = {"x"}, .json = true}, 1).second,
            "cacct: error: job x: unexpected answer of the API server\n");
}

TEST_F(Commands, RefuseReportsThatCannotBe) {
  EXPECT_THAT(report({}, 1).second, HasSubstr("expected the ID of a job"));
  EXPECT_THAT(report({.ids = {"x"}, .json = true, .html = true}, 1).second,
              HasSubstr("exclude each other"));
  EXPECT_THAT(report({.ids = {"x"}, .width = 59}, 1).second,
              HasSubstr("--width: expected a number from 60 to 240"));
  EXPECT_THAT(report({.ids = {"x"}, .width = 241}, 1).second, HasSubstr("--width"));
  EXPECT_THAT(report({.jobstats = true, .ids = {"x"}, .cluster = "d"}, 1).second,
              HasSubstr("unknown cluster 'd': this is c"));
  EXPECT_THAT(targets(), IsEmpty());
}

TEST_F(Commands, CheckAScriptBeforeItIsSubmitted) {
  const std::string script =
      directory_.write("job.sh", "#!/bin/sh\n#SBATCH --gres=gpu:4 -N 1 --mem=1G\n./train.py\n");
  set_answer(200, R"({"data":[{"basis":{"kind":"none"}}]})");
  const auto check = [this](const CheckOptions& options, int expected = 0) {
    return run_command(expected, [&] { return run_check(options, caller_); });
  };
  EXPECT_EQ(check({.words = {"-t", "90", script, "-N", "9"}}).first,
            "Check of job.sh\n\nNo earlier runs say what this job will take.\n");
  EXPECT_THAT(targets(),
              ElementsAre("/api/v1/units/check?"
                          R"({"cluster_id":"c","form":"sbatch","request":{"name":"job.sh",)"
                          R"("executable":"train.py","cpus":1,"nodes":1,"gpus":4,)"
                          R"("memory_bytes":1073741824,"time_limit_s":5400},)"
                          R"("directives":["--gres=gpu:4","--mem=1G","--nodes=1","--time=90"]})"));
  EXPECT_EQ(check({.words = {script}, .json = true}).first,
            "{\"data\":[{\"basis\":{\"kind\":\"none\"}}]}\n");
  EXPECT_EQ(check({.words = {script}, .brief = true, .timeout = 60'000}),
            std::pair(std::string(), std::string()));
  EXPECT_EQ(
      check({.words = {"-l", "select=2:ncpus=4"}, .form = "pbs", .deadline = "tomorrow"}).second,
      "");
  EXPECT_THAT(targets().back(),
              HasSubstr(R"("form":"pbs","request":{"cpus":8,"gpus":0},)"
                        R"("directives":["-l select=2:ncpus=4"],"deadline_ts":)"));
  // The whole command, as it is typed to submit.
  static_cast<void>(check({.words = {"qsub", "-N", "x", script}}));
  EXPECT_THAT(targets().back(), HasSubstr(R"("form":"pbs","request":{"name":"x")"));
  static_cast<void>(check({.words = {"bsub", script}}));
  EXPECT_THAT(targets().back(), HasSubstr(R"("form":"lsf","request":{)"));
  // A script without directives: the server knows the form of its cluster.
  const std::string plain = directory_.write("plain.sh", "#!/bin/sh\nhostname\n");
  static_cast<void>(check({.words = {plain}}));
  EXPECT_THAT(targets().back(), Not(HasSubstr("form")));
  itimerval timer{};
  ASSERT_EQ(::getitimer(ITIMER_REAL, &timer), 0);
  EXPECT_EQ(timer.it_value.tv_sec, 0) << "the limit of --brief ends with the command";
  // The server does not decide whether the job may be submitted.
  set_answer(500, "broken");
  EXPECT_EQ(check({.words = {script}}).second,
            "cacct: error: the API server answered with HTTP status 500\n");
  EXPECT_EQ(check({.words = {script}, .brief = true, .timeout = 60'000}),
            std::pair(std::string(), std::string()));
  set_answer(404, "404 page not found");
  EXPECT_EQ(check({.words = {script}}).second,
            "cacct: error: this version of the API server does not check jobs\n");
}

TEST_F(Commands, RefuseToCheckWhatIsNoScript) {
  const std::string path = directory_.path().string();
  const std::string binary = directory_.write("a.out", std::string("\x7f"
                                                                   "ELF\0\x1b[31m",
                                                                   10));
  const std::string bare = directory_.write("bare.sh", "#SBATCH -n 2\n");
  const std::string yaml = directory_.write("pod.yml", "kind: Service\n");
  const auto refused = [this](const CheckOptions& options) {
    return run_command(1, [&] { return run_check(options, caller_); }).second;
  };
  EXPECT_THAT(refused({}), HasSubstr("expected a job script, or - for standard input"));
  EXPECT_THAT(refused({.words = {path + "/absent"}}), HasSubstr("No such file or directory"));
  EXPECT_THAT(refused({.words = {path}}), HasSubstr("it is a directory"));
  EXPECT_THAT(refused({.words = {binary}}), HasSubstr("is not a job script: it holds binary data"));
  EXPECT_THAT(refused({.words = {bare}}), HasSubstr("does not begin with #!"));
  EXPECT_THAT(refused({.words = {yaml}, .form = "k8s"}),
              HasSubstr("expected a manifest of a Pod, Job or CronJob"));
  EXPECT_THAT(refused({.words = {"x"}, .json = true, .brief = true, .timeout = 60'000}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(refused({.words = {"x"}, .timeout = 60'001}), HasSubstr("--timeout: expected"));
  EXPECT_THAT(refused({.words = {"--nodes=2"}, .deadline = "soon"}),
              HasSubstr("--deadline: invalid time"));
  EXPECT_THAT(refused({.words = {"--nodes=2"}, .deadline = "yesterday"}),
              HasSubstr("--deadline is over"));
  EXPECT_THAT(targets(), IsEmpty());
}

TEST(CheckArguments, EndWhereThoseOfTheSubmissionBegin) {
  const auto arranged = [](const std::vector<const char*>& arguments) {
    std::string text;
    for (const char* word : check_arguments(arguments)) {
      text += (text.empty() ? "" : " ") + std::string(word);
    }
    return text;
  };
  EXPECT_EQ(arranged({"check", "job.sh"}), "check -- job.sh");
  EXPECT_EQ(arranged({"check", "--json", "--form", "pbs", "-N", "x", "job"}),
            "check --json --form pbs -- -N x job");
  EXPECT_EQ(arranged({"check", "--timeout=5", "--nodes=2", "--json", "job"}),
            "check --timeout=5 -- --nodes=2 --json job");
  EXPECT_EQ(arranged({"check", "--no-brief", "--", "--json", "job"}),
            "check --no-brief -- --json job");
  EXPECT_EQ(arranged({"check", "--help"}), "check --help");
  EXPECT_EQ(arranged({"check", "-"}), "check -- -");
  EXPECT_EQ(arranged({"check", "@job"}), "check -- @job");
  EXPECT_EQ(arranged({"check", "--deadline"}), "check --deadline");
  EXPECT_EQ(arranged({"check"}), "check");
}

TEST_F(Commands, AskForInsightIntoProjects) {
  set_answer(200, R"({"data":[]})");
  const auto insight = [this](const InsightOptions& options) {
    return run_command(0, [&] { return run_insight(options, caller_); }).first;
  };
  EXPECT_EQ(insight({.topic = {"idle"}, .projects = {"a,b", "c"}, .month = "2026-11"}),
            "No idle jobs right now.\n");
  static_cast<void>(insight({.topic = {"bill"}, .month = "2026-11"}));
  static_cast<void>(insight({.topic = {"idle"}, .csv = true, .all_users = true, .by = "user"}));
  static_cast<void>(insight({.topic = {"stragglers", "7"}, .json = true}));
  static_cast<void>(insight({.topic = {"neighbours"}, .node = "n1"}));
  EXPECT_THAT(targets(),
              ElementsAre("/api/v1/insight/idle?cluster_id=c&project=a&project=b&project=c",
                          "/api/v1/insight/bill/admin?cluster_id=c&month=2026-11",
                          "/api/v1/insight/idle/admin?cluster_id=c&by=user",
                          "/api/v1/insight/stragglers?cluster_id=c&uuid=7",
                          "/api/v1/insight/neighbours/admin?cluster_id=c&host=n1"));
}

TEST_F(Commands, SaveTheSeriesOfJobsThatRan) {
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(real_clock().now().time_since_epoch())
          .count();
  set_units(fmt::format(R"({{"status":"success","data":[
    {{"uuid":"job5","username":"ada","project":"p","started_at_ts":1767225600000,
     "ended_at_ts":1767225660000}},
    {{"uuid":"job6","username":"ada","project":"p","started_at_ts":{},"ended_at_ts":0}},
    {{"uuid":"job8","username":"ada","project":"p","started_at_ts":0,"ended_at_ts":0}}]}})",
                        now - 60'000));
  set_answer(200, R"({"status":"success","data":{"resultType":"matrix","result":[]}})");
  Options options;
  options.jobs = {"job5", "job6", "job8"};
  options.series = true;
  options.series_directory = directory_.path() / "out";
  options.parsable = true;
  const auto printed = run_command(0, [&] { return run(options, caller_); });
  EXPECT_EQ(printed.second,
            fmt::format("time series data saved to directory {}\n", options.series_directory));
  const auto asked_for = [this](std::string_view id) {
    return std::ranges::any_of(targets(), [id](const std::string& target) {
      return target.starts_with("/api/v1/query_range") && target.contains(id);
    });
  };
  EXPECT_TRUE(asked_for("job5"));
  EXPECT_TRUE(asked_for("job6"));  // still runs
  EXPECT_FALSE(asked_for("job8"));
}

}  // namespace
}  // namespace ceems::cacct
