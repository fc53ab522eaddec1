#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ingest/manager/manager.h"
#include "ingest/registration_test_support.h"

namespace ceems::ingest {
namespace {

const Registration kManagers{.type = "ManagerSpec",
                             .suffix = "manager",
                             .folder = "src/ingest/manager",
                             .page = "docs/api/resource-managers.md"};

std::string row_of(const ManagerSpec& spec) {
  std::string sections;
  for (const auto& [read, name] :
       {std::pair(spec.reads_cli, "`cli`"), std::pair(spec.reads_web, "`web`"),
        std::pair(!spec.extra_keys.empty(), "`extra_config`")}) {
    if (read) {
      sections += (sections.empty() ? "" : ", ") + std::string(name);
    }
  }
  return fmt::format("| `{0}` | {1} | {2} | {3} | [below](#{0}) |", spec.name, spec.units,
                     spec.source, sections);
}

TEST(AllManagers, AreCompleteAndHaveDistinctNames) {
  std::set<std::string> names;
  for (const ManagerSpec& spec : all_managers()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_FALSE(spec.units.empty()) << spec.name;
    EXPECT_FALSE(spec.source.empty()) << spec.name;
    EXPECT_TRUE(static_cast<bool>(spec.create)) << spec.name;
    EXPECT_EQ(find_manager(spec.name), &spec);
  }
  EXPECT_EQ(find_manager("slrum"), nullptr);
}

TEST(AllManagers, HaveARowAndASectionInTheDocumentationAndATest) {
  for (const ManagerSpec& spec : all_managers()) {
    expect_documented(kManagers, spec.name, row_of(spec), spec.extra_keys);
    expect_tested(kManagers, spec.name);
  }
}

TEST(AllManagers, AreListed) {
  const auto defined = defined_names(kManagers);
  EXPECT_EQ(defined.size(), all_managers().size());
  for (const std::string& name : defined) {
    EXPECT_NE(find_manager(name), nullptr)
        << name << "_manager() is missing in src/ingest/manager/all.cc";
  }
}

TEST(CreateManager, RefusesKeysThatItsSpecDoesNotName) {
  ManagerSpec spec;
  spec.extra_keys = {"project"};
  spec.create = [](const ClusterConfig&, const ManagerContext&) {
    return fail(ErrorCode::kInternal, "called");
  };
  ClusterConfig config;
  config.extra = config::parse_yaml("project: a\n", "c.yml").value();
  EXPECT_EQ(create_manager(spec, config, {}).error().message, "called");
  config.extra = config::parse_yaml("project: a\nprojcet: b\n", "c.yml").value();
  EXPECT_EQ(create_manager(spec, config, {}).error().message,
            "c.yml:2: projcet: unknown key, did you mean 'project'?");
  config.extra = config::parse_yaml("[project]\n", "c.yml").value();
  EXPECT_EQ(create_manager(spec, config, {}).error().message, "c.yml:1: expected a mapping");
}

}  // namespace
}  // namespace ceems::ingest
