#include "api/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using Texts = std::vector<std::string>;

Result<Config> config_of(const std::string& text) {
  CEEMS_TRY(document, config::parse_yaml(text, "c.yml"));
  return parse_config(document, "/etc/ceems");
}

std::string config_error(const std::string& text) {
  const auto config = config_of(text);
  return config ? "no error" : config.error().message;
}

constexpr const char* kWhole = R"(
ceems_api_server:
  data:
    path: /var/lib/ceems
    backup_path: /backup
    backup_interval: 2d
    retention_period: 50h
    update_interval: 5m
    max_update_interval: 2h
    update_from: 2026-01-02T03:04
    time_zone: Europe/Paris
  admin:
    users: [root, ceems-int-svc]
  web:
    url: http://localhost:9020
    anything: the load balancer reads this
clusters:
  - id: hpc-a
    manager: slurm
    updaters: [prom]
    cli:
      path: /opt/slurm/bin
      environment_variables: {SLURM_CONF: /etc/slurm.conf, DEBUG: 1}
    extra_config: {command_timeout: 5m}
updaters:
  - id: prom
    updater: tsdb
    web:
      url: http://localhost:9090
      basic_auth: {username: u, password_file: secrets/p}
      tls_config: {ca_file: /ca.pem, min_version: TLS12, insecure_skip_verify: true}
      http_headers:
        X-Scope-OrgID: {values: [a, b], files: [h]}
    extra_config: {cutoff_duration: 5m}
redfish_collector: {web: {url: "https://bmc.example.org"}}
ceems_lb:
  strategy: round-robin
)";

TEST(Config, ReadsEverything) {
  const auto config = config_of(kWhole);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->data.path, "/var/lib/ceems");
  EXPECT_EQ(config->data.backup_path, "/backup");
  EXPECT_EQ(config->data.backup_interval, hours(48));
  EXPECT_EQ(config->data.retention, hours(48));  // whole days
  EXPECT_EQ(config->data.update_interval, minutes(5));
  EXPECT_EQ(config->data.max_update_interval, hours(2));
  EXPECT_EQ(config->data.update_from, "2026-01-02T03:04");
  EXPECT_EQ(config->data.time_zone, "Europe/Paris");
  EXPECT_EQ(config->admin.users, (Texts{"root", "ceems-int-svc"}));
  ASSERT_EQ(config->clusters.size(), 1U);
  const ingest::ClusterConfig& cluster = config->clusters[0];
  EXPECT_EQ(cluster.cluster.id, "hpc-a");
  EXPECT_EQ(cluster.cluster.manager, "slurm");
  EXPECT_EQ(cluster.cluster.updaters, Texts{"prom"});
  EXPECT_EQ(cluster.cli_path, "/opt/slurm/bin");
  EXPECT_EQ(cluster.cli_environment.at("DEBUG"), "1");
  EXPECT_EQ(cluster.extra["command_timeout"].as_duration().value(), std::chrono::minutes(5));
  ASSERT_EQ(config->updaters.size(), 1U);
  const ingest::UpdaterConfig& updater = config->updaters[0];
  EXPECT_EQ(updater.kind, "tsdb");
  EXPECT_EQ(updater.web_url, "http://localhost:9090");
  EXPECT_EQ(updater.web.basic_auth->username, "u");
  EXPECT_EQ(updater.web.basic_auth->password_file, "/etc/ceems/secrets/p");
  EXPECT_EQ(updater.web.tls.ca_file, "/ca.pem");
  EXPECT_TRUE(updater.web.tls.insecure_skip_verify);
  EXPECT_EQ(updater.web.headers.at("X-Scope-OrgID").values, (Texts{"a", "b"}));
  EXPECT_EQ(updater.web.headers.at("X-Scope-OrgID").files, Texts{"/etc/ceems/h"});
  EXPECT_TRUE(config->warnings.empty());
}

TEST(Config, NamesTheRulesOfReports) {
  EXPECT_EQ(config_of("").value().report.rules, "/etc/ceems/rules.d");
  EXPECT_EQ(config_of("ceems_api_server: {report: {rules: mine}}\n").value().report.rules,
            "/etc/ceems/mine");
  EXPECT_THAT(config_error("ceems_api_server:\n  report: {rule: x}\n"),
              ::testing::HasSubstr(":2: ceems_api_server.report.rule: unknown key"));
}

