#include "exporter/energy/state/learned.h"

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::energy {
namespace {

const MachineIdentity kMachine{.id = "0123abcd", .cpu = "AMD EPYC 9654", .sockets = 2, .cpus = 384};

Learned example() {
  Learned learned;
  learned.add({.domain = Domain::kPackage,
               .meters = "rapl-package-0,rapl-package-1",
               .bins = {{.use = 0, .watts = 160.5, .windows = 90},
                        {.use = 0.3, .watts = 243.25, .windows = 1}}});
  learned.add({.domain = Domain::kPackage,
               .socket = 1,
               .meters = "rapl-package-1",
               .bins = {{.use = 0.1, .watts = 1.0 / 3, .windows = 6}},
               .estimate = PowerEstimate{.watts = 40.5, .deviation = 2.25},
               .core = PowerEstimate{.watts = 2.5, .deviation = 0.5},
               .system = PowerEstimate{.watts = 1.5, .deviation = 0.25},
               .units = {{.unit = "slurm//12\"3",
                          .core = PowerEstimate{.watts = 3.5, .deviation = 0.125}}}});
  learned.add({.domain = Domain::kGpu,
               .device = "GPU-\"\xff\n",
               .bins = {{.use = 1, .watts = 700, .windows = 90}}});
  learned.lags.push_back({.source = "ipmi_dcmi",
                          .known = "rapl-package-0",
                          .state = {.lag = {.delay = 5, .window = 60},
                                    .by_power = {4, 5, 6.25, 8},
                                    .by_use = {1, 2, 4, 8},
                                    .line = {3600, 200, 350, 10, 11}}});
  learned.numbers["lag ipmi_dcmi"] = 1.25;
  return learned;
}

/// A state file in which `old_text` of the example is replaced.
std::string changed(std::string_view old_text, std::string_view new_text) {
  std::string text = to_json(example(), kMachine);
  const auto at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text << " is not in " << text;
  return text.replace(at, old_text.size(), new_text);
}

std::string error_of(std::string_view text) {
  const auto learned = from_json(text, kMachine);
  return learned ? "none" : learned.error().message;
}

TEST(Learned, IsWrittenAsOneLine) {
  EXPECT_EQ(
      to_json(example(), kMachine),
      R"({"version":1,"machine":{"id":"0123abcd","cpu":"AMD EPYC 9654","sockets":2,"cpus":384},)"
      R"("idle":[{"domain":"package","meters":"rapl-package-0,rapl-package-1",)"
      R"("bins":[[0,160.5,90],[0.3,243.25,1]]},)"
      R"({"domain":"package","socket":1,"meters":"rapl-package-1",)"
      R"("bins":[[0.1,0.3333333333333333,6]],"estimate":[40.5,2.25],"core":[2.5,0.5],)"
      R"("system":[1.5,0.25],"units":{"slurm//12\"3":[3.5,0.125]}},)"
      R"({"domain":"gpu","device":"GPU-\")"
      "\uFFFD"
      R"(\n","meters":"","bins":[[1,700,90]]}],)"
      R"("lags":[{"source":"ipmi_dcmi","known":"rapl-package-0","delay":5,"window":60,)"
      R"("by_power":[4,5,6.25,8],)"
      R"("by_use":[1,2,4,8],"line":[3600,200,350,10,11]}],"numbers":{"lag ipmi_dcmi":1.25}})"
      "\n");
}

