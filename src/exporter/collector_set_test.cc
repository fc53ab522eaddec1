#include "exporter/collector_set.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exporter/flag_names.h"

namespace ceems::exporter {
namespace {

class FakeUnits final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "fake"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    return fail(ErrorCode::kNoData, "no units");
  }
};

class FakeMeter final : public energy::EnergyMeter {
 public:
  explicit FakeMeter(std::string name) : source_{.name = std::move(name)} {}
  [[nodiscard]] const energy::SourceInfo& source() const override { return source_; }
  Result<energy::Reading> read(const energy::MeterContext&) override { return energy::Reading{}; }

 private:
  energy::SourceInfo source_;
};

class FakeCollector final : public Collector {
 public:
  explicit FakeCollector(Sources sources) : sources_(std::move(sources)) {}
  Result<> collect(metrics::Sink&) override { return {}; }
  [[nodiscard]] Sources sources() const override { return sources_; }

 private:
  Sources sources_;
};

CollectorSpec spec(std::string name, bool by_default, Sources brings = {}) {
  return {
      .name = std::move(name),
      .help = "Fake",
      .enabled_by_default = by_default,
      .create = [brings = std::move(brings)](const CollectorContext&,
                                             const Sources&) -> Result<std::unique_ptr<Collector>> {
        return std::make_unique<FakeCollector>(brings);
      }};
}

Sources units() {
  return {.units = {std::make_shared<FakeUnits>()}};
}

Sources meter(std::string name) {
  return {.meters = {std::make_shared<FakeMeter>(std::move(name))}};
}

