#include "exporter/collectors/libvirt.h"

#include <linux/capability.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/libvirt/domains.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kUuid = "5d2b1c1a-0001-4e7f-9b6f-1a2b3c4d5e6f";
const std::string kScope = R"(machine.slice/machine-qemu\x2d7\x2dinstance\x2d000000a1.scope)";

std::string libvirt_sample(const std::string& name,
                           const std::string& uuid,
                           const std::string& value) {
  return "ceems_compute_unit_" + name +
         R"({cgrouphostname="",hostname="n1",manager="libvirt",uuid=")" + uuid + "\"} " + value +
         "\n";
}

Unit unit(const std::string& id, const std::string& uuid) {
  Unit result;
  result.id = id;
  result.uuid = uuid;
  return result;
}

/// A machine with VMs in plain files.
class LibvirtNode : public ::testing::Test {
 protected:
  LibvirtNode() {
    root_.write("proc/meminfo", "MemTotal: 1024 kB\nSwapTotal: 0 kB\n");
    root_.write("proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n");
    root_.write("sys/fs/cgroup/cgroup.procs", "");
  }

  void write(const std::string& file, std::string_view text) const {
    root_.write("sys/fs/cgroup/" + file, text);
  }
  void make_vm(const std::string& directory, int vcpus) const {
    write(directory + "/cpu.stat", "usage_usec 3\nuser_usec 2500000\nsystem_usec 500000\n");
    write(directory + "/memory.max", "max\n");
    write(directory + "/memory.swap.max", "max\n");
    write(directory + "/memory.swap.current", "77\n");
    write(directory + "/cpu.pressure", "some total=1\nfull avg10=0 total=3000000\n");
    write(directory + "/io.pressure", "some avg10=0 total=4500000\nfull avg10=0 total=1\n");
    write(directory + "/io.stat", "8:0 rbytes=10 wbytes=20 rios=1 wios=2\n");
    const std::string groups = directory + (directory.ends_with(".scope") ? "/libvirt/" : "/");
    write(groups + "emulator/cgroup.procs", "");
    for (int i = 0; i < vcpus; ++i) {
      write(groups + "vcpu" + std::to_string(i) + "/cgroup.procs", "");
    }
  }
  void define(const std::string& id, const std::string& uuid, const std::string& more = "") const {
    root_.write("qemu/" + id + ".xml", "<domain><uuid>" + uuid + "</uuid>" + more + "</domain>");
  }
  Collector& collector(const std::string& version = "v2", UnitMetricOptions metrics = {}) {
    if (!collector_) {
      collector_ =
          make_libvirt_collector(
              test_.context, {.force_version = version}, {},
              {.metrics = metrics, .xml_dirs = {root_.path() / "qemu", root_.path() / "run"}})
              .value();
    }
    return *collector_;
  }

  testing::TempDir root_;
  TestContext test_{root_.path()};
  std::unique_ptr<Collector> collector_;
};

TEST_F(LibvirtNode, ShowsVmsWithoutLookingForProcesses) {
  make_vm(kScope, 3);
  define("instance-000000a1", kUuid);
  const std::string page = samples_of(collector());
  EXPECT_THAT(page, HasSubstr("ceems_compute_units{hostname=\"n1\",manager=\"libvirt\"} 1\n"));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpu_user_seconds_total", kUuid, "2.5")));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpu_system_seconds_total", kUuid, "0.5")));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpus", kUuid, "3")));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("memory_total_bytes", kUuid, "1.048576e+06")));
  for (const std::string off : {"memsw", "psi", "pressure", "blkio", "instance-"}) {
    EXPECT_THAT(page, Not(HasSubstr(off)));
  }
}

TEST_F(LibvirtNode, ShowsSwapPressureAndBlockIoOnRequest) {
  make_vm(kScope, 1);
  define("instance-000000a1", kUuid);
  const std::string page =
      samples_of(collector("v2", {.swap = true, .pressure = true, .block_io = true}));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("memsw_used_bytes", kUuid, "77")));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("memsw_total_bytes", kUuid, "1.048576e+06")));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpu_psi_seconds", kUuid, "3")));
  EXPECT_THAT(page, Not(HasSubstr("pressure_seconds")));  // jobs and pods have it
  EXPECT_THAT(page, HasSubstr("blkio_write_total_bytes{cgrouphostname=\"\",device=\"sda\""));
}

