#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "ingest/manager/manager.h"
#include "ingest/registration_test_support.h"

namespace ceems::ingest {
namespace {

const Registration kManagers{.type = "ManagerSpec",
                             .suffix = "manager",
                             .folder = "src/ingest/manager",
                             .page = "docs/api/resource-managers.md"};

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

TEST(AllManagers, HaveARowAndASectionInTheDocumentation) {
  for (const ManagerSpec& spec : all_managers()) {
    expect_documented(kManagers, spec);
  }
}

TEST(AllManagers, AreListed) {
  const auto defined = defined_names(kManagers);
  EXPECT_EQ(defined.size(), all_managers().size())
      << "a source that defines NAME_manager() has the line 'ManagerSpec NAME_manager() {'";
  for (const std::string& name : defined) {
    EXPECT_NE(find_manager(name), nullptr)
        << "src/ingest/manager/all.h: the line 'ManagerSpec " << name << "_manager();' is missing";
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