TEST(Config, SaysHowManyReportsAreMadeAndHowLongTheyAreKept) {
  const ReportOptions otherwise = config_of("").value().report;
  EXPECT_EQ(otherwise.rate, 20);
  EXPECT_EQ(otherwise.keep, std::chrono::days(400));
  const ReportOptions given =
      config_of("ceems_api_server: {report: {rate: 0, keep: 30d}}\n").value().report;
  EXPECT_EQ(given.rate, 0);
  EXPECT_EQ(given.keep, std::chrono::days(30));
  for (const auto& [key, message] :
       std::vector<std::pair<std::string, std::string>>{{"rate: -1", "from 0 to 1000"},
                                                        {"rate: 1001", "from 0 to 1000"},
                                                        {"rate: .nan", "report.rate"},
                                                        {"rate: fast", "report.rate"},
                                                        {"keep: 23h", "at least 1d"},
                                                        {"keep: 400", "report.keep"}}) {
    const std::string error = config_error("ceems_api_server:\n  report:\n    " + key + "\n");
    EXPECT_THAT(error, ::testing::HasSubstr(":3: ceems_api_server.report.")) << key;
    EXPECT_THAT(error, ::testing::HasSubstr(message)) << key;
  }
}

TEST(Config, HasDefaults) {
  for (const char* text : {"", "ceems_api_server:\n  data: {}\n", "ceems_api_server: {data: }"}) {
    const auto config = config_of(text);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->data.path, "data");
    EXPECT_EQ(config->data.update_interval, minutes(15));
    EXPECT_EQ(config->data.max_update_interval, hours(1));
    EXPECT_EQ(config->data.retention, hours(30 * 24));
    EXPECT_EQ(config->admin.users, Texts{"ceems-int-svc"});
    EXPECT_EQ(config->warnings, Texts{"no clusters are configured: nothing will be collected"});
  }
}

TEST(Config, AcceptsEveryFormOfUpdateFromAndTimeZone) {
  for (const char* from :
       {"today", "''", "2026-01-02", "2026-01-02T03:04", "2026-01-02T03:04:05", "'2026-01-02'"}) {
    EXPECT_EQ(
        config_error(std::string("ceems_api_server:\n  data:\n    update_from: ") + from + "\n"),
        "no error")
        << from;
  }
  for (const char* from : {"2026-1-2", "2026-01-02 03:04", "2026-13-02", "2026-01-02T03:04:05Z",
                           "now", "2026-02-30"}) {
    EXPECT_EQ(
        config_error(std::string("ceems_api_server:\n  data:\n    update_from: ") + from + "\n"),
        std::string("c.yml:3: ceems_api_server.data.update_from: failed to parse time "
                    "string: ") +
            from);
  }
  for (const char* zone : {"''", "UTC", "Local", "Europe/Paris", "Australia/Lord_Howe"}) {
    EXPECT_EQ(
        config_error(std::string("ceems_api_server:\n  data:\n    time_zone: ") + zone + "\n"),
        "no error")
        << zone;
  }
}

TEST(Config, BackupsMayBeFrequentWithoutChecks) {
  const auto document = config::parse_yaml(
      "ceems_api_server: {data: {backup_path: /b, backup_interval: 2s}}", "c.yml");
  ASSERT_TRUE(document);
  EXPECT_FALSE(parse_config(*document, "/"));
  EXPECT_TRUE(parse_config(*document, "/", false));
}