TEST_F(LibvirtNode, CountsVcpusWithoutSystemd) {
  make_vm("machine/qemu-4-instance-000000a2.libvirt-qemu", 5);
  write("machine/qemu-4-instance-000000a2.libvirt-qemu/iothread1/cgroup.procs", "");
  define("instance-000000a2", kUuid);
  const std::string page = samples_of(collector());
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpus", kUuid, "5")));
  EXPECT_THAT(page, HasSubstr("manager=\"libvirt\"} 1\n"));
}

TEST_F(LibvirtNode, UsesOnlyOneOfTheTwoRoots) {
  make_vm(kScope, 2);
  define("instance-000000a1", kUuid);
  EXPECT_THAT(samples_of(collector()), HasSubstr(libvirt_sample("cpus", kUuid, "2")));
  const std::string other = "5d2b1c1a-0002-4e7f-9b6f-1a2b3c4d5e6f";
  make_vm("machine/qemu-4-instance-000000a2.libvirt-qemu", 5);
  define("instance-000000a2", other);
  collector_.reset();
  std::string page = samples_of(collector());
  EXPECT_THAT(page, HasSubstr("manager=\"libvirt\"} 1\n"));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpus", other, "5")));
  EXPECT_THAT(page, Not(HasSubstr(kUuid)));
  // The second counts again while the first has no VM.
  std::filesystem::remove_all(root_.path() / "sys/fs/cgroup/machine");
  test_.clock.advance(std::chrono::seconds(15));
  page = samples_of(collector());
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpus", kUuid, "2")));
  EXPECT_THAT(page, HasSubstr("manager=\"libvirt\"} 1\n"));
}

TEST_F(LibvirtNode, CountsVcpusInV1) {
  const std::string scope = "cpu,cpuacct/" + kScope;
  write(scope + "/vcpu0/cgroup.procs", "");
  write(scope + "/vcpu1/cgroup.procs", "");
  write(scope + "/emulator/cgroup.procs", "");
  write("cpuacct/" + kScope + "/cpuacct.stat", "user 100\nsystem 50\n");
  define("instance-000000a1", kUuid);
  const std::string page = samples_of(collector("v1"));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpus", kUuid, "2")));
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpu_user_seconds_total", kUuid, "1")));
}

TEST_F(LibvirtNode, ShowsTheIdUntilTheDefinitionExists) {
  make_vm(kScope, 1);
  EXPECT_THAT(samples_of(collector()), HasSubstr(libvirt_sample("cpus", "instance-000000a1", "1")));
  test_.clock.advance(std::chrono::seconds(1));
  define("instance-000000a1", kUuid);
  const std::string page = samples_of(collector());
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpus", kUuid, "1")));
  EXPECT_THAT(page, Not(HasSubstr("instance-")));
}

TEST_F(LibvirtNode, WaitsAMomentForTheDefinitionOfANewVm) {
  samples_of(collector());
  make_vm(kScope, 1);
  test_.clock.advance(std::chrono::seconds(15));
  EXPECT_THAT(samples_of(collector()), HasSubstr("manager=\"libvirt\"} 0\n"));
  test_.clock.advance(std::chrono::seconds(2));
  EXPECT_THAT(samples_of(collector()), Not(HasSubstr("instance-")));
  test_.clock.advance(std::chrono::seconds(2));
  EXPECT_THAT(samples_of(collector()), HasSubstr(libvirt_sample("cpus", "instance-000000a1", "1")));
}

TEST_F(LibvirtNode, KeepsTheUuidWhenTheDefinitionIsRemoved) {
  make_vm(kScope, 1);
  define("instance-000000a1", kUuid);
  EXPECT_THAT(samples_of(collector()), HasSubstr(kUuid));
  std::filesystem::remove_all(root_.path() / "qemu");
  test_.clock.advance(std::chrono::seconds(90));
  EXPECT_THAT(samples_of(collector()), HasSubstr(libvirt_sample("cpus", kUuid, "1")));
}

