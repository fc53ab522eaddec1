#include "exporter/collectors/all.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/collector_set.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/options.h"
#include "exporter/scrape.h"
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

/// The help text of these collectors' flags.
std::string help_of(std::vector<CollectorSpec> specs) {
  CollectorSet set(std::move(specs));
  config::FlagSet flags("test", "");
  set.add_option_flags(flags);
  set.add_switches(flags);
  const std::array arguments{"test", "--help"};
  return flags.parse(static_cast<int>(arguments.size()), arguments.data()).text;
}

/// What these collectors show of a machine with SLURM jobs and RAPL at their second scrape.
std::string page_of(std::vector<CollectorSpec> specs) {
  CollectorSet set(std::move(specs));
  config::FlagSet flags("test", "");
  set.add_option_flags(flags);
  set.add_switches(flags);
  const std::array arguments{"test",
                             "--collector.disable-defaults",
                             "--collector.hwmon",
                             "--collector.rapl",
                             "--collector.slurm",
                             "--collector.cgroup",
                             "--collector.energy",
                             "--collector.gpu",
                             "--collector.gpu.type=nogpu",
                             "--collector.cgroups.force-version=v2"};
  const auto parsed = flags.parse(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_FALSE(parsed.exit) << parsed.text;
  TestContext machine(fixture("slurm-v2"));
  machine.context.paths.sys = fixture("intel-2s") / "sys";  // has energy meters
  auto created = set.create(flags, machine.context);
  if (!created) {
    return created.error().message;
  }
  Scraper scraper(std::move(created->collectors), machine.clock);
  metrics::Sink sink;
  for (int scrape = 0; scrape < 2; ++scrape) {
    machine.clock.advance(std::chrono::seconds(10));
    sink.clear();
    scraper.run(sink, machine.clock.steady_now() + std::chrono::seconds(1));
  }
  std::string page;
  sink.render(metrics::Exposition::kText, page);
  return page;
}

TEST(AllCollectors, ComeToTheSameInAnyOrder) {
  const std::string help = help_of(all_collectors());
  const std::string page = page_of(all_collectors());
  EXPECT_NE(page.find("ceems_compute_unit_energy_joules_total{"), std::string::npos) << page;
  EXPECT_NE(page.find("manager=\"cgroup\""), std::string::npos);
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): the same orders in each run
  for (int i = 0; i < 5; ++i) {
    auto specs = all_collectors();
    std::ranges::shuffle(specs, random);
    EXPECT_EQ(help_of(specs), help);
    EXPECT_EQ(page_of(std::move(specs)), page);
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