TEST(Learned, IsReadAsItWasWritten) {
  const Learned before = example();
  const auto after = from_json(to_json(before, kMachine), kMachine);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(to_json(*after, kMachine), to_json(before, kMachine));
  EXPECT_EQ(after->bins_of({.domain = Domain::kPackage, .socket = 1, .meters = "rapl-package-1"}),
            before.idle.at(1).bins);
  EXPECT_EQ(after->idle.at(1).estimate, before.idle.at(1).estimate);
  EXPECT_EQ(after->idle.at(0).estimate, std::nullopt);
  EXPECT_EQ(after->idle.at(1).core, before.idle.at(1).core);
  EXPECT_EQ(after->idle.at(1).system, before.idle.at(1).system);
  EXPECT_EQ(after->idle.at(1).units, before.idle.at(1).units);
  ASSERT_NE(after->lag_of("ipmi_dcmi"), nullptr);
  EXPECT_EQ(*after->lag_of("ipmi_dcmi"), before.lags.at(0).state);
  EXPECT_EQ(after->lag_of("redfish"), nullptr);
  EXPECT_EQ(after->numbers, before.numbers);
}

TEST(Learned, BelongsToItsPlaceOnly) {
  const Learned learned = example();
  const Learned::Idle place{.domain = Domain::kPackage, .meters = "rapl-package-0,rapl-package-1"};
  EXPECT_EQ(learned.bins_of(place).size(), 2U);
  Learned::Idle other = place;
  other.domain = Domain::kDram;
  EXPECT_TRUE(learned.bins_of(other).empty());
  other = place;
  other.socket = 0;
  EXPECT_TRUE(learned.bins_of(other).empty());
  other = place;
  other.device = "GPU-1";
  EXPECT_TRUE(learned.bins_of(other).empty());
  other = place;
  other.meters = "rapl-package-0";
  EXPECT_TRUE(learned.bins_of(other).empty());
}

TEST(Learned, KeepsWhatIsAbsentThisTime) {
  Learned now;
  now.add({.domain = Domain::kPackage,
           .meters = "rapl-package-0,rapl-package-1",
           .bins = {{.use = 0, .watts = 99, .windows = 1}}});
  now.add({.domain = Domain::kNode, .meters = "ipmi_dcmi"});  // nothing was learned
  now.numbers["lag ipmi_dcmi"] = 2;
  now.add_missing(example());
  ASSERT_EQ(now.idle.size(), 3U);
  EXPECT_EQ(now.idle.at(0).bins.at(0).watts, 99);
  EXPECT_EQ(now.idle.at(2).bins.at(0).watts, 700);
  EXPECT_EQ(now.numbers.at("lag ipmi_dcmi"), 2);
}

TEST(Learned, IsRefusedOnOtherMachines) {
  EXPECT_EQ(error_of(changed("0123abcd", "fedc9876")), "of another machine");
  EXPECT_EQ(error_of(changed("9654", "9755")),
            "of the CPU 'AMD EPYC 9755', this is 'AMD EPYC 9654'");
  EXPECT_EQ(error_of(changed("\"sockets\":2", "\"sockets\":1")),
            "of 1 sockets and 384 CPUs, this machine has 2 and 384");
  EXPECT_EQ(error_of(changed("384", "192")),
            "of 2 sockets and 192 CPUs, this machine has 2 and 384");
  EXPECT_EQ(error_of(R"({"version":1,"idle":[]})"), "expected the machine");
}

TEST(Learned, IsRefusedInOtherVersions) {
  EXPECT_EQ(error_of(changed("\"version\":1", "\"version\":2")), "of version 2, expected 1");
  EXPECT_EQ(error_of(changed("\"version\":1", "\"version\":\"1\"")), "expected a finite number");
  EXPECT_EQ(error_of(changed("\"version\":1,", "")), "expected a version");
}

