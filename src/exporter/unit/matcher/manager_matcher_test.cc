#include <gtest/gtest.h>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"

namespace ceems::exporter {
namespace {

using host::CgroupMode;
using Kind = DirectoryMatch::Kind;

constexpr std::string_view kUid = "6d06282c-0377-4527-9a0f-9968bc9c4102";
constexpr std::string_view kSystemdUid = "2fc932ce_fdcc_454b_97bd_aadfdeb4c340";

/// The first unit on the way to `path` as "PATH ID"; "" if there is none.
std::string first_unit(const UnitMatcher& matcher, const std::string& path) {
  DirectoryMatch match{.kind = Kind::kDescend};
  std::string current = matcher.start();
  std::string_view rest = std::string_view(path).substr(current.size() + 1);
  while (!rest.empty() && match.kind != Kind::kSkip) {
    const std::string_view name = take_until(rest, '/');
    current += '/';
    current += name;
    match = matcher.match(current, name, match);
    if (match.kind == Kind::kUnit) {
      EXPECT_EQ(UnitMatcher::uuid_of(match, current), match.id);
      return current + " " + match.id;
    }
  }
  return {};
}

class Libvirt : public ::testing::Test {
 protected:
  [[nodiscard]] std::string vm(const std::string& path) const {
    return first_unit(*matcher_, path);
  }
  std::unique_ptr<UnitMatcher> matcher_ = libvirt_matcher();
};

TEST_F(Libvirt, FindsVmsOfSystemdMachined) {
  const std::string scope = R"(/machine.slice/machine-qemu\x2d2\x2dinstance\x2d00000001.scope)";
  EXPECT_EQ(vm(scope), scope + " instance-00000001");
  EXPECT_EQ(vm(scope + "/libvirt/vcpu0"), scope + " instance-00000001");
}

TEST_F(Libvirt, FindsVmsWithoutSystemd) {
  const std::string directory = "/machine/qemu-1-instance-0000000a.libvirt-qemu";
  EXPECT_EQ(vm(directory), directory + " instance-0000000a");
  EXPECT_EQ(vm(directory + "/emulator"), directory + " instance-0000000a");
  EXPECT_EQ(vm(directory + "/iothread1"), directory + " instance-0000000a");
  const std::string nested = "/machine/blue.partition/qemu-33-instance-0000ffff.libvirt-qemu";
  EXPECT_EQ(vm(nested), nested + " instance-0000ffff");
}

TEST_F(Libvirt, AcceptsOnlyNamesOfOpenStack) {
  for (const std::string name :
       {"qemu-1-myvm.libvirt-qemu", "qemu-instance-00000001", "qemu-x-instance-00000001",
        "qemu-1-instance-", "qemu-1-instance-xyz", R"(machine-qemu\x2d1\x2dmyvm.scope)",
        "lxc-1-instance-00000001", R"(machine-qemu\x2d1\x2dinstance\x2d00"1.scope)"}) {
    EXPECT_EQ(vm("/machine/" + name), "") << name;
  }
  EXPECT_EQ(libvirt_instance("qemu-qemu-1-instance-12g").value_or(""), "instance-12");
}

TEST_F(Libvirt, FindsVmsOfOtherSlices) {
  const std::string name = R"(machine-qemu\x2d2\x2dinstance\x2d00000001.scope)";
  for (const std::string slice :
       {"/openstack.slice/openstack-machine.slice/", "/lxc.payload.c1/machine.slice/",
        "/machine.slice/machine-nova.slice/"}) {
    EXPECT_EQ(vm(slice + name), slice + name + " instance-00000001");
  }
  EXPECT_EQ(vm("/kubepods.slice/kubepods-pod1.slice/machine.slice/" + name), "");
}

TEST_F(Libvirt, LooksBelowItsRootsOnly) {
  const std::string name = "qemu-1-instance-0000000a.libvirt-qemu";
  EXPECT_EQ(vm("/system.slice/" + name), "");
  EXPECT_EQ(vm("/machines/" + name), "");
  EXPECT_EQ(vm("/" + name), "");
  EXPECT_EQ(vm("/user.slice/machine/" + name), "");
}

class K8s : public ::testing::Test {
 protected:
  [[nodiscard]] std::string pod(const std::string& path) const {
    return first_unit(*matcher_, path);
  }
  std::unique_ptr<UnitMatcher> matcher_ = k8s_matcher();
};

TEST_F(K8s, FindsPodsOfTheCgroupfsDriver) {
  for (const std::string klass : {"", "/burstable", "/besteffort"}) {
    const std::string path = "/kubepods" + klass + "/pod" + std::string(kUid);
    EXPECT_EQ(pod(path), path + " " + std::string(kUid));
    EXPECT_EQ(pod(path + "/" + std::string(64, 'e')), path + " " + std::string(kUid));
  }
}

TEST_F(K8s, FindsPodsOfTheSystemdDriver) {
  const std::string id = "2fc932ce-fdcc-454b-97bd-aadfdeb4c340";
  for (const std::string klass : {"-burstable", "-besteffort"}) {
    const std::string path = "/kubepods.slice/kubepods" + klass + ".slice/kubepods" + klass +
                             "-pod" + std::string(kSystemdUid) + ".slice";
    EXPECT_EQ(pod(path), path + " " + id);
    for (const std::string container : {"cri-containerd-", "crio-", "docker-"}) {
      EXPECT_EQ(pod(path + "/" + container + std::string(64, 'd') + ".scope"), path + " " + id);
    }
  }
  const std::string guaranteed =
      "/kubepods.slice/kubepods-pod" + std::string(kSystemdUid) + ".slice";
  EXPECT_EQ(pod(guaranteed + "/crio-" + std::string(64, '1') + ".scope"), guaranteed + " " + id);
}

TEST_F(K8s, FindsStaticPodsByTheirHash) {
  const std::string path = "/kubepods/burstable/pod1f4fc3d2d1e0b4c5a6978877665544aa";
  EXPECT_EQ(pod(path), path + " 1f4fc3d2d1e0b4c5a6978877665544aa");
}

TEST_F(K8s, DoesNotTakeQosClassesForPods) {
  for (const std::string path :
       {"/kubepods", "/kubepods/burstable", "/kubepods/besteffort", "/kubepods.slice",
        "/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice/kubepods-besteffort.slice"}) {
    EXPECT_EQ(pod(path), "") << path;
  }
}

TEST_F(K8s, MatchesWholeNamesOnly) {
  for (const std::string name :
       {"pod", "podABC", "pod12.scope", "xpod12", "crio-pod12.scope", "kubepods-pod.slice",
        "kubepods-podA.slice", "kubepods-burstable-xpod1.slice"}) {
    EXPECT_EQ(pod("/kubepods.slice/" + name), "") << name;
  }
}

TEST_F(K8s, CountsNestedCgroupsAsPartOfTheirPod) {
  const std::string path = "/kubepods/pod" + std::string(kUid);
  EXPECT_EQ(pod(path + "/abc/pod12/x"), path + " " + std::string(kUid));
}

TEST_F(K8s, FindsPodsAtAnyDepth) {
  const std::string id = "2fc932ce-fdcc-454b-97bd-aadfdeb4c340";
  const std::string slice = "kubepods-burstable-pod" + std::string(kSystemdUid) + ".slice";
  for (const std::string& path :
       {// kind, minikube's and any other kubelet with cgroupRoot /kubelet; also from outside
        "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-" + slice,
        "/system.slice/docker-" + std::string(64, 'a') +
            ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
            "kubelet-" +
            slice,
        "/docker/0a1b/kubelet/kubepods/burstable/pod" + id, "/pods/kubepods/pod" + id,
        "/docker/0a1b/kubepods/besteffort/pod" + id,
        "/lxc.payload.node1/kubepods.slice/kubepods-burstable.slice/" + slice,
        // a runtime with the cgroupfs driver below a kubelet with systemd's
        "/system.slice/containerd.service/" + slice + ":cri-containerd:79fedb3bd23c",
        "/system.slice/k3s.service/" + slice + ":cri-containerd:79fedb3bd23c",
        "/system.slice/rke2-server.service/kubepods-pod" + std::string(kSystemdUid) +
            ".slice:cri-containerd:79fe",
        "/" + slice + ":crio:79fedb3bd23c", "/a.slice/a-b.slice/a-b-" + slice}) {
    EXPECT_EQ(pod(path), path + " " + id);
    EXPECT_EQ(pod(path + "/x"), path + " " + id);
  }
}

TEST_F(K8s, TakesNothingElseForPods) {
  for (const std::string path :
       {"/pod12", "/pods/pod12", "/system.slice/x-pod12.slice", "/xkubepods.slice/x-pod12.slice",
        "/system.slice/kubepods-pod.slice:cri:1", "/system.slice/kubepods-pod12.service",
        "/system.slice/slurmstepd.scope/job_1/kubepods/pod12",
        "/machine.slice/machine-qemu\\x2d1\\x2dinstance\\x2d01.scope/kubepods/pod12",
        "/user.slice/user-1000.slice/kubepods.slice/kubepods-pod12.slice"}) {
    EXPECT_EQ(pod(path), "") << path;
  }
}

TEST(PatternMatcherBesideOthers, LeavesOutPodsAndVms) {
  const std::string pod_scope =
      "/kubepods.slice/kubepods-pod1.slice/crio-" + std::string(64, 'a') + ".scope";
  const std::string vm_scope = R"(/machine.slice/machine-qemu\x2d2\x2dinstance\x2d0001.scope)";
  const std::string other_vm = R"(/machine.slice/machine-qemu\x2d2\x2dmine.scope)";
  const auto alone = *pattern_matcher({}, CgroupMode::kUnified, {});
  const auto beside = *pattern_matcher({}, CgroupMode::kUnified, {.libvirt = true, .k8s = true});
  const auto found = [](const UnitMatcher& matcher, const std::string& path) {
    DirectoryMatch match{.kind = Kind::kDescend};
    std::string current;
    std::string_view rest = std::string_view(path).substr(1);
    while (!rest.empty() && match.kind != Kind::kSkip && match.kind != Kind::kUnit) {
      const std::string_view name = take_until(rest, '/');
      current += '/';
      current += name;
      match = matcher.match(current, name, match);
    }
    return match.kind == Kind::kUnit;
  };
  for (const std::string& path : {pod_scope, vm_scope}) {
    EXPECT_TRUE(found(*alone, path)) << path;
    EXPECT_FALSE(found(*beside, path)) << path;
  }
  EXPECT_TRUE(found(*beside, other_vm));
}

TEST(HierarchiesOfV1, AreNotSearchedBesideTheOneThatIsWalked) {
  EXPECT_TRUE(holds_no_manager("/pids", "pids"));
  EXPECT_TRUE(holds_no_manager("/cpu,cpuacct", "cpu,cpuacct"));
  EXPECT_FALSE(holds_no_manager("/site.slice/memory", "memory"));
  EXPECT_FALSE(holds_no_manager("/site.slice", "site.slice"));
}

}  // namespace
}  // namespace ceems::exporter
