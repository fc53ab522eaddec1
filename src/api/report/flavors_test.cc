// The next smaller flavor of a server: which one, and the line in its report.
#include "api/report/flavors.h"

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/report/measurements.h"
#include "api/server_test_support.h"
#include "net/http.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kFlavorGiB = 1024.0 * 1024 * 1024;
constexpr std::int64_t kWeek = 7 * 24 * kHour;

model::Flavor flavor(const std::string& id, std::int64_t vcpus, std::int64_t ram_gib) {
  return {.region = "",
          .id = id,
          .name = "m1." + id,
          .vcpus = vcpus,
          .ram_mib = ram_gib * 1024,
          .disk_gb = 40,
          .ephemeral_gb = 10,
          .swap_mb = 512,
          .extra_specs = R"({"hw:cpu_policy":"shared"})",
          .offered = true};
}

/// The flavor of the servers here.
model::Flavor large() {
  return flavor("large", 8, 16);
}

TEST(ShellWord, IsQuotedIfNeeded) {
  EXPECT_EQ(shell_word("m1.small"), "m1.small");
  EXPECT_EQ(shell_word("a_b-c./:@%+,9"), "a_b-c./:@%+,9");
  EXPECT_EQ(shell_word("=ls"), "'=ls'");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("a;$(reboot)`x`"), "'a;$(reboot)`x`'");
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
  EXPECT_EQ(shell_word("~root"), "'~root'");
  EXPECT_EQ(shell_word(std::string(255, 'x')), std::string(255, 'x'));
  for (const std::string& text : {std::string(), std::string("-v"), std::string("a\nb"),
                                  std::string("a\x1b[2J"), std::string("a\x7f"),
                                  std::string("gr\xc3\xb6\xc3\x9f"
                                              "e"),
                                  std::string("a\0b", 3), std::string(256, 'x')}) {
    EXPECT_EQ(shell_word(text), std::nullopt) << text;
  }
}

/// The name of the smaller flavor of a server of large(), beside `others`.
std::string smaller(std::vector<model::Flavor> others,
                    const FlavorNeeds& needs = {.vcpus = 2, .bytes = 4 * kFlavorGiB},
                    const model::Flavor& now = large()) {
  others.insert(others.begin(), now);
  const model::Flavor* const found = smaller_flavor(others.front(), needs, others);
  return found == nullptr ? "none" : found->name;
}

TEST(SmallerFlavor, IsTheSmallestThatHoldsThePeaks) {
  const std::vector all{flavor("4x8", 4, 8), flavor("2x4", 2, 4), flavor("2x8", 2, 8),
                        flavor("1x2", 1, 2), flavor("16x32", 16, 32)};
  EXPECT_EQ(smaller(all), "m1.2x4");
  EXPECT_EQ(smaller(all, {.vcpus = 2.01, .bytes = 4 * kFlavorGiB}), "m1.4x8");
  EXPECT_EQ(smaller(all, {.vcpus = 2, .bytes = 4 * kFlavorGiB + 1}), "m1.2x8");
  EXPECT_EQ(smaller(all, {.vcpus = 4, .bytes = 8 * kFlavorGiB}), "m1.4x8");
  EXPECT_EQ(smaller(all, {.vcpus = 4.01, .bytes = 8 * kFlavorGiB}), "none");
  EXPECT_EQ(smaller(all, {.vcpus = 4, .bytes = 8 * kFlavorGiB + 1}), "none");
  EXPECT_EQ(smaller(all, {.vcpus = 0.1, .bytes = 1}), "m1.1x2");
  EXPECT_EQ(smaller({}), "none");
}

TEST(SmallerFlavor, IsLargerInNothingAndSmallerInSomething) {
  EXPECT_EQ(smaller({flavor("same", 8, 16)}), "none");
  EXPECT_EQ(smaller({flavor("cpus", 4, 16)}), "m1.cpus");
  EXPECT_EQ(smaller({flavor("memory", 8, 8)}), "m1.memory");
  EXPECT_EQ(smaller({flavor("wide", 16, 8)}), "none");
  EXPECT_EQ(smaller({flavor("tall", 4, 32)}), "none");
  EXPECT_EQ(smaller({flavor("none", 0, 8)}, {}), "none");
}

/// Among one other flavor, which would do without the change.
template <typename Change>
std::string smaller_with(const Change& change) {
  model::Flavor other = flavor("other", 4, 8);
  change(other);
  return smaller({other});
}