TEST(Learned, IsRefusedWithImpossibleValues) {
  EXPECT_EQ(error_of(changed("160.5", "-160.5")),
            "impossible use, watts and windows [0, -160.5, 90]");
  EXPECT_EQ(error_of(changed("160.5", "1e7")),
            "impossible use, watts and windows [0, 10000000, 90]");
  EXPECT_EQ(error_of(changed("160.5", "1e999")), "expected a finite number");
  EXPECT_EQ(error_of(changed("160.5", "NaN")), "expected a finite number");
  EXPECT_EQ(error_of(changed("0.3,", "1.1,")),
            "impossible use, watts and windows [1.1, 243.25, 1]");
  EXPECT_EQ(error_of(changed("243.25,1]", "243.25,0]")),
            "impossible use, watts and windows [0.3, 243.25, 0]");
  EXPECT_EQ(error_of(changed("1.25", "-1e400")), "expected a finite number");
  EXPECT_EQ(error_of(changed("\"socket\":1", "\"socket\":1.5")), "expected the number of a socket");
  EXPECT_EQ(error_of(changed("\"gpu\"", "\"wall\"")), "unknown domain 'wall'");
  EXPECT_EQ(error_of(changed("\"domain\":\"gpu\",", "")), "expected a domain");
  EXPECT_EQ(error_of(changed("[40.5,2.25]", "[0,2.25]")),
            "impossible watts and deviation [0, 2.25]");
  EXPECT_EQ(error_of(changed("[40.5,2.25]", "[40.5,-1]")),
            "impossible watts and deviation [40.5, -1]");
  EXPECT_EQ(error_of(changed("[40.5,2.25]", "[40.5]")), "expected [watts, deviation]");
  EXPECT_EQ(error_of(changed("[40.5,2.25]", "[40.5,1e999]")), "expected a finite number");
  EXPECT_EQ(error_of(changed("[2.5,0.5]", "[2e7,0.5]")),
            "impossible watts and deviation [20000000, 0.5]");
  EXPECT_EQ(error_of(changed("[1.5,0.25]", "1.5")), "expected [watts, deviation]");
  EXPECT_EQ(error_of(changed("[3.5,0.125]", "[-3.5,0.125]")),
            "impossible watts and deviation [-3.5, 0.125]");
  EXPECT_EQ(error_of(changed("\"delay\":5", "\"delay\":6")), "impossible lag of 'ipmi_dcmi'");
  EXPECT_EQ(error_of(changed("[4,5,6.25,8]", "[4,9,6.25,8]")), "impossible lag of 'ipmi_dcmi'");
  EXPECT_EQ(error_of(changed("[1,2,4,8]", "[1,2,4]")), "expected 4 numbers");
  EXPECT_EQ(error_of(changed("10,11]", "10,11,12]")), "expected 5 numbers");
  std::string bins;
  for (std::size_t i = 0; i <= IdlePower::kBins; ++i) {
    bins += (i == 0 ? "[0,1,1]" : ",[0,1,1]");
  }
  EXPECT_EQ(error_of(changed("[1,700,90]", bins)), "more than 16 bins");
}

TEST(Learned, IsRefusedIfItIsNotOfItsForm) {
  EXPECT_EQ(error_of(""), "expected an object");
  EXPECT_EQ(error_of("[]"), "expected an object");
  EXPECT_EQ(error_of("{\"version\":1,"), "expected a key");
  EXPECT_EQ(error_of("{\"version\":1"), "expected the end of an object");
  EXPECT_EQ(error_of(changed("[0,160.5,90]", "[0,160.5]")), "expected [use, watts, windows]");
  EXPECT_EQ(error_of(changed("[[0,160.5,90]", "7,[[0,160.5,90]")), "expected a list");
  EXPECT_EQ(error_of(to_json(example(), kMachine) + "x"), "expected the end of the text");
  const std::string text = to_json(example(), kMachine);
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {  // all but the line end
    EXPECT_NE(error_of(std::string_view(text).substr(0, size)), "none") << size;
  }
}

TEST(Learned, SkipsWhatItDoesNotKnow) {
  EXPECT_EQ(error_of(changed("\"idle\":", "\"new\":[{\"a\":[1,null]}],\"idle\":")), "none");
  EXPECT_EQ(error_of(changed("\"socket\":1", "\"new\":{},\"socket\":1")), "none");
  EXPECT_EQ(error_of(changed("\"cpus\"", "\"new\":true,\"cpus\"")), "none");
  EXPECT_EQ(error_of(changed("\"idle\":", "\"new\":nothing,\"idle\":")), "invalid value of 'new'");
}

