#include "ingest/manager/slurm/slurmrest.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/slurm/sacct.h"
#include "ingest/manager/slurm/slurmrest_answer.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr model::Window kRestWindow{.start_ms = 1'767'254'400'000,  // 08:00 UTC
                                    .end_ms = 1'767'258'000'000};

// The same job as printed by slurmrestd 22.05 and 25.05, reduced to the fields used.
constexpr const char* kJob38 = R"({"account":"proj1","cluster":"alpha","job_id":5003,"name":"a|b",
  "group":"users","user":"bob","nodes":"n10","partition":"debug","qos":"normal",
  "kill_request_user":"alice","working_directory":"/scratch/bob","flags":["CLEAR_SCHEDULING"],
  "exit_code":{"status":"SIGNALED","return_code":0,"signal":{"signal_id":9,"name":"KILL"}},
  "state":{"current":"CANCELLED","reason":"None"},
  "time":{"elapsed":1200,"submission":1767255000,"start":1767255600,"end":1767256800,"limit":60},
  "tres":{"allocated":[{"type":"cpu","name":null,"id":1,"count":2},
    {"type":"mem","name":null,"id":2,"count":2000},{"type":"energy","name":null,"id":3,
     "count":18446744073709551614},{"type":"node","name":null,"id":4,"count":1},
    {"type":"billing","name":null,"id":5,"count":2},{"type":"gres","name":"gpu","id":1001,"count":2},
    {"type":"gres","name":"gpu:a100","id":1002,"count":2}]},"steps":[]})";
constexpr const char* kJob43 = R"({"account":"proj1","cluster":"alpha","job_id":5003,"name":"a|b",
  "group":"users","user":"bob","nodes":"n10","partition":"debug","qos":"normal",
  "kill_request_user":"alice","working_directory":"/scratch/bob",
  "exit_code":{"status":["SIGNALED"],"return_code":{"set":true,"infinite":false,"number":0},
    "signal":{"id":{"set":true,"infinite":false,"number":9},"name":"KILL"}},
  "state":{"current":["CANCELLED"],"reason":"None"},
  "time":{"elapsed":1200,"submission":{"set":true,"infinite":false,"number":1767255000},
    "start":{"set":true,"infinite":false,"number":1767255600},
    "end":{"set":true,"infinite":false,"number":1767256800}},
  "tres":{"allocated":[{"type":"cpu","name":"","id":1,"count":2},
    {"type":"mem","name":"","id":2,"count":2000},{"type":"node","name":"","id":4,"count":1},
    {"type":"billing","name":"","id":5,"count":2},
    {"type":"gres","name":"gpu:a100","id":1002,"count":2}]}})";

std::string answer(const std::string& list, const std::string& elements) {
  return R"({"meta":{"a":[1,{"b":"]}"}]},"errors":[],"warnings":[],")" + list + R"(":[)" +
         elements + "]}";
}

TEST(RestJob, IsTheSameInAllVersions) {
  for (const char* text : {kJob38, kJob43}) {
    const auto found = parse_rest_job(text);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->cluster, "alpha");
    EXPECT_EQ(found->killed_by, "alice");
    EXPECT_FALSE(found->waiting);
    const SlurmJob& job = found->job;
    EXPECT_EQ(job.id, "5003");
    EXPECT_EQ(job.name, "a|b");
    EXPECT_EQ(job.account, "proj1");
    EXPECT_EQ(job.user, "bob");
    EXPECT_EQ(job.group, "users");
    EXPECT_EQ(job.partition, "debug");
    EXPECT_EQ(job.qos, "normal");
    EXPECT_EQ(job.node_list, "n10");
    EXPECT_EQ(job.work_dir, "/scratch/bob");
    EXPECT_EQ(job.state, "CANCELLED");
    EXPECT_EQ(job.exit_code, "0:9");
    EXPECT_EQ(job.elapsed, "00:20:00");
    EXPECT_EQ(job.submit_ms, 1767255000000);
    EXPECT_EQ(job.start_ms, 1767255600000);
    EXPECT_EQ(job.end_ms, 1767256800000);
    EXPECT_EQ(job.allocation.cpus, 2);
    EXPECT_EQ(job.allocation.nodes, 1);
    EXPECT_EQ(job.allocation.billing, 2);
    EXPECT_EQ(job.allocation.gpus, 2);
    EXPECT_EQ(job.allocation.memory_bytes, 2000LL << 20U);
  }
}