TEST(Config, GrafanaTeamsMayBeNumbersOrTexts) {
  const auto config = config_of(
      "ceems_api_server: {admin: {grafana: {url: 'https://grafana', teams_ids: [1, '2', x]}}}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->admin.grafana_url, "https://grafana");
  EXPECT_EQ(config->admin.grafana_teams, (Texts{"1", "2", "x"}));
}

TEST(Config, UnknownKeysAreNamedWithTheirPlace) {
  EXPECT_EQ(config_error("ceems_api_server:\n  data:\n    update_intervall: 1s\n"),
            "c.yml:3: ceems_api_server.data.update_intervall: unknown key, did you mean "
            "'update_interval'?");
  EXPECT_EQ(config_error("ceems_api_sever: {}\n"),
            "c.yml:1: ceems_api_sever: unknown key, did you mean 'ceems_api_server'?");
  EXPECT_EQ(config_error("updaters: [{id: a, updater: tsdb, web: {ur: x}}]\n"),
            "c.yml:1: updaters[0].web.ur: unknown key, did you mean 'url'?");
}

TEST(Config, WrongTypesAndValuesAreNamedWithTheirPlace) {
  const std::string data = "ceems_api_server:\n  data:\n    ";
  EXPECT_EQ(config_error(data + "update_interval: soon\n").substr(0, 47),
            "c.yml:3: ceems_api_server.data.update_interval:");
  EXPECT_EQ(config_error(data + "update_interval: 0\n"),
            "c.yml:3: ceems_api_server.data.update_interval: update_interval and/or "
            "max_update_interval must be more than 0s");
  for (const char* interval : {"0\n    backup_path: /b", "23h"}) {
    EXPECT_EQ(config_error(data + "backup_interval: " + interval + "\n"),
              "c.yml:3: ceems_api_server.data.backup_interval: backup_interval of less than 1 day "
              "is not supported");
  }
  EXPECT_EQ(config_error(data + "backup_interval: 0\n"), "no error");
  EXPECT_EQ(config_error(data + "max_update_interval: 0s\n"),
            "c.yml:3: ceems_api_server.data.max_update_interval: update_interval and/or "
            "max_update_interval must be more than 0s");
  EXPECT_EQ(config_error(data + "time_zone: Mars/Base\n"),
            "c.yml:3: ceems_api_server.data.time_zone: unknown time zone Mars/Base");
  EXPECT_EQ(config_error(data + "update_from: yesterday\n"),
            "c.yml:3: ceems_api_server.data.update_from: failed to parse time string: yesterday");
  EXPECT_EQ(config_error("ceems_api_server:\n  admin:\n    users: {a: b}\n").substr(0, 9),
            "c.yml:3: ");
  EXPECT_EQ(config_error("clusters: {}\n"), "c.yml:1: clusters: expected a list");
  EXPECT_EQ(config_error("ceems_api_server: [1]\n"),
            "c.yml:1: ceems_api_server: expected a mapping");
}

TEST(Config, IdsAndManagersAreChecked) {
  EXPECT_EQ(config_error("clusters: [{id: a, manager: slurm}, {id: a, manager: slurm}]\n"),
            "c.yml:1: clusters[1].id: duplicate ID found in clusters config: a");
  EXPECT_EQ(config_error("clusters: [{id: a, manager: slrum}]\n"),
            "c.yml:1: clusters[0].manager: unknown resource manager found in the config: slrum");
  EXPECT_EQ(config_error("clusters: [{id: a.b, manager: slurm}]\n"),
            "c.yml:1: clusters[0].id: invalid cluster ID. It must contain only [a-zA-Z0-9-_]: a.b");
  EXPECT_EQ(config_error("updaters: [{id: a, updater: x}]\n"),
            "c.yml:1: updaters[0].updater: unknown updater found in the config: x");
  EXPECT_EQ(config_error("updaters: [{id: a, updater: tsdb}, {id: a, updater: tsdb}]\n"),
            "c.yml:1: updaters[1].id: duplicate ID found in updaters config: a");
}

TEST(Config, OldKeysAreAcceptedWithAWarning) {
  const auto config = config_of(
      "ceems_api_server:\n  data: {query_batch_size: 5}\n  admin: {users_db_file: x}\n"
      "clusters: [{id: a, manager: slurm}]\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->warnings,
            (Texts{"c.yml:2: ceems_api_server.data.query_batch_size: no longer has an effect",
                   "c.yml:3: ceems_api_server.admin.users_db_file: no longer has an effect"}));
}

TEST(Config, PostgreSqlIsNotBackedUpByTheServer) {
  const auto config = config_of(
      "ceems_api_server: {data: {database_url: 'postgresql://u@db/ceems',"
      " database_password_file: secrets/db}}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->data.database_url, "postgresql://u@db/ceems");
  EXPECT_EQ(config->data.database_password_file, "/etc/ceems/secrets/db");
  EXPECT_EQ(config_error("ceems_api_server: {data: {database_url: 'postgresql://u:secret@db/ceems',"
                         " backup_path: /b}}"),
            "c.yml:1: ceems_api_server.data.backup_path: cannot be combined with database_url: use"
            " pg_dump to back up PostgreSQL");
  EXPECT_EQ(config_error("ceems_api_server: {data: {database_password_file: /p}}"),
            "c.yml:1: ceems_api_server.data.database_password_file: needs database_url");
}

std::string client_error(const std::string& block) {
  return config_error("updaters: [{id: a, updater: tsdb, web: {" + block + "}}]");
}

TEST(Config, HttpClientsAreThoseOfPrometheus) {
  const std::string at = "c.yml:1: updaters[0].web";
  EXPECT_EQ(client_error("basic_auth: {username: a}, bearer_token: b"),
            at + ": at most one of basic_auth, authorization, oauth2, bearer_token and "
                 "bearer_token_file");
  EXPECT_EQ(client_error("tls_config: {cafile: a}"),
            at + ".tls_config.cafile: unknown key, did you mean 'ca_file'?");
  EXPECT_EQ(client_error("tsl_config: {}"),
            at + ".tsl_config: unknown key, did you mean 'tls_config'?");
  const auto bearer = config_of("updaters: [{id: a, updater: tsdb, web: {bearer_token: secret}}]");
  ASSERT_TRUE(bearer);
  EXPECT_EQ(bearer->updaters[0].web.authorization->credentials, "secret");
  EXPECT_EQ(bearer->updaters[0].web.user_agent, "ceems_api_server");
}

TEST(Config, ServersOfProfilesAreRead) {
  EXPECT_TRUE(config_of("clusters: []")->profiles.empty());
  const auto with = [](const std::string& list) {
    return "clusters: [{id: a, manager: slurm}, {id: b, manager: slurm}]\n"
           "ceems_api_server: {profiles: " +
           list + "}";
  };
  const auto config = config_of(
      with("[{clusters: [a], web: {url: 'http://p:4040', basic_auth: {username: u, password_file: "
           "s}}}, {clusters: [b], web: {url: 'https://q'}}]"));
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->profiles.size(), 2U);
  EXPECT_EQ(config->profiles[0].clusters, Texts{"a"});
  EXPECT_EQ(config->profiles[0].url, "http://p:4040");
  EXPECT_EQ(config->profiles[0].web.basic_auth->password_file, "/etc/ceems/s");
  EXPECT_EQ(config->profiles[0].web.user_agent, "ceems_api_server");
  EXPECT_EQ(config->profiles[1].url, "https://q");
  const std::string at = "c.yml:2: ceems_api_server.profiles";
  EXPECT_EQ(config_error(with("{}")), at + ": expected a list");
  EXPECT_EQ(config_error(with("[{clusters: [a]}]")), at + "[0]: profiles need web.url");
  EXPECT_EQ(config_error(with("[{web: {url: http://p, pasword: a}}]")),
            at + "[0].web.pasword: unknown key");
  EXPECT_EQ(config_error(with("[{url: http://p}]")), at + "[0].url: unknown key");
  EXPECT_EQ(config_error(with("[{clusters: [c], web: {url: http://p}}]")),
            at + ": no cluster is called 'c'");
  EXPECT_EQ(config_error(with("[{web: {url: http://p}}, {clusters: [b], web: {url: http://q}}]")),
            at + ": two servers have the cluster 'b'");
}

TEST(Config, SeriesAndAuditAreRead) {
  const auto none = config_of("clusters: []");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->series.pin_cluster);
  EXPECT_EQ(none->series.cluster_label, "ceems_id");
  EXPECT_FALSE(none->audit.enabled());
  const auto config = config_of(
      "ceems_api_server: {series: {pin_cluster: false, cluster_label: site}, audit: {file: a}}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->series.pin_cluster, false);
  EXPECT_EQ(config->series.cluster_label, "site");
  EXPECT_EQ(config->audit.file, "/etc/ceems/a");
  for (const char* wrong : {"series: {cluster_label: \"a-b\"}", "series: {pin: true}",
                            "audit: {file: a, journal: true}", "audit: {path: a}"}) {
    EXPECT_NE(config_error(std::string("ceems_api_server: {") + wrong + "}").find("c.yml:1"),
              std::string::npos)
        << wrong;
  }
}

}  // namespace
}  // namespace ceems::api
