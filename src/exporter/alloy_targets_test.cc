#include "exporter/alloy_targets.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

/// A source of fixed units.
class GivenUnits final : public UnitSource {
 public:
  explicit GivenUnits(std::string manager) : manager_(std::move(manager)) {}

  [[nodiscard]] std::string_view manager() const override { return manager_; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    if (broken) {
      return fail(ErrorCode::kNotFound, "no cgroups");
    }
    auto snapshot = std::make_shared<UnitSnapshot>();
    snapshot->manager = manager_;
    snapshot->units = units;
    if (!processes_) {
      for (Unit& unit : snapshot->units) {
        unit.pids.clear();
      }
    }
    return snapshot;
  }
  void want_processes() override { processes_ = true; }

  std::vector<Unit> units;
  bool broken = false;

 private:
  std::string manager_;
  bool processes_ = false;
};

Unit unit(const std::string& id, std::vector<int> pids, bool ended = false) {
  Unit made;
  made.id = id;
  made.uuid = id;
  made.pids = std::move(pids);
  made.ended = ended;
  return made;
}

AlloyTargets targets(const std::shared_ptr<GivenUnits>& source, AlloyTargetOptions options = {}) {
  return {options, source, {}};
}

TEST(AlloyTargets, ListsEachProcessOfEachUnit) {
  const auto source = std::make_shared<GivenUnits>("slurm");
  source->units = {unit("5", {10, 11}), unit("6", {}), unit("7", {12}), unit("4", {9}, true)};
  EXPECT_EQ(targets(source).document().value(),
            R"([{"targets":["5"],"labels":{"__process_pid__":"10","service_name":"5"}},)"
            R"({"targets":["5"],"labels":{"__process_pid__":"11","service_name":"5"}},)"
            R"({"targets":["7"],"labels":{"__process_pid__":"12","service_name":"7"}}])"
            "\n");
}

TEST(AlloyTargets, EscapesNamesOfUnits) {
  const auto source = std::make_shared<GivenUnits>("k8s");
  source->units = {unit("<5\">\xFF", {10})};
  EXPECT_EQ(targets(source).document().value(),
            R"([{"targets":["<5\">)"
            "\uFFFD"
            R"("],"labels":{"__process_pid__":"10","service_name":"<5\">)"
            "\uFFFD\"}}]\n");
}

TEST(AlloyTargets, IsNullWithoutTargets) {
  const auto source = std::make_shared<GivenUnits>("slurm");
  EXPECT_EQ(targets(source).document().value(), "null\n");
  source->units = {unit("5", {})};
  EXPECT_EQ(targets(source).document().value(), "null\n");
}

TEST(AlloyTargets, ListsTheExporterEvenWithoutUnits) {
  const auto source = std::make_shared<GivenUnits>("slurm");
  EXPECT_EQ(targets(source, {.self = true}).document().value(),
            R"([{"targets":["__internal_ceems_exporter"],"labels":{"__process_pid__":")" +
                std::to_string(::getpid()) +
                R"(","service_name":"__internal_ceems_exporter"}}])"
                "\n");
}

TEST(AlloyTargets, FiltersByVariables) {
  const testing::TempDir root;
  root.write("proc/10/cmdline", std::string_view("a\0", 2));
  root.write("proc/10/environ", std::string_view("P=1\0", 4));
  root.write("proc/11/cmdline", std::string_view("a\0", 2));
  root.write("proc/11/environ", std::string_view("Q=1\0", 4));
  const auto source = std::make_shared<GivenUnits>("slurm");
  source->units = {unit("5", {10, 11})};
  host::Paths paths;
  paths.proc = root.path() / "proc";
  const AlloyTargets filtered({.variables = {"P"}}, source, paths);
  EXPECT_EQ(filtered.document().value(),
            R"([{"targets":["5"],"labels":{"__process_pid__":"10","service_name":"5"}}])"
            "\n");
  EXPECT_EQ(filtered.capabilities().size(), 2U);
}

TEST(AlloyTargets, ReturnsTheErrorOfTheSource) {
  const auto source = std::make_shared<GivenUnits>("slurm");
  source->broken = true;
  EXPECT_EQ(targets(source).document().error().message, "no cgroups");
}

TEST(AlloyTargets, PrefersSlurmAndLeavesOtherManagersAlone) {
  const auto slurm = std::make_shared<GivenUnits>("slurm");
  const auto k8s = std::make_shared<GivenUnits>("k8s");
  const auto libvirt = std::make_shared<GivenUnits>("libvirt");
  slurm->units = {unit("5", {10})};
  k8s->units = {unit("6", {10})};
  const AlloyTargetOptions on{.enabled = true};
  const auto document = [&](std::vector<std::shared_ptr<UnitSource>> sources) {
    const auto made = AlloyTargets::create(on, sources, {});
    return made ? made->document().value() : "none";
  };
  EXPECT_NE(document({libvirt, k8s, slurm}).find("\"5\""), std::string::npos);
  EXPECT_NE(document({libvirt, k8s}).find("\"6\""), std::string::npos);
  EXPECT_EQ(document({libvirt}), "none");
  EXPECT_EQ(AlloyTargets::create({}, std::vector<std::shared_ptr<UnitSource>>{slurm}, {}), nullptr);
}

}  // namespace
}  // namespace ceems::exporter