TEST(RestJob, ReadsWhatIsMissingUnsetOrStrange) {
  const auto bare = parse_rest_job(R"({"job_id":{"set":true,"number":7}})");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->job.id, "7");
  EXPECT_EQ(bare->job.end_text, "Unknown");
  EXPECT_FALSE(bare->job.start_ms);
  EXPECT_EQ(bare->job.exit_code, "0:0");
  const auto odd = parse_rest_job(
      R"({"job_id":8,"time":{"start":{"set":true,"infinite":true,"number":5},"end":-1,
          "submission":99999999999999,"elapsed":-7},"tres":{"allocated":[1,{"type":"cpu"}]},
          "state":{"current":["RUNNING","COMPLETING"]},"association":{"user":"eve"},"nodes":5})");
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->job.start_ms);
  EXPECT_FALSE(odd->job.end_ms);
  EXPECT_FALSE(odd->job.submit_ms);
  EXPECT_EQ(odd->job.elapsed, "00:00:00");
  EXPECT_EQ(odd->job.state, "COMPLETING");
  EXPECT_EQ(odd->job.user, "eve");
  EXPECT_TRUE(parse_rest_job(R"({"job_id":9,"state":{"current":["PENDING"]}})")->waiting);
  EXPECT_EQ(parse_rest_job("{\"job_id\":9,\"name\":\"\xFF\"}")->job.name, "\xFF");
  for (const char* bad :
       {"", "7", "[]", "{}", "{\"job_id\":0}", "{\"job_id\":\"x\"}", "{\"job_id\":"}) {
    EXPECT_FALSE(parse_rest_job(bad)) << bad;
  }
}

/// Answers by path and records the URLs.
struct FakeRest {
  RestGet get() {
    return [this](const std::string& url, const net::StreamTaker& taker,
                  std::stop_token stop) -> Result<net::ClientResponse> {
      urls.push_back(url);
      if (stop.stop_requested()) {
        return fail(ErrorCode::kUnavailable, "cancelled");
      }
      const std::string path = url.substr(0, url.find('?'));
      const auto found = answers.find(path);
      if (found == answers.end()) {
        return net::ClientResponse{.status = 404, .headers = {}, .body = "not here"};
      }
      if (found->second.first != 200) {
        return net::ClientResponse{
            .status = found->second.first, .headers = {}, .body = found->second.second};
      }
      CEEMS_TRY(taker.part(found->second.second));
      return net::ClientResponse{.status = 200, .headers = {}, .body = {}};
    };
  }
  Result<std::vector<SlurmJob>> jobs(model::Window window = kRestWindow) {
    std::vector<SlurmJob> found;
    CEEMS_TRY(source().jobs(window, [&found](const SlurmJob& job) { found.push_back(job); }, {}));
    return found;
  }
  SlurmSource& source() {
    if (!source_) {
      source_ = make_slurm_rest(
          options, get(),
          {.uid_of_user = [](const std::string& name) -> std::optional<std::int64_t> {
             return name == "bob" ? 1002 : name == "alice" ? 1001 : std::optional<std::int64_t>();
           },
           .gid_of_group = [](const std::string& name) -> std::optional<std::int64_t> {
             return name == "users" ? 100 : std::optional<std::int64_t>();
           }});
    }
    return *source_;
  }

  SlurmRestOptions options{.url = "http://rest/",
                           .version = {},
                           .timeout = std::chrono::minutes(1),
                           .page = std::chrono::hours(1),
                           .slurm_cluster = {}};
  std::map<std::string, std::pair<int, std::string>> answers;
  std::vector<std::string> urls;

 private:
  std::unique_ptr<SlurmSource> source_;
};

constexpr const char* kJobs38 = "http://rest/slurmdb/v0.0.38/jobs";
constexpr const char* kJobs43 = "http://rest/slurmdb/v0.0.43/jobs";

