#include "facility/embodied.h"

#include <gtest/gtest.h>

namespace ceems::facility {
namespace {

EmbodiedOptions read_file(const std::string& text) {
  const auto document = config::parse_yaml(text, "embodied.yml");
  auto options = read_embodied(*document);
  EXPECT_TRUE(options) << options.error().message;
  return std::move(options).value_or(EmbodiedOptions());
}

std::string file_error(const std::string& text) {
  const auto document = config::parse_yaml(text, "embodied.yml");
  const auto options = read_embodied(*document);
  return options ? "" : options.error().message;
}

const std::string kFile = R"(
lifetime_years: 4
classes:
  - {class: gpu, clusters: [a], kgco2: 3504, gpu_share: 0.75, source: "maker's PCF", date: 2025-03}
  - {class: "*", kgco2: 1752, lifetime_years: 5, source: "an estimate"}
)";

TEST(Embodied, IsSharedByWhatWasReserved) {
  // 3504 kg over 4 × 8760 h are 0.1 kg an hour.
  const auto sum =
      embodied_of(read_file(kFile),
                  {{.cluster = "a",
                    .node_class = "gpu",
                    .nodes = 1,
                    .node_hours = 100,
                    .core_hours = 6400,
                    .gpu_hours = 400}},
                  {{.group = "x", .cluster = "a", .core_hours = 3200, .gpu_hours = 100},
                   {.group = "y", .cluster = "a", .core_hours = 1600, .gpu_hours = 0}});
  EXPECT_DOUBLE_EQ(sum.total, 10);
  ASSERT_EQ(sum.groups.size(), 2U);
  EXPECT_DOUBLE_EQ(sum.groups[0].kg, 2.5 / 2 + 7.5 / 4);
  EXPECT_DOUBLE_EQ(sum.groups[1].kg, 2.5 / 4);
  EXPECT_NEAR(sum.groups[0].kg + sum.groups[1].kg + sum.unallocated, sum.total, 1e-12);
}

TEST(Embodied, GroupsAndTheSiteMakeTheTotal) {
  std::vector<ClassHours> classes;
  std::vector<Reserved> reserved;
  for (int i = 1; i <= 50; ++i) {
    const std::string cluster = i % 2 == 0 ? "a" : "b";
    classes.push_back({.cluster = cluster,
                       .node_class = i % 3 == 0 ? "gpu" : "cpu",
                       .nodes = 1,
                       .node_hours = 100.0 / i,
                       .core_hours = 777.0 * i,
                       .gpu_hours = static_cast<double>(i % 3)});
    reserved.push_back({.group = std::to_string(i),
                        .cluster = cluster,
                        .core_hours = 13.7 * i,
                        .gpu_hours = 0.01 * i});
  }
  const auto sum = embodied_of(read_file(kFile), classes, reserved);
  double kg = sum.unallocated;
  for (const auto& group : sum.groups) {
    EXPECT_GT(group.kg, 0);
    kg += group.kg;
  }
  double expected = 0;
  for (const auto& one : classes) {
    expected += one.cluster == "a" && one.node_class == "gpu" ? one.node_hours * 0.1
                                                              : one.node_hours * 1752 / 43800;
  }
  EXPECT_GT(sum.unallocated, 0);
  EXPECT_NEAR(kg, expected, 1e-6);
  EXPECT_NEAR(sum.total, expected, 1e-6);
}

TEST(Embodied, NothingIsAssumedForOtherClasses) {
  const auto sum = embodied_of(
      read_file("classes:\n  - {class: gpu, kgco2: 10, source: s}\n"),
      {{.cluster = "a", .node_class = "cpu", .nodes = 2, .node_hours = 48, .core_hours = 96}},
      {{.group = "x", .cluster = "a", .core_hours = 10}});
  EXPECT_EQ(sum.total, 0);
  EXPECT_EQ(sum.unallocated, 0);
  EXPECT_EQ(sum.unknown_node_hours, 48);
  EXPECT_TRUE(sum.groups.empty());
}

TEST(Embodied, HoursOfOtherClassesCountInShares) {
  // What is reserved may be on nodes without an entry.
  const auto sum = embodied_of(
      read_file("classes:\n  - {class: big, kgco2: 43800, source: s}\n"),
      {{.cluster = "a", .node_class = "big", .nodes = 1, .node_hours = 10, .core_hours = 100},
       {.cluster = "a", .node_class = "other", .nodes = 9, .node_hours = 90, .core_hours = 900}},
      {{.group = "x", .cluster = "a", .core_hours = 500}});
  EXPECT_DOUBLE_EQ(sum.total, 10);
  ASSERT_EQ(sum.groups.size(), 1U);
  EXPECT_DOUBLE_EQ(sum.groups[0].kg, 5);
  EXPECT_DOUBLE_EQ(sum.unallocated, 5);
}

TEST(Embodied, RefusesWrongFilesWithTheLine) {
  EXPECT_EQ(file_error("lifetime_years: 0\n"),
            "embodied.yml:1: lifetime_years: expected years, above 0 and at most 30");
  EXPECT_EQ(file_error("classes:\n  - {class: x, kgco2: 1, source: s, gpu_share: 1.5}\n"),
            "embodied.yml:2: classes[0].gpu_share: expected the part of the GPUs, from 0 to 1");
  EXPECT_EQ(file_error("classes:\n  - {class: x, kgco2: -1, source: s}\n"),
            "embodied.yml:2: classes[0].kgco2: expected the kg CO2e of making a node, above 0");
  EXPECT_EQ(file_error("classes:\n  - {class: x, kgco2: 1}\n"),
            "embodied.yml:2: classes[0]: expected one line on where the number is from");
  EXPECT_TRUE(file_error("classes:\n  - {clas: x}\n").starts_with("embodied.yml:2: "));
}

}  // namespace
}  // namespace ceems::facility