TEST(Learned, KeepsAllValuesBesideKeysThatItDoesNotKnow) {
  std::string text = to_json(example(), kMachine);
  // A later version may add a member to any object.
  for (const char* const object : {"{\"version\"", "{\"id\"", "{\"domain\"", "{\"source\""}) {
    for (auto at = text.find(object); at != std::string::npos; at = text.find(object, at + 40)) {
      text.insert(at + 1, R"("later":{"a":[1,"}",null]},"also":-1e3,)");
    }
  }
  const auto read = from_json(text, kMachine);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read, kMachine), to_json(example(), kMachine));
}

TEST(Learned, ReadsAFileOfTheFirstVersions) {
  // Before units, estimates and lags were learned.
  const auto read = from_json(
      R"({"version":1,"machine":{"id":"0123abcd","cpu":"AMD EPYC 9654","sockets":2,"cpus":384},)"
      R"("idle":[{"domain":"package","meters":"rapl-package-0","bins":[[0,80.5,90],[0.5,200,6]]},)"
      R"({"domain":"node","meters":"ipmi_dcmi","bins":[[0.1,310,12]]}]})",
      kMachine);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->idle.size(), 2U);
  EXPECT_EQ(read->bins_of({.domain = Domain::kPackage, .meters = "rapl-package-0"}),
            (std::vector<IdlePower::Bin>{{.use = 0, .watts = 80.5, .windows = 90},
                                         {.use = 0.5, .watts = 200, .windows = 6}}));
  EXPECT_EQ(read->idle[0].estimate, std::nullopt);
  EXPECT_EQ(read->idle[0].core, std::nullopt);
  EXPECT_TRUE(read->idle[0].units.empty());
  EXPECT_TRUE(read->lags.empty());
  EXPECT_NEAR(idle_estimates(*read).at(index(Domain::kPackage)).value_or(PowerEstimate{}).watts,
              80.5, 2);
  // A lag from when use was modelled.
  const auto lag = from_json(
      R"({"version":1,"machine":{"id":"0123abcd","cpu":"AMD EPYC 9654","sockets":2,"cpus":384},)"
      R"("lags":[{"source":"ipmi_dcmi","known":"","delay":5,"window":60,"by_power":[4,5,6.25,8],)"
      R"("by_use":[1,2,4,8],"by_model":[2,2,3,8],"line":[0,0,0,0,0]}]})",
      kMachine);
  ASSERT_TRUE(lag) << lag.error().message;
  ASSERT_EQ(lag->lags.size(), 1U);
  EXPECT_EQ(lag->lags[0].state.lag, (MeterLag::Lag{.delay = 5, .window = 60}));
}

TEST(Learned, WritesNoMoreThanItsLimitAndNoInfinity) {
  Learned many;
  for (std::size_t i = 0; i < Learned::kMaxEntries + 5; ++i) {
    many.add({.domain = Domain::kGpu,
              .device = std::to_string(i),
              .bins = {{.use = 0, .watts = 1, .windows = 1}}});
    many.numbers[std::to_string(i)] = 1;
  }
  many.numbers["0"] = std::numeric_limits<double>::infinity();
  const auto read = from_json(to_json(many, kMachine), kMachine);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->idle.size(), Learned::kMaxEntries);
  EXPECT_EQ(read->numbers.size(), Learned::kMaxEntries);
  EXPECT_FALSE(read->numbers.contains("0"));
}

