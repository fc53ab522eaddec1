#include "ingest/update_source.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/fake_runner.h"

namespace ceems::ingest {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFirst = "http://first.example.org:9090";
constexpr const char* kOwn = "http://own.example.org:9090";

UpdaterConfig updater(const std::string& id, const std::string& url) {
  UpdaterConfig config{.id = id, .kind = "tsdb", .web_url = url, .web = {}, .extra = {}};
  config.web.user_agent = "client of " + id;
  return config;
}

ClusterConfig cluster(const std::string& manager, const std::vector<std::string>& updaters) {
  ClusterConfig config;
  config.cluster = {.id = "c1", .manager = manager, .updaters = updaters};
  config.web.user_agent = "client of c1";
  return config;
}

/// Returns the URL and user agent, or "none".
std::string tsdb_of(const ClusterConfig& config, const std::vector<UpdaterConfig>& updaters) {
  const auto found = tsdb_of_cluster(config, updaters);
  if (!found) {
    return found.error().message;
  }
  return *found ? (*found)->url + " " + (*found)->web.user_agent : "none";
}

TEST(TsdbOfCluster, IsThatOfTheFirstUpdaterWithAUrl) {
  const std::vector<UpdaterConfig> updaters = {updater("off", ""), updater("a", kFirst),
                                               updater("b", "http://second.example.org")};
  EXPECT_EQ(tsdb_of(cluster("slurm", {"none", "off", "a", "b"}), updaters),
            std::string(kFirst) + " client of a");
  EXPECT_EQ(tsdb_of(cluster("slurm", {"off"}), updaters), "none");
  EXPECT_EQ(tsdb_of(cluster("slurm", {}), updaters), "none");
  EXPECT_EQ(tsdb_of(cluster("local", {"a"}), updaters), std::string(kFirst) + " client of a");
}

TEST(TsdbOfCluster, IsNotTheWebSectionOfAManagerThatReadsUnitsElsewhere) {
  ClusterConfig config = cluster("slurm", {"a"});
  config.web_url = kOwn;
  EXPECT_EQ(tsdb_of(config, {updater("a", kFirst)}), std::string(kFirst) + " client of a");
  EXPECT_EQ(tsdb_of(config, {}), "none");
}

TEST(TsdbOfCluster, IsThatOfTheManagerThatReadsItsUnitsFromIt) {
  ClusterConfig config = cluster("local", {"a"});
  config.web_url = kOwn;
  EXPECT_EQ(tsdb_of(config, {updater("a", kFirst)}), std::string(kOwn) + " client of c1");
  config.extra = config::parse_yaml("tsdb: http://extra.example.org", "c.yml").value();
  EXPECT_EQ(tsdb_of(config, {updater("a", kFirst)}), "http://extra.example.org client of c1");
  config.web_url.clear();
  EXPECT_EQ(tsdb_of(config, {updater("a", kFirst)}), "http://extra.example.org client of c1");
  EXPECT_EQ(tsdb_of(config, {}), "http://extra.example.org client of c1");
  config.extra = config::parse_yaml("tsdb: [1]", "c.yml").value();
  EXPECT_THAT(tsdb_of(config, {}), HasSubstr("c.yml:1: tsdb:"));
}

struct SourceFixture {
  Result<std::vector<UpdateSource>> create(const std::vector<ClusterConfig>& clusters,
                                           const std::vector<UpdaterConfig>& updaters) {
    return create_sources(clusters, updaters, {.clock = &clock, .runner = &runner});
  }
  testing::FakeClock clock;
  testing::FakeRunner runner;
};

TEST(CreateSources, LeavesOutUpdatersThatAreUnknownOrLackTheUrlTheyNeed) {
  SourceFixture f;
  const auto sources = f.create({cluster("local", {"none", "off", "a"})},
                                {updater("off", ""), updater("a", kFirst)});
  ASSERT_TRUE(sources) << sources.error().message;
  ASSERT_EQ(sources->size(), 1U);
  EXPECT_EQ(sources->front().cluster.id, "c1");
  EXPECT_NE(sources->front().manager, nullptr);
  ASSERT_EQ(sources->front().updaters.size(), 1U);
  EXPECT_EQ(sources->front().updaters[0].id, "a");
}

TEST(CreateSources, GivesTheManagerTheTsdbItReadsUnitsFrom) {
  SourceFixture f;
  const auto without = f.create({cluster("local", {})}, {});
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("cluster c1: manager local needs the URL"));
  EXPECT_TRUE(f.create({cluster("local", {"a"})}, {updater("a", kFirst)}));
}

TEST(CreateSources, ChecksUpdatersThatNoClusterUses) {
  SourceFixture f;
  UpdaterConfig wrong = updater("a", kFirst);
  wrong.extra = config::parse_yaml("{query_max_series: -1}", "c.yml").value();
  EXPECT_THAT(f.create({}, {wrong}).error().message,
              HasSubstr("query_max_series must be more than 0"));
  wrong.extra =
      config::parse_yaml("{queries: {avg_cpu_usage: {global: 'up{{.UUIDs}'}}}", "c.yml").value();
  EXPECT_THAT(f.create({}, {wrong}).error().message, HasSubstr("c.yml:1"));
  EXPECT_TRUE(f.create({}, {updater("a", kFirst)}));
}

}  // namespace
}  // namespace ceems::ingest
