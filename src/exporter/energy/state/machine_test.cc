#include <gtest/gtest.h>

#include "exporter/energy/state/learned.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::energy {
namespace {

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