TEST_F(LibvirtNode, FindsVmsThatStartLaterAndDropsThoseThatEnd) {
  EXPECT_EQ(samples_of(collector()),
            "ceems_compute_units{hostname=\"n1\",manager=\"libvirt\"} 0\n");
  define("instance-000000a1", kUuid);
  make_vm(kScope, 1);
  test_.clock.advance(std::chrono::seconds(15));
  EXPECT_THAT(samples_of(collector()), HasSubstr(libvirt_sample("cpus", kUuid, "1")));
  std::filesystem::remove_all(root_.path() / "sys/fs/cgroup" / kScope);
  test_.clock.advance(std::chrono::seconds(15));
  EXPECT_THAT(samples_of(collector()), HasSubstr("manager=\"libvirt\"} 0\n"));
}

TEST_F(LibvirtNode, KeepsTheUuidOfAVmThatIsRebooted) {
  define("instance-000000a1", kUuid);
  make_vm("machine/qemu-9-instance-000000a1.libvirt-qemu", 1);
  EXPECT_THAT(samples_of(collector()), HasSubstr(libvirt_sample("cpus", kUuid, "1")));
  std::filesystem::remove_all(root_.path() /
                              "sys/fs/cgroup/machine/qemu-9-instance-000000a1.libvirt-qemu");
  make_vm("machine/qemu-10-instance-000000a1.libvirt-qemu", 2);  // sorts before the old name
  test_.clock.advance(std::chrono::seconds(15));
  const std::string page = samples_of(collector());
  EXPECT_THAT(page, HasSubstr(libvirt_sample("cpus", kUuid, "2")));
  EXPECT_THAT(page, HasSubstr("manager=\"libvirt\"} 1\n"));
  test_.clock.advance(std::chrono::seconds(15));
  EXPECT_EQ(samples_of(collector()), page);
}

TEST_F(LibvirtNode, NeedsToReadFilesOfRoot) {
  EXPECT_THAT(collector().capabilities(), ElementsAre(CAP_DAC_READ_SEARCH));
}

TEST_F(LibvirtNode, RefusesToStartWithoutCgroups) {
  std::filesystem::remove_all(root_.path() / "sys");
  EXPECT_FALSE(make_libvirt_collector(test_.context, {.force_version = "v2"}, {}, {}));
}

TEST_F(LibvirtNode, ClaimsTheDevicesOfDefinitions) {
  define("instance-1", "u-1",
         "<devices><hostdev type='pci'><source><address domain='0x0' bus='0x3b' slot='0x0' "
         "function='0x0'/></source></hostdev></devices>");
  define("instance-2", "u-2");
  define(
      "instance-3", "u-3",
      "<devices><hostdev type='mdev'><source><address uuid='m-1'/></source></hostdev></devices>");
  UnitSnapshot snapshot;
  for (const std::string n : {"1", "2", "3", "4"}) {
    snapshot.units.push_back(unit("instance-" + n, "u-" + n));
  }
  snapshot.units.push_back(unit("instance-1", "old"));
  snapshot.units.back().ended = true;
  int changes = 0;
  libvirt::DomainClaims claims(
      std::make_shared<libvirt::Domains>(std::vector<std::filesystem::path>{root_.path() / "qemu"}),
      [&changes] { ++changes; });
  const auto found = claims.claims(snapshot);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[0].uuid, "u-1");
  EXPECT_THAT((*found)[0].addresses, ElementsAre("0000:3b:00.0"));
  EXPECT_EQ((*found)[0].evidence, gpu::Evidence::kManager);
  EXPECT_EQ((*found)[1].uuid, "u-3");
  EXPECT_THAT((*found)[1].mdevs, ElementsAre("m-1"));
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE(claims.claims(snapshot));
  EXPECT_EQ(changes, 1);
}

TEST_F(LibvirtNode, ReadsADefinitionAgainWhenItHasChanged) {
  libvirt::Domains domains({root_.path() / "qemu"});
  EXPECT_EQ(domains.find("instance-1"), nullptr);
  define("instance-1", "u-1");
  ASSERT_NE(domains.find("instance-1"), nullptr);
  EXPECT_EQ(domains.find("instance-1"), domains.find("instance-1"));
  define("instance-1", "u-2-longer");
  EXPECT_EQ(domains.find("instance-1")->uuid, "u-2-longer");
  root_.write("qemu/instance-1.xml", "<garbage");
  EXPECT_EQ(domains.find("instance-1")->uuid, "u-2-longer");
}

