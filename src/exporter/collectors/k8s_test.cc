#include "exporter/collectors/k8s.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/unit/stat/stat_reader.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kUid = "6d06282c-0377-4527-9a0f-9968bc9c4102";

std::string k8s_sample(const std::string& name, const std::string& uuid, const std::string& value) {
  return "ceems_compute_unit_" + name + R"({cgrouphostname="",hostname="n1",manager="k8s",uuid=")" +
         uuid + "\"} " + value + "\n";
}

/// A machine with pods in plain files.
class K8sNode : public ::testing::Test {
 protected:
  K8sNode() {
    root_.write("proc/meminfo", "MemTotal: 1024 kB\nSwapTotal: 2048 kB\n");
    root_.write("proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n");
    root_.write("sys/fs/cgroup/cgroup.procs", "");
  }

  void write(const std::string& file, std::string_view text) const {
    root_.write("sys/fs/cgroup/" + file, text);
  }
  void make_pod(const std::string& directory, const std::string& weight) const {
    write(directory + "/cpu.weight", weight + "\n");
    write(directory + "/cpu.stat", "usage_usec 3\nuser_usec 2500000\nsystem_usec 500000\n");
    write(directory + "/memory.max", "max\n");
    write(directory + "/memory.swap.max", "max\n");
    write(directory + "/io.stat", "8:0 rbytes=10 wbytes=20 rios=1 wios=2\n");
    write(directory + "/cpu.pressure", "full avg10=0 total=3000000\n");
    write(directory + "/cri-containerd-" + std::string(64, 'a') + ".scope/cgroup.procs", "");
  }
  Result<std::unique_ptr<Collector>> make(const std::string& version, K8sOptions options) {
    return make_k8s_collector(test_.context, {.force_version = version}, {}, options);
  }
  std::string page(const std::string& version = "v2", K8sOptions options = {}) {
    auto collector = make(version, std::move(options));
    EXPECT_TRUE(collector) << (collector ? "" : collector.error().message);
    EXPECT_THAT((*collector)->capabilities(), IsEmpty());
    return samples_of(**collector);
  }

  testing::TempDir root_;
  TestContext test_{root_.path()};
};

TEST_F(K8sNode, ShowsPodsOfTheCgroupfsDriver) {
  make_pod("kubepods/burstable/pod" + kUid, "4");
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("ceems_compute_units{hostname=\"n1\",manager=\"k8s\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(k8s_sample("cpus", kUid, "0.078")));
  EXPECT_THAT(text, HasSubstr(k8s_sample("cpu_user_seconds_total", kUid, "2.5")));
  EXPECT_THAT(text, HasSubstr(k8s_sample("memory_total_bytes", kUid, "1.048576e+06")));
  EXPECT_THAT(text, HasSubstr(k8s_sample("memsw_total_bytes", kUid, "2.097152e+06")));
  EXPECT_THAT(text, HasSubstr("blkio_read_total_bytes{cgrouphostname=\"\",device=\"sda\""));
  EXPECT_THAT(text, Not(HasSubstr("psi")));
}

TEST_F(K8sNode, ShowsPodsOfTheSystemdDriver) {
  make_pod(
      "kubepods.slice/kubepods-besteffort.slice/"
      "kubepods-besteffort-pod6d06282c_0377_4527_9a0f_9968bc9c4102.slice",
      "1");
  make_pod("kubepods.slice/kubepods-pod11111111_0377_4527_9a0f_9968bc9c4102.slice", "20");
  const std::string text = page("v2", {.pressure = true});
  EXPECT_THAT(text, HasSubstr("manager=\"k8s\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(k8s_sample("cpus", kUid, "0.001")));
  EXPECT_THAT(text, HasSubstr(k8s_sample("cpus", "11111111-0377-4527-9a0f-9968bc9c4102", "0.488")));
  EXPECT_THAT(text, HasSubstr(k8s_sample("cpu_psi_seconds", kUid, "3")));
  EXPECT_THAT(text, Not(HasSubstr("s-besteffort")));
}

TEST_F(K8sNode, ShowsPodsOfCgroupV1) {
  write("cpu,cpuacct/kubepods/pod" + kUid + "/cpu.shares", "51\n");
  write("cpu,cpuacct/kubepods/pod" + kUid + "/abc/cgroup.procs", "");
  write("cpuacct/kubepods/pod" + kUid + "/cpuacct.stat", "user 100\nsystem 50\n");
  const std::string text = page("v1");
  EXPECT_THAT(text, HasSubstr(k8s_sample("cpus", kUid, "0.049")));
  EXPECT_THAT(text, HasSubstr(k8s_sample("cpu_system_seconds_total", kUid, "0.5")));
}

TEST_F(K8sNode, StartsBeforeTheKubelet) {
  EXPECT_EQ(page(), "ceems_compute_units{hostname=\"n1\",manager=\"k8s\"} 0\n");
}

TEST_F(K8sNode, RefusesAnInvalidKubeconfig) {
  const auto missing = make("v2", {.kubeconfig = root_.path() / "none"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("kubeconfig: open "));
  const auto broken = make("v2", {.kubeconfig = root_.write("config", "kind: [")});
  ASSERT_FALSE(broken);
}

TEST(CpusOfPods, FollowSharesAndWeights) {
  EXPECT_EQ(cpus_of_shares(2), 0.001);
  EXPECT_EQ(cpus_of_shares(51), 0.049);
  EXPECT_EQ(cpus_of_shares(1024), 1);
  EXPECT_EQ(cpus_of_shares(0), 0.001);
  EXPECT_EQ(cpus_of_shares(UINT64_MAX), 256);
  EXPECT_EQ(cpus_of_weight(1), 0.001);
  EXPECT_EQ(cpus_of_weight(4), 0.078);
  EXPECT_EQ(cpus_of_weight(10), 0.231);
  EXPECT_EQ(cpus_of_weight(20), 0.488);
  EXPECT_EQ(cpus_of_weight(0), 0.001);
  EXPECT_EQ(cpus_of_weight(UINT64_MAX), 256);
}

}  // namespace
}  // namespace ceems::exporter
