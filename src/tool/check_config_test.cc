#include "tool/files/check_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"
#include "tool/fake_console.h"

namespace ceems::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FileCheck checked(std::string_view text) {
  const testing::TempDir dir;
  return check_config_file(dir.write("file.yml", text).string(), false);
}

TEST(CheckConfig, FindsTheProgramsOfAFile) {
  const FileCheck both = checked(
      "ceems_api_server: {data: {path: /var/lib/ceems}}\n"
      "clusters: [{id: a, manager: slurm}]\n"
      "ceems_lb: {backends: [{id: a, tsdb: [{web: {url: 'http://localhost:9090'}}]}]}\n");
  EXPECT_EQ(both.error, "");
  EXPECT_THAT(both.programs, ElementsAre("ceems_api_server", "ceems_lb"));
  EXPECT_THAT(checked("redfish_collector: {}\n").programs, ElementsAre("ceems_exporter (Redfish)"));
  EXPECT_THAT(checked("pdu_collector: [{protocol: http, hostname: p, outlet: {}}]\n").error,
              HasSubstr("pdu_collector[0].outlet: unknown key, did you mean 'outlets'?"));
  EXPECT_THAT(checked("basic_auth_users: {}\n").programs, ElementsAre("web configuration"));
  const FileCheck client = checked("basic_auth: {username: a, password: b}\n");
  EXPECT_EQ(client.error, "");
  EXPECT_THAT(client.programs, ElementsAre("HTTP client configuration"));
}

TEST(CheckConfig, NamesTheLineAndTheKeyThatWasMeant) {
  EXPECT_THAT(
      checked("ceems_api_server:\n  data:\n    pth: /x\n").error,
      HasSubstr("file.yml:3: ceems_api_server.data.pth: unknown key, did you mean 'path'?"));
  EXPECT_THAT(checked("ceems_lb:\n  strateg: round-robin\n").error,
              HasSubstr("file.yml:2: ceems_lb.strateg: unknown key, did you mean 'strategy'?"));
  EXPECT_THAT(checked("ceems_api_serve: {}\n").error,
              HasSubstr("file.yml:1: ceems_api_serve: unknown key, did you mean "
                        "'ceems_api_server'?"));
}

TEST(CheckConfig, KnowsTheExamples) {
  const std::filesystem::path examples =
      std::filesystem::path(CEEMS_TEST_ROOT) / ".." / "packaging" / "config";
  for (const auto& [file, program] :
       {std::pair("api-server-config.yml", "ceems_api_server"),
        std::pair("lb-config.yml", "ceems_lb"), std::pair("cacct.yml", "cacct"),
        std::pair("redfish-proxy.yml", "redfish_proxy"),
        std::pair("ebpf-profiling-config.yml", "ceems_exporter (profiler)")}) {
    const FileCheck check = check_config_file((examples / file).string(), false);
    EXPECT_EQ(check.error, "") << file;
    EXPECT_THAT(check.programs, ::testing::Contains(program)) << file;
  }
  EXPECT_THAT(checked("ceems_api_server: {web: {url: http://a}}\ntsdb: {querys: {}}\n").error,
              HasSubstr("tsdb.querys: unknown key"));
  EXPECT_THAT(checked("ceems_profiler: {ebpf: {sampel_rate: 1}}\n").error,
              HasSubstr("file.yml:1: ceems_profiler.ebpf.sampel_rate: unknown key, did you mean "
                        "'sample_rate'?"));
  EXPECT_THAT(checked("redfish_proxy: {target: []}\n").error,
              HasSubstr("redfish_proxy.target: unknown key, did you mean 'targets'?"));
}

TEST(CheckConfig, ChecksWhatManagersRead) {
  const FileCheck check =
      checked("clusters:\n  - id: a\n    manager: slurm\n    extra_config:\n      nonsense: 1\n");
  EXPECT_THAT(check.error, HasSubstr("file.yml:5: clusters[0].extra_config.nonsense: unknown key"));
}