TEST_F(LibvirtNode, NeverForgetsAUuid) {
  libvirt::Domains domains({root_.path() / "qemu"});
  define(
      "instance-1", "u-1",
      "<devices><hostdev type='mdev'><source><address uuid='m-1'/></source></hostdev></devices>");
  EXPECT_THAT(domains.find("instance-1")->mdevs, ElementsAre("m-1"));
  std::filesystem::remove_all(root_.path() / "qemu");
  EXPECT_THAT(domains.find("instance-1")->mdevs, ElementsAre("m-1")) << "it may still run";
  domains.keep_only({});
  ASSERT_NE(domains.find("instance-1"), nullptr);
  EXPECT_EQ(domains.find("instance-1")->uuid, "u-1");
  EXPECT_TRUE(domains.find("instance-1")->mdevs.empty());
  define("instance-1", "u-2");  // made anew under the old name
  EXPECT_EQ(domains.find("instance-1")->uuid, "u-2");
  EXPECT_EQ(domains.find("instance-2"), nullptr);
}

TEST_F(LibvirtNode, LooksIntoOneDirectoryAfterTheOther) {
  const auto running = [this](const std::string& id, const std::string& uuid) {
    root_.write("run/" + id + ".xml", "<domstatus state='running'><domain><uuid>" + uuid +
                                          "</uuid></domain></domstatus>");
  };
  libvirt::Domains domains({root_.path() / "none", root_.path() / "qemu", root_.path() / "run"});
  EXPECT_EQ(domains.find("instance-1"), nullptr);
  running("instance-1", "u-run");
  EXPECT_EQ(domains.find("instance-1")->uuid, "u-run");
  define("instance-1", "u-etc");
  EXPECT_EQ(domains.find("instance-1")->uuid, "u-etc");
  root_.write("qemu/instance-1.xml", "<garbage");
  EXPECT_EQ(domains.find("instance-1")->uuid, "u-run") << "the first good file counts";
  EXPECT_THAT(libvirt::definition_directories("/x"),
              ElementsAre("/x", "/etc/libvirt/qemu", "/run/libvirt/qemu"));
  EXPECT_THAT(libvirt::definition_directories("/etc/libvirt/qemu"),
              ElementsAre("/etc/libvirt/qemu", "/run/libvirt/qemu"));
}

TEST_F(LibvirtNode, StartsOnAHypervisorWhoseGpusCannotBeListed) {
  root_.write("sys/bus/pci/devices/0000:07:00.0/class", "0x030200\n");
  root_.write("sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n");
  make_vm(kScope, 1);
  define("instance-000000a1", kUuid);
  testing::FakeRunner runner;
  runner.reply("nvidia-smi", {.exit_status = 9, .error_text = "no driver\n"});
  for (const std::string tool : {"", "/fake/nvidia-smi"}) {  // no tool, and one that fails
    const auto inventory = gpu::Inventory::create({.paths = test_.context.paths,
                                                   .type = {},
                                                   .nvidia_smi = tool,
                                                   .amd_smi = {},
                                                   .rocm_smi = {},
                                                   .search_path = root_.path()},
                                                  runner);
    ASSERT_FALSE(inventory->has_no_gpus());
    const auto collector = make_libvirt_collector(test_.context, {.force_version = "v2"}, {},
                                                  {.xml_dirs = {root_.path() / "qemu"}}, inventory);
    ASSERT_TRUE(collector) << collector.error().message;
    EXPECT_THAT(samples_of(**collector), HasSubstr(libvirt_sample("cpus", kUuid, "1")));
  }
}

TEST_F(LibvirtNode, ShowsAVmThatIsDefinedNowhere) {
  make_vm(kScope, 1);
  root_.write("run/instance-000000a1.xml",
              "<domstatus><domain><uuid>" + kUuid + "</uuid></domain></domstatus>");
  EXPECT_THAT(samples_of(collector()), HasSubstr(libvirt_sample("cpus", kUuid, "1")));
}

}  // namespace
}  // namespace ceems::exporter
