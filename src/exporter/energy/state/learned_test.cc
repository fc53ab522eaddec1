#include "exporter/energy/state/learned.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

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
               .bins = {{.use = 0.1, .watts = 1.0 / 3, .windows = 6}}});
  learned.add({.domain = Domain::kGpu,
               .device = "GPU-\"\xff\n",
               .bins = {{.use = 1, .watts = 700, .windows = 90}}});
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
      R"("bins":[[0.1,0.3333333333333333,6]]},)"
      R"({"domain":"gpu","device":"GPU-\")"
      "\uFFFD"
      R"(\n","meters":"","bins":[[1,700,90]]}],"numbers":{"lag ipmi_dcmi":1.25}})"
      "\n");
}

TEST(Learned, IsReadAsItWasWritten) {
  const Learned before = example();
  const auto after = from_json(to_json(before, kMachine), kMachine);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(to_json(*after, kMachine), to_json(before, kMachine));
  EXPECT_EQ(after->bins_of({.domain = Domain::kPackage, .socket = 1, .meters = "rapl-package-1"}),
            before.idle.at(1).bins);
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

TEST(LearnedIdleWatts, AreThoseOfAllSocketsAndDevices) {
  Learned learned;
  learned.idle = {
      {.domain = Domain::kPackage, .socket = 0, .bins = {{.use = 0, .watts = 40, .windows = 90}}},
      {.domain = Domain::kPackage, .socket = 1, .bins = {{.use = 0, .watts = 45, .windows = 90}}},
      {.domain = Domain::kGpu, .device = "a", .bins = {{.use = 0, .watts = 70, .windows = 9}}},
      {.domain = Domain::kDram, .bins = {{.use = 0, .watts = -1, .windows = 9}}}};
  const auto watts = idle_watts(learned);
  EXPECT_DOUBLE_EQ(watts.at(index(Domain::kPackage)).value_or(0), 85);
  EXPECT_DOUBLE_EQ(watts.at(index(Domain::kGpu)).value_or(0), 70);
  EXPECT_FALSE(watts.at(index(Domain::kDram)));
  EXPECT_FALSE(watts.at(index(Domain::kNode)));
}

}  // namespace
}  // namespace ceems::exporter::energy
