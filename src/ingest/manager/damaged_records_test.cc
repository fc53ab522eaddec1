// Every manager reads 1,000 records of which 10 are damaged, each in another way, and must find the
// other 990.

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/all.h"
#include "ingest/manager/batch/batch_test_support.h"
#include "ingest/manager/openstack/json.h"
#include "ingest/manager/slurm/sacct.h"
#include "ingest/manager/slurm/slurmrest.h"
#include "kube/objects.h"

namespace ceems::ingest {
namespace {

constexpr int kRecords = 1000;
constexpr int kEvery = 100;  // every so many is damaged

/// Puts text in front of the last bracket of a JSON object, as another member.
std::string damaged_with(std::string json, std::string_view member) {
  return json.insert(json.rfind('}'), "," + std::string(member));
}

/// Ten ways to damage a JSON object.
std::string damage(std::string json, int way) {
  switch (way) {
    case 0:
      return damaged_with(std::move(json), R"("e":005)");
    case 1:
      return damaged_with(std::move(json), R"("e":"C:\dir\")");
    case 2:
      return damaged_with(std::move(json), R"("e":"a"b")");
    case 3:
      return damaged_with(std::move(json), R"("e":"() { echo "hi" }")");
    case 4:
      return json.substr(0, json.size() / 2);
    case 5:
      return damaged_with(std::move(json), R"("e":{)");
    case 6:
      return json + "}]";
    case 7:
      return damaged_with(std::move(json), R"("e":"\ud800\x")");
    case 8:
      return damaged_with(std::move(json), R"("e":")" + std::string(5U << 20U, 'x') + R"(\")");
    default:
      return damaged_with(std::move(json), R"("e":"},{[\"]})" + std::string(1, '\n') + R"(")");
  }
}

std::string damaged_record(int i, const std::string& json) {
  return i % kEvery == kEvery / 2 ? damage(json, i / kEvery) : json;
}

/// 1,000 records that follow one another with commas.
std::string records(const std::function<std::string(int)>& json,
                    const std::function<std::string(int)>& key = {}) {
  std::string text;
  for (int i = 0; i < kRecords; ++i) {
    text += i == 0 ? "" : ",\n";
    text += key ? '"' + key(i) + "\":" : "";
    text += damaged_record(i, json(i));
  }
  return text;
}

/// All that are not damaged must be there. Those that are may be, if they can be read anyway.
void expect_found(
    const std::set<std::string>& found,
    const std::function<std::string(int)>& id = [](int i) { return fmt::format("{}", i + 1); }) {
  EXPECT_GE(found.size(), 990U);
  for (int i = 0; i < kRecords; ++i) {
    if (i % kEvery != kEvery / 2) {
      EXPECT_TRUE(found.contains(id(i))) << id(i);
    }
  }
}

std::set<std::string> ids_of(const Result<std::vector<model::Unit>>& units) {
  std::set<std::string> ids;
  EXPECT_TRUE(units) << units.error().message;
  for (const model::Unit& unit : units.value_or(std::vector<model::Unit>{})) {
    EXPECT_TRUE(ids.insert(unit.uuid).second) << unit.uuid;
    EXPECT_EQ(unit.username, "ada");
  }
  return ids;
}

class DamagedRecords : public ::testing::Test {
 protected:
  Result<std::vector<model::Unit>> fetch(const ManagerSpec& spec, const std::string& extra = "") {
    ClusterConfig config;
    config.cluster = {.id = "c1", .manager = std::string(spec.name), .updaters = {}};
    config.cli_path = directory_.path().string();
    if (!extra.empty()) {
      config.extra = config::parse_yaml(extra, "c.yml").value();
    }
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kStart + kHour + kMinute)));
    auto manager = create_manager(spec, config, {.clock = &clock_, .runner = &runner_});
    EXPECT_TRUE(manager) << manager.error().message;
    return (*manager)->fetch_units({.start_ms = kStart, .end_ms = kStart + kHour}, {});
  }

  testing::FakeClock clock_;
  testing::TempDir directory_;
  testing::FakeRunner runner_;
};