TEST(SmallerFlavor, IsOneToWhichNovaResizes) {
  using F = model::Flavor;
  EXPECT_EQ(smaller_with([](F& /*f*/) {}), "m1.other");
  EXPECT_EQ(smaller_with([](F& f) { f.disk_gb = 39; }), "none");
  EXPECT_EQ(smaller_with([](F& f) { f.disk_gb = 41; }), "m1.other");
  EXPECT_EQ(smaller_with([](F& f) { f.ephemeral_gb = 9; }), "none");
  EXPECT_EQ(smaller_with([](F& f) { f.swap_mb = 511; }), "none");
  EXPECT_EQ(smaller_with([](F& f) { f.offered = false; }), "none");
  EXPECT_EQ(smaller_with([](F& f) { f.region = "south"; }), "none");
  EXPECT_EQ(smaller_with([](F& f) { f.extra_specs = "{}"; }), "none");
  EXPECT_EQ(smaller_with(
                [](F& f) { f.extra_specs = R"({"hw:cpu_policy":"shared","resources:VGPU":"1"})"; }),
            "none");
}

TEST(SmallerFlavor, CanBeNamedInAShell) {
  using F = model::Flavor;
  EXPECT_EQ(smaller_with([](F& f) { f.name = "-rf"; }), "none");
  EXPECT_EQ(smaller_with([](F& f) { f.name = "a\nb"; }), "none");
  EXPECT_EQ(smaller_with([](F& f) { f.name = ""; }), "none");
  EXPECT_EQ(smaller_with([](F& f) { f.name = "it's"; }), "it's");
  // The client of Nova would take the other one, whose id this is.
  EXPECT_EQ(smaller_with([](F& f) { f.name = "large"; }), "none");
}

TEST(SmallerFlavor, IsNotKnownWithHugePages) {
  for (const auto& [pages, name] : std::vector<std::pair<std::string, std::string>>{
           {"large", "none"}, {"any", "none"}, {"2MB", "none"}, {"small", "m1.x"}}) {
    model::Flavor now = large();
    now.extra_specs = R"({"hw:mem_page_size":")" + pages + R"("})";
    model::Flavor other = flavor("x", 4, 8);
    other.extra_specs = now.extra_specs;
    EXPECT_EQ(smaller({other}, {.vcpus = 1, .bytes = kFlavorGiB}, now), name) << pages;
  }
}

TEST(SmallerFlavor, HasTheLeastDiskOfTheSameSize) {
  model::Flavor more = flavor("a", 4, 8);
  more.disk_gb = 80;
  EXPECT_EQ(smaller({more, flavor("b", 4, 8), flavor("c", 4, 8)}), "m1.b");
}

TEST(FlavorOfAServer, HasItsNameSizeAndSpecs) {
  const std::vector flavors{flavor("small", 1, 2), large()};
  const auto name = [&](const std::string& allocation, const std::string& tags = "{}") {
    StoredUnit unit;
    unit.unit.allocation = allocation;
    unit.unit.tags = tags;
    const model::Flavor* const found = flavor_of(unit, flavors);
    return found == nullptr ? std::string("none") : found->name;
  };
  const std::string specs = R"("extra_specs":{"hw:cpu_policy":"shared"}})";
  const std::string size = R"({"name":"m1.large","vcpus":8,"mem":16384,"disk":40,"swap":512,)";
  EXPECT_EQ(name(size + specs), "m1.large");
  EXPECT_EQ(name(size + R"("extra_specs":{}})"), "none");
  EXPECT_EQ(name(size + R"("x":0})"), "none");
  EXPECT_EQ(name(size + specs, R"({"region":"south"})"), "none");
  EXPECT_EQ(name(R"({"name":"m1.large","vcpus":4,"mem":16384,"disk":40,"swap":512,)" + specs),
            "none");
  EXPECT_EQ(name(R"({"name":"m1.big","vcpus":8,"mem":16384,"disk":40,"swap":512,)" + specs),
            "none");
  EXPECT_EQ(name(R"({"name":"m1.large","vcpus":8,"mem":16384,"swap":512,)" + specs), "none");
  EXPECT_EQ(name("no JSON"), "none");
}

