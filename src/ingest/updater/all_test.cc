#include <set>
#include <string>

#include <gtest/gtest.h>

#include "ingest/registration_test_support.h"
#include "ingest/updater/updater.h"
#include "testing/fake_clock.h"

namespace ceems::ingest {
namespace {

const Registration kUpdaters{.type = "UpdaterSpec",
                             .suffix = "updater",
                             .folder = "src/ingest/updater",
                             .page = "docs/api/updaters.md"};

TEST(AllUpdaters, AreCompleteAndHaveDistinctNames) {
  std::set<std::string> names;
  for (const UpdaterSpec& spec : all_updaters()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_FALSE(spec.source.empty()) << spec.name;
    EXPECT_TRUE(spec.needs_url || !spec.web_is_tsdb) << spec.name;
    EXPECT_TRUE(static_cast<bool>(spec.create)) << spec.name;
    EXPECT_EQ(find_updater(spec.name), &spec);
  }
  EXPECT_EQ(find_updater("tsbd"), nullptr);
}

TEST(AllUpdaters, HaveARowAndASectionInTheDocumentation) {
  for (const UpdaterSpec& spec : all_updaters()) {
    expect_documented(kUpdaters, spec);
  }
}

TEST(AllUpdaters, AreListed) {
  const auto defined = defined_names(kUpdaters);
  EXPECT_EQ(defined.size(), all_updaters().size())
      << "a source that defines NAME_updater() has the line 'UpdaterSpec NAME_updater() {'";
  for (const std::string& name : defined) {
    EXPECT_NE(find_updater(name), nullptr)
        << "src/ingest/updater/all.h: the line 'UpdaterSpec " << name << "_updater();' is missing";
  }
}

TEST(CreateUpdater, RefusesKeysThatItsSpecDoesNotName) {
  const testing::FakeClock clock;
  UpdaterSpec spec;
  spec.extra_keys = {"factor"};
  spec.create = [](const UpdaterConfig&, const Clock&) {
    return fail(ErrorCode::kInternal, "called");
  };
  UpdaterConfig config;
  config.extra = config::parse_yaml("factor: 2\n", "c.yml").value();
  EXPECT_EQ(create_updater(spec, config, clock).error().message, "called");
  config.extra = config::parse_yaml("faktor: 2\n", "c.yml").value();
  EXPECT_EQ(create_updater(spec, config, clock).error().message,
            "c.yml:1: faktor: unknown key, did you mean 'factor'?");
}

}  // namespace
}  // namespace ceems::ingest