TEST_F(DamagedRecords, OfQstat) {
  const auto key = [](int i) { return fmt::format("{}.srv", i + 1); };
  const auto job = [](int i) {
    return fmt::format(R"({{"Job_Name":"j{}","Job_Owner":"ada@l","job_state":"R",)"
                       R"("stime":"Wed Apr  1 00:00:01 2026","exec_host":"n1/0*2","project":"p",)"
                       R"("Resource_List":{{"ncpus":2}},"Variable_List":{{"A":"b"}}}})",
                       i);
  };
  runner_.reply("qstat", {.output = R"({"timestamp":1,"Jobs":{)" + records(job, key) + "}}\n"});
  expect_found(ids_of(fetch(openpbs_manager())), key);
}

TEST_F(DamagedRecords, OfBjobs) {
  const auto job = [](int i) {
    return fmt::format(R"({{"JOBID":"{}","JOBINDEX":"0","USER":"ada","PROJ_NAME":"p",)"
                       R"("STAT":"RUN","START_TIME":"Apr  1 00:00:01 2026","ALLOC_SLOT":"n1",)"
                       R"("EXEC_CWD":"/x"}})",
                       i + 1);
  };
  runner_.reply("bjobs", {.output = R"({"COMMAND":"bjobs","RECORDS":[)" + records(job) + "]}\n"});
  runner_.reply("bacct", {.output = ""});
  expect_found(ids_of(fetch(lsf_manager())));
}

TEST_F(DamagedRecords, OfBacct) {
  static constexpr std::array<std::string_view, 10> kDamaged = {
      "Job <what>, User <ada>",
      "Job <",
      "Job <2>",
      "Job <2>, User <ada>, Project <p>, Command <x>",
      "Job <2>, Job Name <x",
      "Job <2>, Job Name <x>, User <eve>, Project <q",
      "Job <2>, Owner <x>",
      "Job <2[>, User <ada>, Project <p>, Command <\xff\xfe>",
      "Job <99999999999999999999999>, User <a>",
      "Job <2>, User <"};
  const std::string rule(78, '-');
  std::string text = rule + "\n\n";
  for (int i = 0; i < kRecords; ++i) {
    if (i % kEvery == kEvery / 2) {
      text += std::string(kDamaged.at(static_cast<std::size_t>(i / kEvery))) + "\n" + rule + "\n\n";
      continue;
    }
    text += fmt::format(
        "Job <{}>, User <ada>, Project <p>, Status <DONE>, Queue <q>, Command <x>\n"
        "Wed Apr  1 00:00:01 2026: Submitted from host <l>, CWD <$HOME>;\n"
        "Wed Apr  1 00:00:02 2026: Dispatched 1 Task(s) on Host(s) <n1>;\n"
        "Wed Apr  1 00:30:00 2026: Completed <done>.\n{}\n\n",
        i + 1, rule);
  }
  runner_.reply("bjobs", {.exit_status = 255, .error_text = "No unfinished job found\n"});
  runner_.reply("bacct", {.output = text + " Total number of done jobs:  1000  "
                                           "Total number of exited jobs:     0\n"});
  expect_found(ids_of(fetch(lsf_manager())));
}

TEST_F(DamagedRecords, OfExec) {
  std::string text;
  for (int i = 0; i < kRecords; ++i) {
    text +=
        damaged_record(i, fmt::format(R"({{"unit":"{}","user":"ada","project":"p","start":{}}})",
                                      i + 1, kStart / 1000)) +
        "\n";
  }
  const std::string file = directory_.write("units.jsonl", text);
  expect_found(ids_of(fetch(exec_manager(), "{file: " + file + "}")));
  runner_.reply("units", {.output = text});
  expect_found(ids_of(fetch(exec_manager(), "{command: [/opt/units]}")));
}

TEST_F(DamagedRecords, OfExecThatPythonWrites) {
  runner_.reply("units",
                {.output = R"({"unit":1,"name":"caf\udce9","user":"ada","project":"p","start":1})"
                           "\n"
                           R"({"unit":2,"user":"ada","project":"p","start":9,"end":1})"
                           "\n"});
  const auto units = fetch(exec_manager(), "{command: [/opt/units]}");
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 1U);
  EXPECT_EQ(units->front().name, "caf\uFFFD");
}

