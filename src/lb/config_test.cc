#include "lb/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::lb {
namespace {

using ::testing::HasSubstr;

Result<Config> read(std::string_view text) {
  auto document = config::parse_yaml(text, "lb.yml");
  EXPECT_TRUE(document);
  return parse_config(*document, "/etc/ceems");
}

std::string refusal(std::string_view text) {
  const auto config = read(text);
  return config ? "accepted" : config.error().message;
}

TEST(LbConfig, ReadsBackendsAndOwners) {
  const auto config = read(R"(
ceems_lb:
  strategy: least-connection
  backends:
    - id: c0
      tsdb:
        - web: {url: http://a:9090, basic_auth: {username: u, password_file: p}}
          filter_labels: [instance]
        - web: {url: https://b}
      pyroscope:
        - web: {url: http://p:4040}
    - id: c1
      pyroscope: [{web: {url: http://p:4040}}]
  access: {confine: true, pin_cluster: true, path_prefixes: [/prom], shared_metrics: [up], cache_age: 5s,
           lifetimes: true}
ceems_api_server:
  web: {url: http://api:9020}
  data: {path: /var/lib/ceems, update_interval: 15m}
  admin: {users: [root]}
clusters: [{id: c0, manager: slurm}, {id: c1, manager: k8s}]
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->strategy, Strategy::kLeastConnection);
  ASSERT_EQ(config->clusters.size(), 2U);
  ASSERT_EQ(config->clusters[0].tsdb.size(), 2U);
  EXPECT_EQ(config->clusters[0].tsdb[0].url, "http://a:9090");
  EXPECT_EQ(config->clusters[0].tsdb[0].filter_labels, std::vector<std::string>{"instance"});
  ASSERT_TRUE(config->clusters[0].tsdb[0].client.basic_auth);
  EXPECT_EQ(config->clusters[0].tsdb[0].client.basic_auth->password_file, "/etc/ceems/p");
  EXPECT_EQ(config->clusters[1].profiles.size(), 1U);
  EXPECT_TRUE(config->access.confine);
  EXPECT_TRUE(config->access.pin_cluster);
  EXPECT_TRUE(config->access.lifetimes);
  EXPECT_EQ(config->access.cache_age, std::chrono::seconds(5));
  EXPECT_EQ(config->api_url, "http://api:9020");
  EXPECT_EQ(config->data_path, "/var/lib/ceems");
  EXPECT_TRUE(config->has_owners());
}

TEST(LbConfig, WhatOneServerOfAClusterHidesAllHide) {
  const auto config = read(R"(
ceems_lb:
  backends:
    - id: c0
      tsdb:
        - web: {url: http://a}
        - {web: {url: http://b}, filter_labels: [instance, host]}
        - {web: {url: http://c}, filter_labels: [host, node]}
    - id: c1
      tsdb: [{web: {url: http://a}}]
)");
  ASSERT_TRUE(config) << config.error().message;
  for (const ServerConfig& server : config->clusters[0].tsdb) {
    EXPECT_EQ(server.filter_labels, (std::vector<std::string>{"host", "instance", "node"}))
        << server.url;
  }
  EXPECT_TRUE(config->clusters[1].tsdb[0].filter_labels.empty());
}

TEST(LbConfig, ServersOfAClusterAreOfOneKind) {
  const auto config = read(R"(
ceems_lb:
  backends:
    - {id: c0, tsdb: [{web: {url: http://a}}]}
    - {id: c1, tsdb: [{web: {url: http://a}, server: thanos}]}
    - id: c2
      tsdb:
        - {web: {url: http://a}, server: victoriametrics}
        - {web: {url: http://b}, server: victoriametrics}
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->clusters[0].tsdb[0].kind, gate::TsdbServer::kPrometheus);
  EXPECT_EQ(config->clusters[1].tsdb[0].kind, gate::TsdbServer::kThanos);
  EXPECT_EQ(config->clusters[2].tsdb[1].kind, gate::TsdbServer::kVictoriaMetrics);
  const auto backend = [](const std::string& servers) {
    return refusal("ceems_lb: {backends: [{id: c, " + servers + "}]}");
  };
  EXPECT_THAT(backend("tsdb: [{web: {url: http://a}, server: influx}]"),
              HasSubstr("expected prometheus, thanos or victoriametrics"));
  EXPECT_THAT(backend("tsdb: [{web: {url: http://a}, server: thanos}, {web: {url: http://b}}]"),
              HasSubstr("must be of the same kind"));
  EXPECT_THAT(backend("pyroscope: [{web: {url: http://a}, server: thanos}]"),
              HasSubstr("for TSDBs only"));
}

TEST(LbConfig, NothingIsEnoughForNoListener) {
  const auto config = read("{}");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->clusters.empty());
  EXPECT_FALSE(config->has_owners());
}

TEST(LbConfig, DataWithoutPathMeansData) {
  EXPECT_EQ(read("ceems_api_server: {data: {}}")->data_path, "data");
  EXPECT_EQ(read("ceems_api_server: {data: {update_interval: 15m}}")->data_path, "data");
  const auto remote = read("ceems_api_server: {data: {database_url: 'postgresql://h/d'}}");
  EXPECT_EQ(remote->data_path, std::nullopt);
  EXPECT_TRUE(remote->has_owners());
}

TEST(LbConfig, ObsoleteKeysOfASharedFileDoNotMatter) {
  const auto config = read("ceems_api_server: {web: {url: http://a:9020, requests_limit: 30}}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->api_url, "http://a:9020");
}

TEST(LbConfig, AnApiServerWithoutUrlIsAMistake) {
  for (const auto* const text :
       {"ceems_api_server: {web: {url: ''}}",
        "ceems_api_server: {web: {url: }}",  // of a variable that is unset
        "ceems_api_server: {web: {basic_auth: {username: a}}}",
        "ceems_api_server: {web: {basic_auth: {username: a}}, data: {}}"}) {
    EXPECT_THAT(refusal(text), HasSubstr("ceems_api_server.web: expected url")) << text;
  }
}

TEST(LbConfig, ASectionWithoutASourceOfOwnersDoesNotTurnAccessControlOff) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"ceems_api_server:\n  data:\n  # path: /var/lib/ceems",
       "lb.yml:2: ceems_api_server.data: expected path"},
      {"ceems_api_server:\n  web:\n", "lb.yml:2: ceems_api_server.web: expected url"},
      {"ceems_api_server:\n  admin: {users: [a]}\n  web: {}",
       "lb.yml:3: ceems_api_server.web: expected url"},
      {"ceems_api_server: {web: {requests_limit: 30}}", "expected url"},
      {"ceems_api_server: {data: , web: }", "ceems_api_server.web: expected url"},
      {"\nceems_api_server:\n", "lb.yml:2: ceems_api_server: expected data.path or web.url"},
      {"ceems_api_server: {admin: {users: [a]}}", "leave out the whole section"},
      {"ceems_api_server: {data: {database_url: ''}, web: }", ""},
  };
  for (const auto& [text, part] : cases) {
    if (part.empty()) {
      EXPECT_EQ(read(text)->data_path, "data") << text;
    } else {
      EXPECT_THAT(refusal(text), HasSubstr(part)) << text;
    }
  }
  // An empty one is not a mistake if the other is not empty.
  for (const auto* const text :
       {"ceems_api_server: {data: , web: {url: http://a}}", "ceems_api_server: {data: {}, web: }",
        "ceems_api_server: {data: {path: d}, web: {requests_limit: 30}}"}) {
    const auto config = read(text);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_TRUE(config->has_owners()) << text;
  }
}

TEST(LbConfig, SectionsOfOtherProgramsDoNotMatter) {
  const auto config = read(R"(
updaters: [{id: tsdb, updater: tsdb, web: {url: http://a}}]
redfish_collector: {protocol: https}
redfish_web_config: {protocol: https}
redfish_config: {port: 1}
ceems_tool: {}
ceems_lb: {strategy: }
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->strategy, Strategy::kRoundRobin);
}

TEST(LbConfig, WhatIsWrongIsNamedWithItsLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"ceems_lb: {strategy: resource-based}", "invalid strategy"},
      {"ceems_lb: {strategy: ''}", "invalid strategy"},
      {"ceems_lb: {backends: [{tsdb: [{web: {url: http://a}}]}]}", "missing ID for backend(s)"},
      {"ceems_lb: {backends: [{id: c}]}", "missing TSDB and Pyroscope URL(s) for backend(s)"},
      {"ceems_lb: {backends: [{id: c, tsdb_urls: [http://a]}]}",
       "missing TSDB and Pyroscope URL(s) for backend(s)"},
      {"ceems_lb: {backends: [{id: c, tsdb: [{}]}]}", "needs web.url"},
      {"ceems_lb: {backends: [{id: c, tsdb: [{web: {url: http://a, proxy_url: http://p}}]}]}",
       "proxy"},
      {"ceems_lb: {backends: [{id: c, tsdb: [{web: {url: http://a, tyop: 1}}]}]}", "unknown key"},
      {"ceems_api_server: {web: {url: http://a, tyop: 1}}", "unknown key"},
      {"ceems_lb: {stratgy: round-robin}", "strategy"},
      {"ceems_lb: {backends: {id: c}}", "expected a list"},
      {"ceems_lb: {backends: [{id: c, tsdb: [http://a]}]}", "expected a mapping"},
      {"ceems_lb: [round-robin]", "expected a mapping"},
      {"[ceems_lb]", "expected a mapping"},
      {"ceems_api_sever: {web: {url: http://a}}", "did you mean 'ceems_api_server'"},
      {"ceems_api_server: {data: /var/lib/ceems}", "expected a mapping"},
      {"ceems_api_server: {date: {path: /var/lib/ceems}}", "did you mean 'data'"},
      {"ceems_api_server: {data: {path: ''}}", "expected the name of a directory"},
      {"clusters: {id: c}", "expected a list"},
      {"ceems_lb:\n  access:\n    cache_age: 1m", "lb.yml:3"},
      {"ceems_lb: {access: {path_prefixes: [prom]}}", "must begin with '/'"},
      {"ceems_lb: {backends: [{id: c, tsdb: [{web: {url: http://a}}]}]}\nclusters: [{id: d}]",
       "unknown ID c found in backends"},
      {"ceems_lb: {backends: [{id: c, tsdb: [{web: {url: http://a}}]}, "
       "{id: c, tsdb: [{web: {url: http://a}}]}]}",
       "another backend"},
  };
  for (const auto& [text, part] : cases) {
    EXPECT_THAT(refusal(text), HasSubstr(part)) << text;
  }
}

TEST(LbConfig, AuditAndTheServiceAccountAreRead) {
  const std::string backend = "backends: [{id: c, tsdb: [{web: {url: http://a}}]}]";
  const auto config = read("ceems_lb: {audit: {file: /var/log/ceems/lb.log}, " + backend + R"(}
ceems_api_server:
  audit: {journal: true}
  series: {pin_cluster: true}
  web: {url: http://api, basic_auth: {username: lb, password: x}}
  identity:
    header: {trusted_proxies: [10.0.0.1], map: {lower_case: true}}
    service_account: {token_file: token, web_user: lb}
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->audit.file, "/var/log/ceems/lb.log");
  EXPECT_FALSE(config->audit.journal);
  EXPECT_EQ(config->names.apply("Ada"), "ada");
  EXPECT_TRUE(config->service_account.configured());
  EXPECT_EQ(config->service_account.token_file, "/etc/ceems/token");
  EXPECT_THAT(refusal("ceems_lb: {audit: {fil: x}}"), HasSubstr("lb.yml:1"));
  const std::string account =
      "ceems_api_server: {web: {url: http://api}, identity: "
      "{service_account: {";
  EXPECT_THAT(refusal(account + "web_user: lb}}}"), HasSubstr("basic_auth.username"));
  EXPECT_THAT(refusal(account + "token: x}}}"), HasSubstr("unknown key"));
}

}  // namespace
}  // namespace ceems::lb
