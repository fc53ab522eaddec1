#include "exporter/collector_set.h"

#include <gtest/gtest.h>

namespace ceems::exporter {
namespace {

class FakeSource final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "fake"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    return fail(ErrorCode::kNoData, "no units");
  }
};

class FakeCollector final : public Collector {
 public:
  explicit FakeCollector(bool units) : units_(units) {}
  Result<> collect(metrics::Sink&) override { return {}; }
  std::shared_ptr<UnitSource> unit_source() override {
    return units_ ? std::make_shared<FakeSource>() : nullptr;
  }

 private:
  bool units_;
};

CollectorSpec spec(std::string name, bool by_default, bool units = false) {
  return {.name = std::move(name),
          .help = "Fake",
          .enabled_by_default = by_default,
          .create = [units](const CollectorContext&) -> Result<std::unique_ptr<Collector>> {
            return std::make_unique<FakeCollector>(units);
          }};
}

/// Names of the collectors that this command line turns on, or the message of the error.
std::string enabled(std::vector<const char*> arguments, std::vector<CollectorSpec> specs) {
  CollectorSet set(std::move(specs));
  config::FlagSet flags("test", "");
  set.add_option_flags(flags);
  set.add_switches(flags);
  arguments.insert(arguments.begin(), "test");
  const auto outcome = flags.parse(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_FALSE(outcome.exit) << outcome.text;
  CollectorContext context;
  auto collectors = set.create(flags, context);
  if (!collectors) {
    return collectors.error().message;
  }
  std::string names;
  for (const NamedCollector& named : *collectors) {
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

TEST(CollectorSet, AsksDynamicDefaultsAfterTheUnitCollectors) {
  CollectorSpec energy = spec("energy", false);
  energy.enabled_when = [](const CollectorContext& context) {
    return !context.unit_sources.empty();
  };
  const std::vector<CollectorSpec> specs{spec("slurm", false, true), energy};
  EXPECT_EQ(enabled({}, specs), "");
  EXPECT_EQ(enabled({"--collector.slurm"}, specs), "slurm energy");
  EXPECT_EQ(enabled({"--collector.slurm", "--no-collector.energy"}, specs), "slurm");
  EXPECT_EQ(enabled({"--collector.slurm", "--collector.disable-defaults"}, specs), "slurm");
  EXPECT_EQ(enabled({"--collector.energy"}, specs), "energy");
}

TEST(CollectorSet, PreparesAllThatAreNotSwitchedOffBeforeAnyIsCreated) {
  std::chrono::milliseconds seen{0};
  CollectorSpec first = spec("first", true);
  first.create = [&seen, create = first.create](const CollectorContext& context) {
    seen = context.keep_ended;
    return create(context);
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
  broken.create = [](const CollectorContext&) -> Result<std::unique_ptr<Collector>> {
    return fail(ErrorCode::kInvalidArgument, "no such directory");
  };
  EXPECT_EQ(enabled({}, {broken}), "collector broken: no such directory");
}

}  // namespace
}  // namespace ceems::exporter