TEST(DamagedLines, OfSacct) {
  static constexpr std::array<std::string_view, 10> kDamaged = {
      "x|#|", "x", "12", "|#||#|", "\xff\xfe", "12|#|p|#|q", "error: slurmdbd", "|", "12 ", "-1"};
  std::set<std::string> found;
  SacctReader reader("|#|", MemoryRule::kExact,
                     [&found](const SlurmJob& job) { found.insert(job.id); });
  for (int i = 0; i < kRecords; ++i) {
    std::string text = fmt::format("{}", i + 1);
    for (const char* field :
         {"p", "q", "acct", "g", "1", "ada", "2", "Unknown", "Unknown", "Unknown", "00:00:01", "1",
          "0:0", "RUNNING", "cpu=1", "n1", "n", "/d"}) {
      text += std::string("|#|") + field;
    }
    reader.add_line(i % kEvery == kEvery / 2 ? kDamaged.at(static_cast<std::size_t>(i / kEvery))
                                             : std::string_view(text));
  }
  ASSERT_TRUE(reader.finish());
  expect_found(found);
}

TEST(DamagedElements, OfSlurmrestd) {
  const auto job = [](int i) {
    return fmt::format(R"({{"account":"a","job_id":{},"user":"ada","nodes":"n1",)"
                       R"("steps":[{{"time":{{}}}},{{"time":{{}}}}],"name":"x"}})",
                       i + 1);
  };
  for (const bool errors_last : {false, true}) {
    const std::string text = R"({"meta":{"a":1},"jobs":[)" + records(job) + "]" +
                             (errors_last ? R"(,"errors":[{"error":"late"}]})" : "}");
    auto source = make_slurm_rest(
        {.url = "http://h", .version = "v0.0.43", .timeout = std::chrono::minutes(1)},
        [&text](const std::string& /*url*/, const net::StreamTaker& taker,
                const std::stop_token& /*stop*/) -> Result<net::ClientResponse> {
          for (std::string_view rest = text; !rest.empty();) {
            CEEMS_TRY(taker.part(rest.substr(0, 10'000)));
            rest.remove_prefix(std::min<std::size_t>(rest.size(), 10'000));
          }
          return net::ClientResponse{.status = 200, .headers = {}, .body = {}};
        },
        {.uid_of_user = [](const std::string&) { return std::nullopt; },
         .gid_of_group = [](const std::string&) { return std::nullopt; }});
    std::set<std::string> found;
    const auto done = source->jobs({.start_ms = kStart, .end_ms = kStart + kMinute},
                                   [&found](const SlurmJob& job) { found.insert(job.id); }, {});
    EXPECT_EQ(done.has_value(), !errors_last);  // the errors behind the jobs are read
    expect_found(found);
  }
}

TEST(DamagedElements, OfTheApiServerOfKubernetes) {
  const auto pod = [](int i) {
    return fmt::format(R"({{"metadata":{{"uid":"{}","name":"p"}},"spec":{{"containers":[)"
                       R"({{"name":"a"}},{{"name":"b"}}]}},"status":{{"phase":"Running"}}}})",
                       i + 1);
  };
  const auto page = kube::parse_pod_list(
      R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"next"},"items":[)" +
      records(pod) + "]}");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->resource_version, "7");
  EXPECT_EQ(page->next, "next");
  std::set<std::string> found;
  for (const auto& each : page->pods) {
    found.insert(each.uid);
  }
  expect_found(found);
  EXPECT_EQ(page->malformed, kRecords - found.size());
}

TEST(DamagedElements, OfNova) {
  const auto server = [](int i) {
    return fmt::format(R"({{"id":"{}","name":"x","status":"ACTIVE","flavor":{{"vcpus":2}}}})",
                       i + 1);
  };
  const auto page = openstack::parse_servers(
      R"({"servers":[)" + records(server) +
      R"(],"servers_links":[{"rel":"next","href":"http://h/servers/detail?marker=m"}]})");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->next_marker, "m");
  std::set<std::string> found;
  for (const auto& each : page->servers) {
    found.insert(each.id);
  }
  expect_found(found);
  EXPECT_EQ(page->malformed, kRecords - found.size());
}

}  // namespace
}  // namespace ceems::ingest
