#include <gtest/gtest.h>

#include "export/all.h"
#include "export/test_unit.h"

namespace ceems::exporting {
namespace {

std::string json_line(const ExportedUnit& unit) {
  std::string out;
  jsonl_format().create({})->add(unit, out);
  return out;
}

TEST(ExportJsonLines, HasAnObjectALine) {
  EXPECT_EQ(
      json_line(test_unit()),
      R"({"cluster":"hpc-a","manager":"slurm","id":"7104","shown_id":"7100_4","name":"md,run",)"
      R"("user":"ada","group":"phys","project":"fluids","partition":"gpu","state":"COMPLETED",)"
      R"("created_ts":1767218400000,"started_ts":1767222000000,"ended_ts":1767225600000,)"
      R"("seconds":3600,"nodes":2,"cpus":64,"gpus":4,"mem":274877906944,"cpu_kwh":1.25,)"
      R"("gpu_kwh":0.1,"co2e_g":70.5,"co2e_source":"rte"})"
      "\n");
}

TEST(ExportJsonLines, WhatIsNotKnownIsAbsent) {
  const std::string line = json_line({.uuid = "7", .name = "a\nb\"", .ended_ms = 1000});
  EXPECT_EQ(line.find("kwh"), std::string::npos);
  EXPECT_EQ(line.find("co2e"), std::string::npos);
  EXPECT_EQ(line.find("cpus"), std::string::npos);
  EXPECT_NE(line.find(R"("name":"a\nb\"")"), std::string::npos);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

}  // namespace
}  // namespace ceems::exporting