TEST(SlurmRest, FindsTheVersionAndAsksInItsWay) {
  FakeRest rest;
  rest.answers[kJobs38] = {200, answer("jobs", kJob38)};
  auto jobs = rest.jobs();
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 1U);
  EXPECT_EQ((*jobs)[0].uid, 1002);
  EXPECT_EQ((*jobs)[0].gid, 100);
  EXPECT_EQ((*jobs)[0].state, "CANCELLED by 1001");
  ASSERT_EQ(rest.urls.size(), 6U);
  EXPECT_THAT(rest.urls[0], HasSubstr("http://rest/slurmdb/v0.0.43/jobs?"));
  EXPECT_EQ(rest.urls[5],
            "http://rest/slurmdb/v0.0.38/jobs?skip_steps=true&start_time=uts1767254400&end_time="
            "uts1767258000");
  ASSERT_TRUE(rest.jobs());
  EXPECT_EQ(rest.urls.size(), 7U);  // the version is known now
  // After an upgrade of slurmrestd it is detected again.
  rest.answers.clear();
  rest.answers[kJobs43] = {200, answer("jobs", kJob43)};
  EXPECT_FALSE(rest.jobs());
  EXPECT_EQ(rest.jobs()->size(), 1U);
  EXPECT_EQ(rest.urls.back(),
            "http://rest/slurmdb/v0.0.43/jobs?skip_steps=true&show_duplicates=true&disable_"
            "truncate_usage_time=true&start_time=1767254400&end_time=1767258000");
}

TEST(SlurmRest, MakesTheUnitThatSacctMakes) {
  FakeRest rest;
  rest.answers[kJobs43] = {200, answer("jobs", kJob43)};
  const auto jobs = rest.jobs();
  ASSERT_TRUE(jobs);
  const std::string line =
      "5003|debug|normal|proj1|users|100|bob|1002|2026-01-01T08:10:00|2026-01-01T08:20:00|"
      "2026-01-01T08:40:00|00:20:00|1200|0:9|CANCELLED by 1001|billing=2,cpu=2,gres/gpu:a100=2,"
      "mem=2000M,node=1|n10|a|b|/scratch/bob";
  const auto job = parse_sacct_record(line, "|", MemoryRule::kTruncated);
  ASSERT_TRUE(job && *job);
  const auto expected = to_unit(**job, kRestWindow, TimeZone());
  const auto unit = to_unit((*jobs)[0], kRestWindow, TimeZone());
  ASSERT_TRUE(expected && unit);
  EXPECT_EQ(unit->uuid, expected->uuid);
  EXPECT_EQ(unit->name, expected->name);
  EXPECT_EQ(unit->project, expected->project);
  EXPECT_EQ(unit->username, expected->username);
  EXPECT_EQ(unit->groupname, expected->groupname);
  EXPECT_EQ(unit->created_at, expected->created_at);
  EXPECT_EQ(unit->started_at, expected->started_at);
  EXPECT_EQ(unit->ended_at, expected->ended_at);
  EXPECT_EQ(unit->ended_at_ts, expected->ended_at_ts);
  EXPECT_EQ(unit->elapsed, expected->elapsed);
  EXPECT_EQ(unit->state, expected->state);
  EXPECT_EQ(unit->allocation, expected->allocation);
  EXPECT_EQ(unit->tags, expected->tags);
  EXPECT_EQ(unit->total_time_seconds, expected->total_time_seconds);
}