TEST(Learned, KeepsALimitedNumberOfUnits) {
  Learned learned;
  Learned::Idle entry{.domain = Domain::kPackage, .bins = {{.use = 0, .watts = 1, .windows = 1}}};
  const PowerEstimate core{.watts = 2, .deviation = 1};
  entry.units.push_back({.unit = std::string(Learned::kMaxUnitName + 1, 'x'), .core = core});
  entry.units.push_back({.unit = "broken", .core = {.watts = -1, .deviation = 1}});
  for (std::size_t i = 0; i < Learned::kMaxUnits + 50; ++i) {
    entry.units.push_back({.unit = "slurm//" + std::to_string(i), .core = core});
  }
  learned.add(entry);
  const auto read = from_json(to_json(learned, kMachine), kMachine);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->idle.at(0).units.size(), Learned::kMaxUnits);
  EXPECT_EQ(read->idle.at(0).units.at(0).unit, "slurm//0");
}

TEST(LearnedIdleEstimates, AreThoseOfAllSocketsAndDevices) {
  Learned learned;
  learned.idle = {
      {.domain = Domain::kPackage, .socket = 0, .bins = {{.use = 0, .watts = 40, .windows = 90}}},
      {.domain = Domain::kPackage,
       .socket = 1,
       .bins = {{.use = 0, .watts = 50, .windows = 90}},
       .estimate = PowerEstimate{.watts = 45, .deviation = 2}},
      {.domain = Domain::kGpu, .device = "a", .bins = {{.use = 0, .watts = 70, .windows = 9}}},
      {.domain = Domain::kNode, .bins = {{.use = 1, .watts = 400, .windows = 9}}},
      {.domain = Domain::kDram, .bins = {{.use = 0, .watts = -1, .windows = 9}}}};
  const auto estimates = idle_estimates(learned, {.node = 0.25});
  const auto of = [&](Domain domain) {
    return estimates.at(index(domain)).value_or(PowerEstimate{});
  };
  EXPECT_DOUBLE_EQ(of(Domain::kPackage).watts, 85);
  EXPECT_DOUBLE_EQ(of(Domain::kPackage).deviation, 2);
  EXPECT_TRUE(of(Domain::kPackage).learned());
  EXPECT_DOUBLE_EQ(of(Domain::kGpu).watts, 70);
  EXPECT_DOUBLE_EQ(of(Domain::kNode).watts, 100);
  EXPECT_DOUBLE_EQ(of(Domain::kNode).deviation, 150);
  EXPECT_FALSE(of(Domain::kNode).learned());
  EXPECT_FALSE(estimates.at(index(Domain::kDram)));
  EXPECT_FALSE(estimates.at(index(Domain::kOther)));
}

TEST(MachineIdentity, IsToldApartByItsIdAndItsCpus) {
  const testing::TempDir dir;
  const host::Paths paths{dir.path() / "proc", dir.path() / "sys", dir.path() / "cgroup"};
  const std::string id = dir.write("machine-id", "b08dfa6083e7567a1921a715000001fb\n");
  dir.write("proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Fast CPU\nphysical id\t: 0\n\n"
            "processor\t: 1\nmodel name\t: Fast CPU\nphysical id\t: 1\n");
  const MachineIdentity machine = this_machine(paths, id);
  EXPECT_EQ(machine.cpu, "Fast CPU");
  EXPECT_EQ(machine.sockets, 2U);
  EXPECT_EQ(machine.cpus, 2U);
  EXPECT_EQ(machine.id.size(), 32U);
  EXPECT_EQ(machine.id.find("b08d"), std::string::npos);  // it stays a secret of the machine
  EXPECT_EQ(this_machine(paths, id), machine);
  dir.write("machine-id", "b08dfa6083e7567a1921a715000001fc\n");
  EXPECT_NE(this_machine(paths, id).id, machine.id);
}

TEST(MachineIdentity, IsKnownWithoutFiles) {
  const testing::TempDir dir;
  const host::Paths paths{dir.path() / "proc", dir.path() / "sys", dir.path() / "cgroup"};
  const MachineIdentity machine = this_machine(paths, dir.path() / "machine-id");
  EXPECT_EQ(machine.id.size(), 32U);
  EXPECT_EQ(machine.cpu, "");
  EXPECT_EQ(machine.cpus, 0U);
}

}  // namespace

}  // namespace ceems::exporter::energy
