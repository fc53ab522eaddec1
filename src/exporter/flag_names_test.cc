#include "exporter/flag_names.h"

#include <stdlib.h>

#include <array>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FlagNames, AreListedOnce) {
  std::set<std::string_view> names;
  for (const FlagName& row : flag_names()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(row.name, row.flag);
    EXPECT_TRUE(row.env.empty() || !row.flag.empty())
        << "only aliases bring a variable: " << row.name;
  }
}

TEST(FlagNames, BecomeAliasesOfTheFlagsThatTheSetHas) {
  bool on = false;
  std::string file = "default";
  config::FlagSet flags("test", "");
  flags.add("collector.ipmi_dcmi", on, {.help = "Power."});
  flags.add("collector.redfish.config.file", file, {.help = "File."});
  add_flag_aliases(flags);
  const std::array words{"test", "--collector.ipmi", "--collector.redfish.web-config=x"};
  EXPECT_FALSE(flags.parse(static_cast<int>(words.size()), words.data()).exit);
  EXPECT_TRUE(on);
  EXPECT_EQ(file, "x");
  EXPECT_TRUE(flags.given("collector.ipmi_dcmi"));
  EXPECT_EQ(flags.spelling("collector.ipmi_dcmi"), "collector.ipmi");
  EXPECT_FALSE(flags.has("collector.k8s.kube-config-file"));
  ::setenv("CEEMS_EXPORTER_REDFISH_COLL_WEB_CONFIG_FILE", "/env", 1);
  const std::array none{"test"};
  EXPECT_FALSE(flags.parse(static_cast<int>(none.size()), none.data()).exit);
  ::unsetenv("CEEMS_EXPORTER_REDFISH_COLL_WEB_CONFIG_FILE");
  EXPECT_EQ(file, "/env");
  const std::array wrong{"test", "--collector.impi"};
  EXPECT_EQ(flags.parse(static_cast<int>(wrong.size()), wrong.data()).text,
            "test: error: unknown long flag '--collector.impi' (did you mean '--collector.ipmi'?), "
            "try --help\n");
}

TEST(FlagNames, KnowTheReleasesOfEachFlag) {
  EXPECT_EQ(releases_with("collector.rapl"), (ReleaseRange{Release::kV10, Release::kV16}));
  EXPECT_EQ(releases_with("collector.ipmi_dcmi"), (ReleaseRange{Release::kV10, Release::kV10}));
  EXPECT_EQ(releases_with("collector.ipmi"), (ReleaseRange{Release::kV11, Release::kV16}));
  EXPECT_EQ(releases_with("collector.lsf"), (ReleaseRange{Release::kV13, Release::kV16}));
  EXPECT_EQ(releases_with("collector.k8s.kubeconfig-file"), std::nullopt);
  EXPECT_EQ(releases_with("collector.energy"), std::nullopt);
}

TEST(FlagNames, FitTheReleasesThatKnowAllOfThem) {
  const auto all = fitting_releases({"collector.slurm", "collector.ipmi.dcmi.cmd"});
  EXPECT_EQ(all.summary, "CEEMS 0.10.2 to 0.16.1 would start with these flags");
  EXPECT_THAT(all.notes, IsEmpty());
  EXPECT_EQ(fitting_releases({}).summary, all.summary);

  const auto old = fitting_releases({"collector.slurm", "collector.ipmi_dcmi"});
  EXPECT_EQ(old.summary, "CEEMS 0.10.2 would start with these flags");
  EXPECT_THAT(old.notes, ElementsAre("--collector.ipmi_dcmi: refused since 0.11.0, which calls it "
                                     "--collector.ipmi"));

  const auto later = fitting_releases({"collector.ipmi", "collector.lsf"});
  EXPECT_EQ(later.summary, "CEEMS 0.13.0 to 0.16.1 would start with these flags");
  EXPECT_THAT(later.notes, ElementsAre("--collector.ipmi: unknown before 0.11.0",
                                       "--collector.lsf: unknown before 0.13.0"));
}

TEST(FlagNames, SayWhenNoReleaseFits) {
  const auto mixed = fitting_releases({"collector.ipmi", "collector.ipmi_dcmi.dev-num"});
  EXPECT_EQ(mixed.summary,
            "no single release of CEEMS knows all of these flags; this program accepts them");
  EXPECT_EQ(mixed.notes.size(), 2U);
  const auto ours = fitting_releases({"collector.energy", "collector.k8s.kubeconfig-file"});
  EXPECT_EQ(ours.summary,
            "CEEMS 0.10.2 to 0.16.1 would start with these flags, except those that only this "
            "program has");
  EXPECT_THAT(ours.notes,
              ElementsAre("--collector.energy: this program has it, CEEMS does not",
                          "--collector.k8s.kubeconfig-file: only the documentation of CEEMS has "
                          "it, its programs do not"));
}

TEST(FlagNames, KnowWhatCeemsRefusesTogether) {
  const auto sensors = fitting_releases({"collector.ipmi", "collector.ipmi.sensor-id"});
  EXPECT_EQ(sensors.summary,
            "no release of CEEMS would start with these flags together; this program does");
  EXPECT_THAT(sensors.notes, ElementsAre("--collector.ipmi: unknown before 0.11.0",
                                         "--collector.ipmi.sensor-id: unknown before 0.11.0",
                                         "--collector.ipmi.sensor-id: CEEMS refuses it without "
                                         "--collector.ipmi.force-native-mode"));
  EXPECT_EQ(fitting_releases(
                {"collector.ipmi.power-energy-sensor-readings", "collector.ipmi.force-native-mode"})
                .summary,
            "CEEMS 0.11.0 to 0.16.1 would start with these flags");
}

}  // namespace
}  // namespace ceems::exporter
