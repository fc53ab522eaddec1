#include "exporter/collectors/all.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/collector_set.h"
#include "exporter/options.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

TEST(AllCollectors, HaveDistinctNamesHelpAndAFactory) {
  std::vector<std::string> names;
  for (const CollectorSpec& known : all_collectors()) {
    names.push_back(known.name);
    EXPECT_FALSE(known.help.empty()) << known.name;
    EXPECT_TRUE(static_cast<bool>(known.create)) << known.name;
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(AllCollectors, TakeFlagsAsTheReferencesDocumentationSpellsThem) {
  for (const std::string spelling :
       {"--collector.cgroup.active-subsystem=memory", "--collector.redfish.web-config-file=a",
        "--collector.k8s.kubeconfig-file=a", "--profiling.ebpf.config-file=a"}) {
    config::FlagSet flags("test", "");
    const CollectorSet set(all_collectors());
    set.add_option_flags(flags);
    const std::array arguments{"test", spelling.c_str()};
    const auto outcome = flags.parse(static_cast<int>(arguments.size()), arguments.data());
    EXPECT_FALSE(outcome.exit) << outcome.text;
  }
}

TEST(AllCollectors, HaveARowInTheDocumentation) {
  const std::string docs = CEEMS_TEST_ROOT "/../docs/exporter/";
  const auto collectors = host::read_file(docs + "collectors.md");
  const auto flags_page = host::read_file(docs + "flags.md");
  ASSERT_TRUE(collectors);
  ASSERT_TRUE(flags_page);
  for (const CollectorSpec& known : all_collectors()) {
    EXPECT_NE(collectors->find("\n| `" + known.name + "` |"), std::string::npos) << known.name;
  }
  config::FlagSet flags("test", "");
  Options options;
  const CollectorSet set(all_collectors());
  add_first_flags(flags, options);
  set.add_option_flags(flags);
  add_last_flags(flags, options);
  for (const std::string& flag : flags.names()) {
    const bool there = flags_page->find("--" + flag) != std::string::npos ||
                       flags_page->find("--[no-]" + flag) != std::string::npos;
    EXPECT_TRUE(there) << flag;
  }
}

}  // namespace
}  // namespace ceems::exporter