TEST(SlurmRest, ReadsTheDetailsThatSacctHas) {
  const auto old = parse_rest_job(kJob38);
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->job.details, SlurmDetails{.time_limit_seconds = 3600});

  const auto job = parse_rest_job(R"({"job_id":77,"nodes":"n[1-2]","allocation_nodes":2,
    "array":{"job_id":70,"task_id":{"set":true,"infinite":false,"number":4}},
    "time":{"limit":{"set":true,"infinite":false,"number":90},"eligible":1767255000},
    "required":{"CPUs":8,"memory_per_cpu":{"set":true,"infinite":false,"number":2000}},
    "restart_cnt":3,"constraints":"a100&ib","submit_line":"sbatch -n8 job.sh","sluid":"s0123",
    "comment":{"administrator":"JS1:H4sIAA==","job":"JS1:H4sJOB","system":""},
    "steps":[{"statistics":{"energy":{"consumed":{"set":true,"infinite":false,"number":500}}}},
      {"statistics":{"energy":{"consumed":{"set":false,"infinite":false,"number":0}}}},
      {"statistics":{"energy":{"consumed":18446744073709551614}}},
      {"statistics":{"energy":{"consumed":20}}}, 7]})");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->job.allocation.nodes, 2);
  EXPECT_EQ(job->job.details, (SlurmDetails{.array_job = 70,
                                            .array_task = 4,
                                            .time_limit_seconds = 5400,
                                            .requested_memory_bytes = 16000LL << 20U,
                                            .requested_cpus = 8,
                                            .restarts = 3,
                                            .eligible_ms = 1767255000000,
                                            .consumed_joules = 520,
                                            .memory_per = "cpu",
                                            .constraints = "a100&ib",
                                            .submit_line = "sbatch -n8 job.sh",
                                            .sluid = "s0123",
                                            .js1 = "JS1:H4sIAA=="}));

  const auto part = parse_rest_job(R"({"job_id":8201,"nodes":"n1",
    "het":{"job_id":8200,"job_offset":{"set":true,"infinite":false,"number":1}}})");
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->job.details, (SlurmDetails{.het_job = 8200, .het_offset = 1}));

  const auto none = parse_rest_job(R"({"job_id":77,"nodes":"n1",
    "het":{"job_id":0,"job_offset":{"set":false,"infinite":false,"number":0}},
    "array":{"job_id":0,"task_id":{"set":false,"infinite":false,"number":0}},
    "time":{"limit":{"set":false,"infinite":true,"number":0},"eligible":0},
    "tres":{"requested":[{"type":"mem","name":"","id":2,"count":4000}]},
    "required":{"CPUs":0,"memory_per_node":5},"steps":{}})");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->job.details,
            (SlurmDetails{.requested_memory_bytes = 4000LL << 20U, .memory_per = "node"}));

  const auto gpus = parse_rest_job(R"({"job_id":77,"nodes":"n1","tres":{"requested":[
    {"type":"gres","name":"gpu","count":2},{"type":"gres","name":"gpu:a100","count":2}]}})");
  EXPECT_EQ(gpus->job.details.gpu_type, "a100");
}

TEST(SlurmRest, AsksForLongWindowsInPartsAndTellsAJobOnce) {
  FakeRest rest;
  rest.options.version = "v0.0.43";
  rest.answers[kJobs43] = {200, answer("jobs", kJob43)};
  const auto jobs =
      rest.jobs({.start_ms = kRestWindow.start_ms, .end_ms = kRestWindow.start_ms + 9'000'000});
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->size(), 1U);
  ASSERT_EQ(rest.urls.size(), 3U);
  EXPECT_THAT(rest.urls[0], HasSubstr("start_time=1767254400&end_time=1767258000"));
  EXPECT_THAT(rest.urls[2], HasSubstr("start_time=1767261600&end_time=1767263400"));
}

TEST(SlurmRest, AsksByIdWithoutATime) {
  FakeRest rest;
  rest.options.version = "v0.0.38";
  rest.answers[kJobs38] = {200, answer("jobs", kJob38)};
  std::size_t count = 0;
  ASSERT_TRUE(rest.source().jobs_by_id({"5003", "7"}, [&count](const SlurmJob&) { ++count; }, {}));
  EXPECT_EQ(count, 2U);
  EXPECT_THAT(rest.urls, ElementsAre("http://rest/slurmdb/v0.0.38/jobs?skip_steps=true&step=5003",
                                     "http://rest/slurmdb/v0.0.38/jobs?skip_steps=true&step=7"));
}

