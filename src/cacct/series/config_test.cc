#include "cacct/series/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kServer =
    "ceems_api_server: {cluster_id: c, web: {url: http://a:9020}}\n";

Result<Config> read(std::string_view text) {
  const auto document = config::parse_yaml(text, "config.yml");
  return document ? parse_config(*document, "/etc/ceems") : fail(document.error());
}
Result<Config> with_tsdb(std::string_view text) {
  return read(std::string(kServer) + std::string(text));
}
std::string refusal(std::string_view text) {
  const auto config = with_tsdb(text);
  return config ? "accepted" : config.error().message;
}
std::string rendered(std::string_view text, const std::vector<std::string>& uuids) {
  SeriesQuery query;
  const auto set = query.set_text(text);
  tsdb::QueryVariables variables;
  variables.rate_interval = "2m";
  return set ? query.render(uuids, variables) : set.error().message;
}

TEST(Config, HasTheDefaultsOfTheReference) {
  const auto config = read(kServer);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->cluster_id, "c");
  EXPECT_EQ(config->user_header, "X-Grafana-User");
  EXPECT_EQ(config->api_url, "http://a:9020");
  EXPECT_TRUE(config->queries.empty());
  EXPECT_FALSE(config->log.enabled);
  EXPECT_EQ(config->log.directory, "/var/log/ceems");
}

TEST(Config, ReadsQueriesAsAMapping) {
  const auto config = with_tsdb(
      "tsdb: {web: {url: http://p}, queries: {cpu: 'x{uuid=~\"%s\"}', mem: 'y{uuid=\"%s\"}'}}");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->queries.size(), 2U);
  EXPECT_EQ(config->queries[0].name, "cpu");
  EXPECT_FALSE(config->queries[0].instant);
  EXPECT_FALSE(config->listed);
  EXPECT_EQ(config->max_units, std::nullopt);
}

TEST(Config, ReadsQueriesAsAList) {
  const auto config = with_tsdb(R"(
tsdb:
  queries:
    - {name: cpu, title: CPU, help: Use, query: 'x{uuid=~"{{.UUIDs}}"}', kind: range}
    - {name: max_mem, query: 'max_over_time(y{uuid=~`{{.UUIDs}}`}[{{.Range}}])', kind: instant}
  range_queries:
    - {name: more, query: 'z{uuid=~"{{.UUIDs}}"}'}
  max_units_for_range_queries: 4
  scrape_interval: 15s
logging: {enabled: true, level: debug, format: json, directory: /var/log/x}
)");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->queries.size(), 3U);
  EXPECT_EQ(config->queries[0].help, "Use");
  EXPECT_TRUE(config->queries[1].instant);
  EXPECT_EQ(config->queries[1].title, "max_mem");
  EXPECT_TRUE(config->listed);
  EXPECT_EQ(config->max_units, 4);
  EXPECT_EQ(config->scrape_interval, std::chrono::seconds(15));
  EXPECT_TRUE(config->log.enabled);
  EXPECT_EQ(config->log.format, log::Format::kJson);
  EXPECT_EQ(with_tsdb("tsdb: {queries: []}")->max_units, 10);
}

TEST(Config, RefusesMistakes) {
  EXPECT_EQ(refusal("tsdbs: {}"), "config.yml:2: tsdbs: unknown key, did you mean 'tsdb'?");
  EXPECT_EQ(refusal("tsdb: {querys: {}}"),
            "config.yml:2: tsdb.querys: unknown key, did you mean 'queries'?");
  EXPECT_THAT(refusal("tsdb: {queries: 1}"), HasSubstr("tsdb.queries: expected a list, or a"));
  EXPECT_THAT(refusal("tsdb: {queries: {a: up}}"),
              HasSubstr("tsdb.queries.a: expected {{.UUIDs}} or %s instead of the unit ID"));
  EXPECT_THAT(refusal("tsdb: {queries: [{name: a, query: 'x{uuid=\"{{.UUID}}\"}'}]}"),
              HasSubstr("tsdb.queries[0].query: "));
  EXPECT_THAT(refusal("tsdb: {queries: [{name: a, query: 'x[{{.Range}}]'}]}"),
              HasSubstr("expected {{.UUIDs}} instead of"));
  EXPECT_THAT(refusal("tsdb: {queries: [{name: a, query: '%s', kind: x}]}"),
              HasSubstr("kind: expected range or instant"));
  EXPECT_THAT(refusal("tsdb: {queries: [{name: a, query: '%s'}, {name: a, query: '%s'}]}"),
              HasSubstr("tsdb.queries[1]: the name 'a' is used twice"));
  EXPECT_THAT(refusal("tsdb: {max_units: 0}"), HasSubstr("tsdb.max_units: expected at least 1"));
  EXPECT_THAT(refusal("tsdb: {scrape_interval: 0s}"), HasSubstr("expected more than 0"));
  EXPECT_THAT(refusal("tsdb: {web: {basic_auth: {username: u}}}"),
              HasSubstr("tsdb.web: expected a URL"));
  EXPECT_THAT(refusal("logging: {level: loud}"), HasSubstr("logging.level: expected a log level"));
  const auto without_server = read("tsdb: {web: {url: http://p}}");
  ASSERT_FALSE(without_server);
  EXPECT_THAT(without_server.error().message, HasSubstr("expected url, the URL of the API server"));
}

TEST(SeriesQuery, MatchesOnlyTheUnitsGiven) {
  EXPECT_EQ(rendered("x{uuid=~\"%s\"}", {"147973"}), "x{uuid=~\"147973\"}");
  EXPECT_EQ(rendered("x{uuid=~\"%s\"}", {"6[1]", "a.b"}), "x{uuid=~\"6[[]1[]]|a[.]b\"}");
  EXPECT_EQ(rendered("x{uuid=\"%s\"}", {"6[1]"}), "x{uuid=\"6[1]\"}");
  EXPECT_EQ(rendered("x{uuid='%s'} + y{uuid =~ '%s'}", {"a.b"}),
            "x{uuid='a.b'} + y{uuid =~ 'a[.]b'}");
  EXPECT_EQ(rendered("x{uuid=~`{{.UUIDs}}`}[{{ .RateInterval }}]", {"6[1]"}),
            "x{uuid=~`6[[]1[]]`}[2m]");
  // A hostile ID cannot leave its quotes.
  EXPECT_EQ(rendered("x{uuid=\"%s\"}", {"a\"} or y{\""}), "x{uuid=\"a\\\"} or y{\\\"\"}");
}

TEST(Config, ReplacesSecretFilesByTheirContent) {
  const testing::TempDir dir;
  net::ClientOptions options;
  options.basic_auth = {.username = "u", .password_file = dir.write("p", "geheim\n")};
  options.headers["X-A"].files = {dir.write("h", "one")};
  ASSERT_TRUE(read_secret_files(options));
  EXPECT_EQ(options.basic_auth->password, "geheim");
  EXPECT_EQ(options.basic_auth->password_file, "");
  EXPECT_THAT(options.headers["X-A"].secrets, ElementsAre("one"));
  EXPECT_TRUE(options.headers["X-A"].files.empty());
  options.basic_auth->password_file = dir.path() / "missing";
  const auto missing = read_secret_files(options);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("missing"));
}

}  // namespace
}  // namespace ceems::cacct