/// A TSDB in which each server used at most 2 CPUs and 3 GiB.
class ServerMeasurements final : public MeasurementSource {
 public:
  Result<UnitMeasurements> measure(const std::string& /*cluster_id*/, const UnitRun& run) override {
    const double elapsed = static_cast<double>(run.ended_ms - run.started_ms) / 1000;
    return UnitMeasurements{.nodes = {{.node = "n1",
                                       .cpus = 8,
                                       .cpu_seconds = elapsed,
                                       .cpu_used_max = cpus,
                                       .mem_peak = memory,
                                       .node_cpus = 64,
                                       .node_mem = 256 * kFlavorGiB,
                                       .covered_seconds = coverage * std::min(elapsed, kept)}},
                            .method = "measured"};
  }
  Result<std::vector<RunMeasurements>> measure_runs(const std::string& /*cluster_id*/,
                                                    const std::vector<UnitRun>& runs) override {
    return std::vector<RunMeasurements>(runs.size());
  }
  Number cpus = 2, memory = 3 * kFlavorGiB;
  double coverage = 1;
  double kept = 1e9;  ///< seconds of samples
};

class FlavorLines : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kNow + kHour)));
    ApiOptions options;
    options.measurements = &measurements_;
    make(std::move(options));
  }
  static model::Unit server(const std::string& state = "ACTIVE", std::int64_t ended_ms = 0) {
    model::Unit unit = job("4f0e-77", "ada", "fluids");
    unit.resource_manager = "openstack";
    unit.name = "web";
    unit.state = state;
    unit.started_at_ts = kNow + kHour - kWeek;
    unit.ended_at_ts = ended_ms;
    unit.allocation =
        R"({"disk":40,"extra_specs":{"hw:cpu_policy":"shared"},"mem":16384,"name":"m1.large",)"
        R"("swap":512,"vcpus":8})";
    unit.tags = R"({"az":"nova"})";
    return unit;
  }
  static std::vector<model::Flavor> known() {
    return {large(), flavor("medium", 4, 8), flavor("small", 1, 2)};
  }
  /// Writes a window with the server and these flavors and returns its report.
  json::object report_of(model::Unit unit,
                         std::optional<std::vector<model::Flavor>> flavors = known()) {
    store::ClusterUpdate update;
    const std::string cluster = fmt::format("os-{}", ++clusters_);
    update.cluster = {.id = cluster, .manager = "openstack", .updaters = {}};
    update.window = {kNow, kNow + kHour};
    unit.cluster_id = cluster;
    update.units = {unit};
    update.flavors = std::move(flavors);
    write(update);
    target_ = fmt::format("/api/v1/units/report?so_far&cluster_id={}&uuid=", cluster) +
              net::url_encode(unit.uuid);
    const auto response = get(target_, "ada");
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).at("data").at(0).as_object();
  }
  /// "rule: line (was)" of its findings.
  std::string lines_of(model::Unit unit,
                       std::optional<std::vector<model::Flavor>> flavors = known()) {
    const json::object report = report_of(std::move(unit), std::move(flavors));
    std::string text;
    for (const json::value& finding : report.at("findings").as_array()) {
      text += std::string(finding.at("rule").as_string()) + ":";
      for (const json::value& line : finding.at("lines").as_array()) {
        text +=
            fmt::format(" {} ({})", std::string(line.at("type").as_string()),
                        line.at("was").is_null() ? "" : std::string(line.at("was").as_string()));
      }
      EXPECT_TRUE(finding.at("sbatch").as_array().empty());
    }
    return text;
  }
  ServerMeasurements measurements_;
  std::string target_;
  int clusters_ = 0;
};

constexpr const char* kResize =
    "flavor-large: openstack server resize --flavor m1.medium 4f0e-77 (--flavor m1.large)";

TEST_F(FlavorLines, AreThereForAServerThatRuns) {
  EXPECT_EQ(lines_of(server()), kResize);
  for (const std::string form : {"text", "markdown", "html"}) {
    EXPECT_THAT(get(target_ + "&format=" + form, "ada").body,
                HasSubstr("openstack server resize --flavor m1.medium 4f0e-77"))
        << form;
  }
  EXPECT_EQ(get(target_, "eve").status, 404);
  EXPECT_EQ(lines_of(server("SHUTOFF")), kResize);
}

