#include <gtest/gtest.h>

#include "export/all.h"
#include "export/test_unit.h"

namespace ceems::exporting {
namespace {

std::string csv_row(const ExportedUnit& unit) {
  std::string out;
  csv_format().create({})->add(unit, out);
  return out;
}

TEST(ExportCsv, HasARowAUnit) {
  std::string header;
  csv_format().create({})->begin(header);
  EXPECT_EQ(header,
            "cluster,id,shown_id,name,user,group,project,partition,state,created,started,ended,"
            "seconds,nodes,cpus,gpus,mem_bytes,cpu_kwh,gpu_kwh,kwh,co2e_g,co2e_source\r\n");
  EXPECT_EQ(csv_row(test_unit()),
            "hpc-a,7104,7100_4,\"md,run\",ada,phys,fluids,gpu,COMPLETED,2025-12-31T22:00:00Z,"
            "2025-12-31T23:00:00Z,2026-01-01T00:00:00Z,3600,2,64,4,274877906944,1.25,0.1,1.35,"
            "70.5,rte\r\n");
}

TEST(ExportCsv, WhatIsNotKnownIsEmpty) {
  EXPECT_EQ(csv_row({.uuid = "7", .ended_ms = 1'767'225'600'000}),
            ",7,7,,,,,,,,,2026-01-01T00:00:00Z,0,,,,,,,,,\r\n");
  // Energy of one part is all that is known.
  EXPECT_NE(csv_row({.uuid = "7", .cpu_kwh = 2}).find(",2,,2,,"), std::string::npos);
}

TEST(ExportCsv, FlavorsOfOpenstackHaveMebibytes) {
  const ExportedUnit unit{.manager = "openstack",
                          .uuid = "v",
                          .allocation = JsonMembers::parse(R"({"vcpus":2,"mem":1024})")};
  EXPECT_EQ(csv_row(unit), ",v,v,,,,,,,,,,0,,2,,1073741824,,,,,\r\n");
}

TEST(ExportCsv, NoCellIsAFormula) {
  EXPECT_EQ(csv_row({.uuid = "7", .name = "=1+1", .user = "a\"b"}).substr(0, 22),
            ",7,7,'=1+1,\"a\"\"b\",,,,,");
}

}  // namespace
}  // namespace ceems::exporting