TEST(CheckConfig, SaysWhatOtherReleasesWouldNotAccept) {
  EXPECT_THAT(
      checked("ceems_api_server: {web: {url: 'http://a'}}\n"
              "logging: {enabled: true}\n"
              "tsdb:\n"
              "  web: {url: 'http://t'}\n"
              "  queries:\n"
              "    a: 'up{uuid=\"%s\"}'\n"
              "    b: 'up{uuid=~\"{{.UUIDs}}\"}'\n")
          .releases,
      ElementsAre("line 6: tsdb.queries: CEEMS 0.16 and later expects a list of queries with "
                  "name and kind",
                  "line 7: tsdb.queries.b: CEEMS before 0.16 knows %s only, no {{.UUIDs}}",
                  "line 2: logging: CEEMS before 0.12 writes no log of cacct"));
  EXPECT_THAT(checked("ceems_api_server: {cluster_id: a, web: {url: 'http://a'}}\n"
                      "tsdb: {queries: [{name: a, query: 'up{uuid=\"%s\"}'}]}\n")
                  .releases,
              ElementsAre("line 2: tsdb.queries: CEEMS before 0.16 expects a mapping of names to "
                          "queries"));
  const FileCheck server = checked(
      "clusters:\n"
      "  - {id: a, manager: slurm}\n"
      "  - {id: b, manager: lsf}\n"
      "  - {id: c, manager: openpbs}\n"
      "updaters:\n"
      "  - id: u\n"
      "    updater: tsdb\n"
      "    web: {url: 'http://t'}\n"
      "    extra_config:\n"
      "      queries:\n"
      "        avg_cpu_usage: {global: 'a'}\n"
      "        max_custom_stats: {temp: 'b'}\n");
  EXPECT_EQ(server.error, "");
  EXPECT_THAT(
      server.releases,
      ElementsAre("line 3: clusters[1].manager: CEEMS before 0.14 has no manager lsf",
                  "line 4: clusters[2].manager: CEEMS has no manager openpbs",
                  "line 12: updaters[0].extra_config.queries.max_custom_stats: CEEMS before "
                  "0.15 has no custom metrics"));
  EXPECT_THAT(checked("clusters: [{id: a, manager: slurm}]\n").releases, IsEmpty());
  EXPECT_THAT(checked("clusters: 5\nupdaters: [7]\ntsdb: [1]\nlogging:\n").releases, IsEmpty());
  const testing::TempDir dir;
  const std::string file = dir.write("c.yml", "clusters: [{id: a, manager: lsf}]\n").string();
  FakeConsole console;
  EXPECT_EQ(run_tool({"check", "config", file}, console), 0);
  EXPECT_EQ(console.err, file +
                             " (ceems_api_server) RELEASES: line 1: clusters[0].manager: CEEMS "
                             "before 0.14 has no manager lsf\n" +
                             file + " (ceems_api_server) SUCCESS\n");
}

TEST(CheckConfig, RefusesWhatNoProgramReads) {
  EXPECT_THAT(checked("- a\n").error, HasSubstr("expected a mapping"));
  EXPECT_THAT(checked("").error, HasSubstr("expected a mapping"));
  EXPECT_THAT(checked("a: [\n").error, HasSubstr("file.yml:"));
  EXPECT_THAT(checked("ceems_exporter: {}\n").error,
              HasSubstr("no section that this program can check"));
  EXPECT_THAT(check_config_file("/nonexistent", false).error, HasSubstr("/nonexistent"));
}

TEST(CheckConfig, FailsIfOneFileIsWrong) {
  const testing::TempDir dir;
  const std::string good = dir.write("good.yml", "basic_auth_users: {}\n").string();
  const std::string bad = dir.write("bad.yml", "ceems_lb: 1\n").string();
  FakeConsole console;
  EXPECT_EQ(run_tool({"check", "config", good}, console), 0);
  EXPECT_EQ(console.err, good + " (web configuration) SUCCESS\n");
  EXPECT_EQ(run_tool({"check", "config", good, bad, "--json"}, console), 1);
  EXPECT_THAT(console.out, HasSubstr(R"({"file":")" + good + R"(","ok":true,)"));
  EXPECT_THAT(console.out,
              HasSubstr(R"(,"ok":false,"programs":["ceems_lb"],"warnings":[],"releases":[],)"));
  EXPECT_EQ(run_tool({"check", "config"}, console), 1);
}

}  // namespace
}  // namespace ceems::tool
