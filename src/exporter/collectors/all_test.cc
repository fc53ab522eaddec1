#include "exporter/collectors/all.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <re2/re2.h>

#include "exporter/collector_set.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/flag_names.h"
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

/// What the program says to this command line, apart from running; "" if it would run.
std::string refusal(const std::vector<std::string>& arguments) {
  config::FlagSet flags("test", "");
  Options options;
  CollectorSet set(all_collectors());
  add_first_flags(flags, options);
  set.add_option_flags(flags);
  set.add_switches(flags);
  add_last_flags(flags, options);
  add_flag_aliases(flags);
  std::vector<const char*> words{"test"};
  for (const std::string& argument : arguments) {
    words.push_back(argument.c_str());
  }
  return flags.parse(static_cast<int>(words.size()), words.data()).text;
}

TEST(AllCollectors, AcceptTheFlagsOfEveryRelease) {
  const auto specs = all_collectors();
  const bool has_lsf = std::ranges::find(specs, "lsf", &CollectorSpec::name) != specs.end();
  for (const FlagName& row : flag_names()) {
    if (row.name.starts_with("collector.lsf") && !has_lsf) {
      continue;
    }
    const std::string flag = "--" + std::string(row.name);
    const std::string bare = refusal({flag});
    // A boolean needs no value, other flags have one, of which a number fits all.
    EXPECT_TRUE(bare.empty() || refusal({flag + "=1"}).empty()) << bare;
    if (bare.empty()) {
      EXPECT_EQ(refusal({"--no-" + std::string(row.name)}), "") << row.name;
    }
  }
}

TEST(AllCollectors, ReadTheVariableOfRedfish) {
  config::FlagSet flags("test", "");
  CollectorSet set(all_collectors());
  set.add_option_flags(flags);
  const std::array words{"test"};
  ::setenv("CEEMS_EXPORTER_REDFISH_COLL_CONFIG_FILE", "/etc/bmc.yml", 1);
  EXPECT_FALSE(flags.parse(static_cast<int>(words.size()), words.data()).exit);
  ::unsetenv("CEEMS_EXPORTER_REDFISH_COLL_CONFIG_FILE");
  EXPECT_EQ(flags.values("collector.redfish.config.file"),
            std::vector<std::string>{"/etc/bmc.yml"});
}

TEST(AllCollectors, AcceptWhatTheHelmChartsPass) {
  EXPECT_EQ(
      refusal({"--collector.ipmi", "--collector.ipmi.dev-num=0",
               "--collector.ipmi.power-energy-sensor-readings", "--collector.ipmi.sensor-id=18",
               "--collector.ipmi.sensor-id=77", "--collector.rapl", "--collector.redfish",
               "--collector.hwmon", "--collector.cray_pm_counters", "--collector.k8s",
               "--collector.k8s.kubelet-socket-file=/var/lib/kubelet/kubelet.sock"}),
      "");
}

TEST(AllCollectors, NameTheNearestOfAllSpellings) {
  EXPECT_EQ(refusal({"--collector.ipmi.dev-nm=0"}),
            "test: error: unknown long flag '--collector.ipmi.dev-nm' (did you mean "
            "'--collector.ipmi.dev-num'?), try --help\n");
  EXPECT_EQ(refusal({"--no-collector.ipmi_dcm"}),
            "test: error: unknown long flag '--no-collector.ipmi_dcm' (did you mean "
            "'--collector.ipmi_dcmi'?), try --help\n");
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

/// What these collectors export at their second scrape of a machine with SLURM jobs and RAPL.
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

TEST(AllCollectors, ExportTheSameInAnyOrder) {
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

/// Content of a file of the repository.
std::string text_of(const std::string& path) {
  const auto text = host::read_file(CEEMS_TEST_ROOT "/../" + path);
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

/// True if a line "## a, b" contains the name of the collector.
bool has_section(const std::string& page, const std::string& name) {
  const RE2 heading("(?m)^## (?:\\w+, )*" + name + "(?:, \\w+)*$");
  return RE2::PartialMatch(page, heading);
}

TEST(AllCollectors, AreDocumentedAndTested) {
  const std::string rows = text_of("docs/exporter/collectors.md");
  const std::string metrics = text_of("docs/exporter/metrics.md");
  for (const CollectorSpec& known : all_collectors()) {
    const std::string row = "| `" + known.name + "` |";
    EXPECT_TRUE(rows.contains("\n" + row))
        << "docs/exporter/collectors.md: expected a row for the collector: " << row << " …";
    EXPECT_TRUE(has_section(metrics, known.name))
        << "docs/exporter/metrics.md: expected a section with its metrics: ## " << known.name;
    const std::string test = "src/exporter/collectors/" + known.name + "_test.cc";
    EXPECT_TRUE(std::filesystem::exists(CEEMS_TEST_ROOT "/../" + test))
        << test << ": expected a test of the collector";
  }
}

TEST(AllCollectors, AreListed) {
  const std::string list = text_of("src/exporter/collectors/all.h");
  const RE2 definition("(?m)^CollectorSpec (\\w+)_collector\\((.*)\\) \\{$");
  std::size_t defined = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(CEEMS_TEST_ROOT "/../src/exporter/collectors")) {
    std::string name;
    std::string parameters;
    if (file.path().extension() != ".cc" ||
        !RE2::PartialMatch(text_of("src/exporter/collectors/" + file.path().filename().string()),
                           definition, &name, &parameters)) {
      continue;
    }
    ++defined;
    const std::string line = "CollectorSpec " + name + "_collector(" + parameters + ");";
    EXPECT_TRUE(list.contains("\n" + line + "\n"))
        << "src/exporter/collectors/all.h: the line '" << line << "' is missing";
  }
  EXPECT_EQ(defined, all_collectors().size());
}

TEST(AllCollectors, HaveTheirFlagsInTheDocumentation) {
  const std::string page = text_of("docs/exporter/flags.md");
  config::FlagSet flags("test", "");
  Options options;
  const CollectorSet set(all_collectors());
  add_first_flags(flags, options);
  set.add_option_flags(flags);
  add_last_flags(flags, options);
  for (const std::string& flag : flags.names()) {
    EXPECT_TRUE(page.contains("--" + flag) || page.contains("--[no-]" + flag))
        << "docs/exporter/flags.md: the flag is missing: --" << flag;
  }
}

}  // namespace
}  // namespace ceems::exporter