/// What this command line creates.
Result<CollectorSet::Created> create(std::vector<const char*> arguments,
                                     std::vector<CollectorSpec> specs) {
  CollectorSet set(std::move(specs));
  config::FlagSet flags("test", "");
  set.add_option_flags(flags);
  set.add_switches(flags);
  arguments.insert(arguments.begin(), "test");
  const auto outcome = flags.parse(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_FALSE(outcome.exit) << outcome.text;
  return set.create(flags, {});
}

/// Names of the collectors that this command line enables, or the message of the error.
std::string enabled(std::vector<const char*> arguments, std::vector<CollectorSpec> specs) {
  const auto created = create(std::move(arguments), std::move(specs));
  if (!created) {
    return created.error().message;
  }
  std::string names;
  for (const NamedCollector& named : created->collectors) {
    names += (names.empty() ? "" : " ") + named.name;
  }
  return names;
}

TEST(CollectorSet, FollowsDefaultsSwitchesAndDisableDefaults) {
  const std::vector<CollectorSpec> specs{spec("a", true), spec("b", false), spec("c", true)};
  EXPECT_EQ(enabled({}, specs), "a c");
  EXPECT_EQ(enabled({"--collector.b", "--no-collector.a"}, specs), "b c");
  EXPECT_EQ(enabled({"--collector.disable-defaults"}, specs), "");
  EXPECT_EQ(enabled({"--collector.disable-defaults", "--collector.c", "--no-collector.a"}, specs),
            "c");
}

TEST(CollectorSet, CallsACollectorAsTheCommandLineDoes) {
  const auto named = [](std::vector<const char*> arguments) {
    CollectorSet set({spec("ipmi_dcmi", false), spec("rapl", true)});
    config::FlagSet flags("test", "");
    set.add_switches(flags);
    add_flag_aliases(flags);
    arguments.insert(arguments.begin(), "test");
    EXPECT_FALSE(flags.parse(static_cast<int>(arguments.size()), arguments.data()).exit);
    const auto created = set.create(flags, {});
    std::string names;
    for (const NamedCollector& collector : created->collectors) {
      names += collector.name + " ";
    }
    return names;
  };
  EXPECT_EQ(named({}), "rapl ");
  EXPECT_EQ(named({"--collector.ipmi_dcmi"}), "ipmi_dcmi rapl ");
  EXPECT_EQ(named({"--collector.ipmi"}), "ipmi rapl ");
  EXPECT_EQ(named({"--no-collector.ipmi", "--collector.rapl"}), "rapl ");
  EXPECT_EQ(named({"--no-collector.ipmi_dcmi"}), "rapl ");
  EXPECT_EQ(named({"--collector.ipmi", "--collector.disable-defaults"}), "ipmi ");
}

TEST(CollectorSet, EvaluatesDynamicDefaultsAfterEarlierStages) {
  CollectorSpec energy = spec("energy", false);
  energy.stage = Stage::kEnergy;
  energy.enabled_when = [](const CollectorContext&, const Sources& sources) {
    return !sources.units.empty();
  };
  CollectorSpec slurm = spec("slurm", false, units());
  slurm.stage = Stage::kJobs;
  const std::vector<CollectorSpec> specs{energy, slurm};
  EXPECT_EQ(enabled({}, specs), "");
  EXPECT_EQ(enabled({"--collector.slurm"}, specs), "slurm energy");
  EXPECT_EQ(enabled({"--collector.slurm", "--no-collector.energy"}, specs), "slurm");
  EXPECT_EQ(enabled({"--collector.slurm", "--collector.disable-defaults"}, specs), "slurm");
  EXPECT_EQ(enabled({"--collector.energy"}, specs), "energy");
}

TEST(CollectorSet, PassesToEachStageTheSourcesOfEarlierOnes) {
  std::vector<std::string> seen;
  const auto watching = [&seen](CollectorSpec spec, Stage stage) {
    spec.stage = stage;
    spec.create = [&seen, create = spec.create, name = spec.name](const CollectorContext& context,
                                                                  const Sources& sources) {
      std::string meters;
      for (const auto& meter : sources.meters) {
        meters += " " + meter->source().name;
      }
      seen.push_back(fmt::format("{}: {} units, meters{}", name, sources.units.size(), meters));
      return create(context, sources);
    };
    return spec;
  };
  const auto created = create({}, {watching(spec("sum", true, meter("sum")), Stage::kEnergy),
                                   watching(spec("b", true, units()), Stage::kJobs),
                                   watching(spec("bmc", true, meter("wall")), Stage::kNode),
                                   watching(spec("a", true, units()), Stage::kJobs),
                                   watching(spec("acpi", true, meter("power1")), Stage::kNode)});
  ASSERT_TRUE(created);
  EXPECT_EQ(seen,
            (std::vector<std::string>{
                "acpi: 0 units, meters", "bmc: 0 units, meters", "a: 0 units, meters power1 wall",
                "b: 0 units, meters power1 wall", "sum: 2 units, meters power1 wall"}));
  EXPECT_EQ(created->sources.meters.size(), 3U);
  EXPECT_EQ(created->collectors.front().stage, Stage::kNode);
  EXPECT_EQ(created->collectors.back().stage, Stage::kEnergy);
}

TEST(CollectorSet, PreparesAllThatAreNotSwitchedOffBeforeAnyIsCreated) {
  std::chrono::milliseconds seen{0};
  CollectorSpec first = spec("first", true);
  first.create = [&seen, create = first.create](const CollectorContext& context,
                                                const Sources& sources) {
    seen = context.keep_ended;
    return create(context, sources);
  };
  CollectorSpec last = spec("last", true);
  last.prepare = [](CollectorContext& context) -> Result<> {
    context.keep_ended = std::chrono::seconds(90);
    return {};
  };
  EXPECT_EQ(enabled({}, {first, last}), "first last");
  EXPECT_EQ(seen, std::chrono::seconds(90));
  EXPECT_EQ(enabled({"--no-collector.last"}, {first, last}), "first");
  EXPECT_EQ(seen, CollectorContext().keep_ended);
  last.prepare = [](CollectorContext&) -> Result<> {
    return fail(ErrorCode::kInvalidArgument, "bad time");
  };
  EXPECT_EQ(enabled({}, {first, last}), "collector last: bad time");
}

TEST(CollectorSet, NamesTheCollectorThatCannotStart) {
  CollectorSpec broken = spec("broken", true);
  broken.create = [](const CollectorContext&,
                     const Sources&) -> Result<std::unique_ptr<Collector>> {
    return fail(ErrorCode::kInvalidArgument, "no such directory");
  };
  EXPECT_EQ(enabled({}, {broken}), "collector broken: no such directory");
}

}  // namespace
}  // namespace ceems::exporter
