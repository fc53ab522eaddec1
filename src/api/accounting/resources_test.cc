#include "api/accounting/resources.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

Result<std::vector<Resource>> resources(std::string_view text) {
  return read_resources(config::parse_yaml(text, "resources.yml").value());
}

TEST(Resources, AreReadWithTheirNodesAndPrices) {
  const auto all = resources(
      "resources:\n"
      "  - cluster: hpc-a\n"
      "    partition: cpu\n"
      "    nodes: 40\n"
      "    node: {cpus: 64, memory_gib: 256, gpus: 0}\n"
      "    time_limit: 3d\n"
      "    core_hour: 0.01\n"
      "    for: everybody\n"
      "    note: starts soonest\n"
      "  - site: National service\n"
      "    url: https://national.example\n"
      "    least: {nodes: 16, gpus: 32}\n");
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 2U);
  const Resource& cpu = all->front();
  EXPECT_EQ(cpu.cluster, "hpc-a");
  EXPECT_EQ(cpu.partition, "cpu");
  EXPECT_EQ(cpu.nodes, 40);
  EXPECT_EQ(cpu.cpus, 64);
  EXPECT_EQ(cpu.memory, 274877906944);
  EXPECT_EQ(cpu.gpus, 0);
  EXPECT_EQ(cpu.time_limit, 259200);
  EXPECT_EQ(cpu.core_hour, 0.01);
  EXPECT_FALSE(cpu.gpu_hour);
  EXPECT_EQ(cpu.audience, "everybody");
  EXPECT_EQ(cpu.note, "starts soonest");
  EXPECT_EQ(all->back().site, "National service");
  EXPECT_EQ(all->back().least_nodes, 16);
  EXPECT_EQ(all->back().least_gpus, 32);
  EXPECT_TRUE(resources("")->empty());
}

TEST(Resources, ErrorsNameTheLineAndWhatIsExpected) {
  const auto error = [](std::string_view text) {
    const auto all = resources(text);
    return all ? std::string() : all.error().message;
  };
  EXPECT_THAT(error("resource: []"), HasSubstr("resources.yml:1: "));
  EXPECT_THAT(error("resources:\n  - partition: a\n    prize: 1\n"),
              HasSubstr("resources.yml:3: resources[0].prize"));
  EXPECT_THAT(error("resources: [{partition: a, node: {cores: 1}}]"), HasSubstr("node.cores"));
  EXPECT_THAT(error("resources: [{partition: a, node: {cpus: 0}}]"), HasSubstr("above 0"));
  EXPECT_THAT(error("resources: [{partition: a, core_hour: -1}]"), HasSubstr("not negative"));
  EXPECT_THAT(error("resources: [{partition: a, nodes: .nan}]"), HasSubstr("expected a number"));
  EXPECT_THAT(error("resources: [{note: x}]"), HasSubstr("name of a partition"));
  EXPECT_THAT(error("resources: [{site: n}]"), HasSubstr("belongs to the other site"));
  EXPECT_THAT(error("resources: [{site: n, cluster: a}]"), HasSubstr("leave site or cluster out"));
  EXPECT_THAT(error("resources: [{partition: a, url: 'javascript:x'}]"), HasSubstr("https://"));
  EXPECT_THAT(error("resources: {}"), HasSubstr("expected a list"));
}

}  // namespace
}  // namespace ceems::api