TEST(SlurmRest, LeavesOutWhatWaitsAndWhatDoesNotParse) {
  FakeRest rest;
  rest.answers[kJobs43] = {
      200, answer("jobs", std::string(kJob43) + R"(,{"job_id":1,"state":{"current":["PENDING"]}},
                          {"job_id":2,"nodes":"None assigned"},{"no":"id"},5)")};
  EXPECT_EQ(rest.jobs()->size(), 1U);
  rest.answers[kJobs43] = {200, answer("jobs", "{},{}")};
  EXPECT_EQ(rest.jobs().error().message, "slurmrestd jobs: a job of slurmrestd: no job_id");
  rest.answers[kJobs43] = {200, answer("jobs", "")};
  EXPECT_TRUE(rest.jobs()->empty());
}

TEST(SlurmRest, OneClusterIsNotTakenForAnother) {
  FakeRest rest;
  std::string other = kJob43;
  other.replace(other.find("alpha"), 5, "gamma");
  rest.answers[kJobs43] = {200, answer("jobs", std::string(kJob43) + "," + other)};
  EXPECT_EQ(
      rest.jobs().error().message,
      "slurmrestd jobs: slurmrestd lists jobs or users of the clusters 'alpha' and 'gamma': set "
      "extra_config.slurm_cluster");
  FakeRest named;
  named.options.slurm_cluster = "gamma";
  named.answers = rest.answers;
  EXPECT_EQ(named.jobs()->size(), 1U);
  EXPECT_THAT(named.urls[0], HasSubstr("&cluster=gamma"));
}

TEST(SlurmRest, AFailedAnswerIsAFailure) {
  FakeRest rest;
  const auto error_of = [&rest](int status, const std::string& body) {
    rest.answers[kJobs43] = {status, body};
    const auto jobs = rest.jobs();
    return jobs ? std::string() : jobs.error().message;
  };
  EXPECT_EQ(error_of(401, "Authentication failure"),
            "slurmrestd jobs: HTTP status 401: Authentication failure");
  EXPECT_EQ(rest.jobs().error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(
      error_of(
          500,
          R"({"jobs":[],"errors":[{"error_number":2,"error":"slurmdbd","description":"down"}]})"),
      "slurmrestd jobs: HTTP status 500: slurmdbd: down");
  EXPECT_EQ(error_of(200, R"({"jobs":[],"errors":[{"error_number":2,"error":"x"}]})"),
            "slurmrestd jobs: x");
  EXPECT_EQ(error_of(200, R"({"jobs":[],"errors":[{"error_number":9003,"error":"empty"}]})"), "");
  EXPECT_EQ(error_of(200, "<html>"), "slurmrestd jobs: expected a JSON object");
  EXPECT_EQ(error_of(200, "{}"), "slurmrestd jobs: answer of slurmrestd: no list jobs");
  const std::string whole = answer("jobs", kJob43);
  EXPECT_EQ(error_of(200, whole.substr(0, whole.size() - 2)),
            "slurmrestd jobs: the JSON document is incomplete");
  rest.answers.clear();
  EXPECT_EQ(rest.jobs().error().message,
            "slurmrestd supports none of the versions v0.0.43 of /slurmdb");
  EXPECT_THAT(rest.jobs().error().message, HasSubstr("v0.0.38"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(rest.source()
                .jobs(
                    kRestWindow, [](const SlurmJob&) {}, stop.get_token())
                .error()
                .message,
            "slurmrestd jobs: cancelled");
}

TEST(SlurmRest, ReadsAssociationsAndCoordinators) {
  FakeRest rest;
  rest.answers["http://rest/slurmdb/v0.0.40/associations"] = {
      200, answer("associations", R"({"account":"acc1","user":"bob","cluster":"alpha"},
        {"account":"acc2","user":"bob","cluster":"alpha"},{"account":"acc1","user":"","cluster":"alpha"},
        {"account":"root","user":"root","cluster":"alpha"})")};
  const auto found = rest.source().associations({});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(*found, ElementsAre(Membership{"acc1", "bob"}, Membership{"acc2", "bob"}));
  rest.answers["http://rest/slurmdb/v0.0.40/accounts"] = {
      200,
      answer("accounts", R"({"name":"acc1","coordinators":["zoe",{"name":"bob","direct":true}]},
        {"name":"acc2","coordinators":[]},{"name":"acc3"})")};
  const auto found_leads = rest.source().coordinators({});
  ASSERT_TRUE(found_leads) << found_leads.error().message;
  EXPECT_EQ(*found_leads, (ProjectLeads{{"acc1", {"zoe", "bob"}}}));
  rest.answers["http://rest/slurmdb/v0.0.40/accounts"] = {200, answer("accounts", "")};
  EXPECT_FALSE(rest.source().coordinators({}));
}

TEST(SlurmRest, SystemAccountsKnowRoot) {
  EXPECT_EQ(system_accounts().uid_of_user("root"), 0);
  EXPECT_EQ(system_accounts().gid_of_group("root"), 0);
  EXPECT_EQ(system_accounts().uid_of_user("no such user"), std::nullopt);
}

}  // namespace
}  // namespace ceems::ingest