TEST_F(FlavorLines, KeepAFifthToSpare) {
  measurements_.cpus = 3.33;
  measurements_.memory = 6.66 * kFlavorGiB;
  EXPECT_EQ(lines_of(server()), kResize);
  measurements_.cpus = 3.34;
  EXPECT_EQ(lines_of(server()), "");
  measurements_.cpus = 2;
  measurements_.memory = 6.67 * kFlavorGiB;
  EXPECT_EQ(lines_of(server()), "");
}

TEST_F(FlavorLines, AreSilentOnWhatIsNotKnown) {
  EXPECT_EQ(lines_of(server(), std::nullopt), "");
  EXPECT_EQ(lines_of(server(), std::vector<model::Flavor>{}), "");
  EXPECT_EQ(lines_of(server(), std::vector{flavor("medium", 4, 8)}), "") << "not its own";
  measurements_.memory = std::nullopt;
  EXPECT_EQ(lines_of(server()), "");
  measurements_.memory = 0;
  EXPECT_EQ(lines_of(server()), "") << "nothing that runs uses no memory";
  measurements_.memory = 3 * kFlavorGiB;
  measurements_.cpus = std::nullopt;
  EXPECT_EQ(lines_of(server()), "");
  measurements_.cpus = 2;
  measurements_.coverage = 0.89;
  EXPECT_EQ(lines_of(server()), "");
  measurements_.coverage = 0.9;
  EXPECT_EQ(lines_of(server()), kResize);
}

TEST_F(FlavorLines, OfAServerThatIsGoneMakeTheNextOne) {
  constexpr const char* kCreate =
      "flavor-large: openstack server create --flavor m1.medium (--flavor m1.large)";
  EXPECT_EQ(lines_of(server("DELETED", kNow + kHour / 2)), kCreate);
  EXPECT_EQ(lines_of(server("SOFT_DELETED", kNow + kHour / 2)), kCreate);
  // Its next launch has a report, with the flavor that it has now.
  EXPECT_EQ(lines_of(server("RELAUNCHED", kNow + kHour / 2)), "");
}

TEST_F(FlavorLines, WaitForAWeek) {
  model::Unit young = server();
  young.started_at_ts += 1000;
  EXPECT_EQ(lines_of(young), "");
}

TEST_F(FlavorLines, LookAtTheLastDaysOfAServerThatIsOlderThanTheSamples) {
  measurements_.kept = 15 * 86'400;
  model::Unit old = server();
  old.started_at_ts -= 8 * kWeek;
  EXPECT_EQ(lines_of(old), kResize);
  EXPECT_THAT(get(target_ + "&format=text", "ada").body, Not(HasSubstr("partly measured")));
  // Two weeks of nine tenths, and less.
  measurements_.kept = 0.9 * 14 * 86'400;
  EXPECT_EQ(lines_of(old), kResize);
  measurements_.kept -= 3600;
  EXPECT_EQ(lines_of(old), "");
  EXPECT_THAT(get(target_ + "&format=text", "ada").body, HasSubstr("partly measured"));
  // When it is gone, its whole life counts.
  old.state = "DELETED";
  old.ended_at_ts = kNow + kHour / 2;
  measurements_.kept = 15 * 86'400;
  EXPECT_EQ(lines_of(old), "");
}

TEST_F(FlavorLines, AreOfOpenstackOnly) {
  model::Unit other = server();
  other.resource_manager = "slurm";
  EXPECT_EQ(report_of(other).at("findings").as_array().size(), 0U);
}

TEST_F(FlavorLines, QuoteHostileNames) {
  std::vector<model::Flavor> flavors = known();
  flavors[1].name = "m1'; rm -rf / #<b>";
  EXPECT_EQ(lines_of(server(), flavors),
            R"(flavor-large: openstack server resize --flavor 'm1'\''; rm -rf / #<b>' 4f0e-77 )"
            "(--flavor m1.large)");
  EXPECT_THAT(get(target_ + "&format=html", "ada").body, Not(HasSubstr("<b>")));
  flavors[1].name = "m1\nreboot";
  EXPECT_EQ(lines_of(server(), flavors), "");
  model::Unit hostile = server();
  hostile.uuid = "7;reboot";
  EXPECT_EQ(lines_of(hostile),
            "flavor-large: openstack server resize --flavor m1.medium '7;reboot' "
            "(--flavor m1.large)");
  hostile.uuid = "7\x1b]0;x";
  EXPECT_EQ(lines_of(hostile), "");
}

}  // namespace
}  // namespace ceems::api
