#include "export/push/messages.h"

#include <gmock/gmock.h>

#include "export/push/finals.h"
#include "export/push/test_messages.h"
#include "export/test_unit.h"
#include "host/read_file.h"

namespace ceems::exporting {
namespace {

using ::testing::ElementsAre;

EndedUnit ended() {
  return {.place = 1, .unit = test_unit()};
}

TEST(Messages, RemoteWriteHasASampleAtTheEndOfTheUnit) {
  const EndedUnit unit = ended();
  const std::string labels =
      R"({cluster="hpc-a",manager="slurm",partition="gpu",state="COMPLETED",uuid="7104"})";
  const std::string at = " @1767225600000";
  EXPECT_THAT(
      decode_write(write_request(std::span(&unit, 1), {})),
      ElementsAre("ceems_unit_cpu_energy_kwh" + labels + " 1.25" + at,
                  "ceems_unit_gpu_energy_kwh" + labels + " 0.1" + at,
                  "ceems_unit_emissions_grams" + labels + " 70.5" + at,
                  "ceems_unit_walltime_seconds" + labels + " 3600" + at,
                  "ceems_unit_cpu_usage_percent" + labels + " 50.5" + at,
                  "ceems_unit_cpu_mem_usage_percent" + labels + " 25" + at,
                  "ceems_unit_gpu_usage_percent" + labels + " 0" + at,
                  "ceems_unit_nodes" + labels + " 2" + at, "ceems_unit_cpus" + labels + " 64" + at,
                  "ceems_unit_gpus" + labels + " 4" + at));
}

TEST(Messages, NamesOfPeopleAreSentOnlyIfAskedFor) {
  const EndedUnit unit = ended();
  const std::string plain = write_request(std::span(&unit, 1), {});
  for (const char* const name : {"ada", "fluids", "phys", "md,run", "/home"}) {
    EXPECT_FALSE(plain.contains(name)) << name;
    EXPECT_FALSE(metrics_request(std::span(&unit, 1), {}).contains(name)) << name;
  }
  const auto named =
      decode_write(write_request(std::span(&unit, 1), {.with_user = true, .with_project = true}));
  EXPECT_TRUE(named.front().starts_with(
      R"(ceems_unit_cpu_energy_kwh{cluster="hpc-a",manager="slurm",partition="gpu",)"
      R"(project="fluids",state="COMPLETED",user="ada",uuid="7104"} 1.25)"))
      << named.front();
}

TEST(Messages, WhatIsNotKnownIsNotSent) {
  const EndedUnit unit{.unit = {.cluster = "c\xff", .uuid = "7", .ended_ms = 5}};
  EXPECT_THAT(decode_write(write_request(std::span(&unit, 1), {})),
              ElementsAre("ceems_unit_walltime_seconds{cluster=\"c\uFFFD\",uuid=\"7\"} 0 @5"));
  EXPECT_THAT(decode_metrics(metrics_request(std::span(&unit, 1), {})),
              ElementsAre("resource service.name=ceems ceems.cluster=c\uFFFD ceems.unit.id=7 "
                          "https://opentelemetry.io/schemas/1.43.0",
                          "ceems.unit.walltime s sum 0 0 5000000"));
}

TEST(Messages, OtlpHasAResourceForEachUnit) {
  const std::vector<EndedUnit> units{ended(), ended()};
  auto lines = decode_metrics(metrics_request(units, {.with_project = true}));
  ASSERT_EQ(lines.size(), 22U);
  EXPECT_EQ(lines[0], lines[11]);
  lines.resize(11);
  const std::string sum = "1767222000000000000 1767225600000000000";
  const std::string gauge = "0 1767225600000000000";
  EXPECT_THAT(
      lines,
      ElementsAre(
          "resource service.name=ceems ceems.cluster=hpc-a ceems.unit.manager=slurm "
          "ceems.unit.partition=gpu ceems.unit.project=fluids ceems.unit.state=COMPLETED "
          "ceems.unit.id=7104 https://opentelemetry.io/schemas/1.43.0",
          "hw.energy J sum 4500000 " + sum + " hw.id=cpu hw.type=cpu",
          "hw.energy J sum 360000 " + sum + " hw.id=gpu hw.type=gpu",
          "ceems.unit.emissions g sum 70.5 " + sum, "ceems.unit.walltime s sum 3600 " + sum,
          "ceems.unit.cpu.usage % gauge 50.5 " + gauge,
          "ceems.unit.cpu.memory.usage % gauge 25 " + gauge,
          "ceems.unit.gpu.usage % gauge 0 " + gauge, "ceems.unit.nodes {node} gauge 2 " + gauge,
          "ceems.unit.cpus {cpu} gauge 64 " + gauge, "ceems.unit.gpus {gpu} gauge 4 " + gauge));
}

TEST(Messages, SnappyBlocksOfEachLengthAreReadBack) {
  for (const std::size_t size : {0UL, 1UL, 127UL, 128UL, 65'535UL, 65'536UL, 65'537UL, 200'000UL}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; ++i) {
      text[i] = static_cast<char>(i * 31 % 251);
    }
    EXPECT_EQ(decode_snappy(snappy_literals(text)), text) << size;
  }
  EXPECT_EQ(snappy_literals("ab"), std::string("\x02\xF4\x01\x00"
                                               "ab",
                                               6));
}

TEST(Messages, EachValueHasARowInTheDocumentation) {
  const auto text = host::read_file(CEEMS_TEST_ROOT "/../docs/export.md");
  ASSERT_TRUE(text) << text.error().message;
  for (const Final& final : finals()) {
    EXPECT_NE(text->find(fmt::format("| `{}` | `{}`", final.series, final.metric)),
              std::string::npos)
        << final.series;
  }
}

}  // namespace
}  // namespace ceems::exporting
