#include "exporter/ebpf/kernel_types.h"

#include <bpf/btf.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/ebpf/bpf_library.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::ebpf {
namespace {

/// Type information as a kernel brings it, made for one test with the library.
class Types {
 public:
  Types() : btf_(btf__new_empty()) {
    int_ = btf__add_int(btf_, "int", 4, BTF_INT_SIGNED);
    long_ = btf__add_int(btf_, "long int", 8, BTF_INT_SIGNED);
    size_ = btf__add_typedef(btf_, "ssize_t", long_);
    const int entry = btf__add_struct(btf_, "dentry", 8);
    pointer_ = btf__add_ptr(btf_, entry);
  }

  void add(const std::string& name, int result, const std::vector<std::string>& arguments) {
    const int prototype = btf__add_func_proto(btf_, result);
    for (const std::string& argument : arguments) {
      btf__add_func_param(btf_, argument.c_str(), pointer_);
    }
    btf__add_func(btf_, name.c_str(), BTF_FUNC_STATIC, prototype);
  }

  void add_controllers(const std::vector<std::string>& names) {
    btf__add_enum(btf_, "cgroup_subsys_id", 4);
    long number = 0;
    for (const std::string& name : names) {
      btf__add_enum_value(btf_, (name + "_cgrp_id").c_str(), number++);
    }
  }

  /// The types, as read from a file.
  KernelTypes read() {
    const testing::TempDir directory;
    std::uint32_t size = 0;
    const void* data = btf__raw_data(btf_, &size);
    directory.write("vmlinux", std::string(static_cast<const char*>(data), size));
    btf__free(std::exchange(btf_, nullptr));
    auto types = KernelTypes::read((directory.path() / "vmlinux").string());
    EXPECT_TRUE(types) << types.error().message;
    return *std::move(types);
  }

  [[nodiscard]] int int_type() const { return int_; }
  [[nodiscard]] int long_type() const { return long_; }
  [[nodiscard]] int size_type() const { return size_; }
  [[nodiscard]] int pointer_type() const { return pointer_; }

 private:
  btf* btf_;
  int int_;
  int long_;
  int size_;
  int pointer_;
};

TEST(KernelTypes, TellsWhereTheResultOfAFunctionIs) {
  Types made;
  made.add("vfs_write", made.size_type(), {"file", "buf", "count", "pos"});
  made.add("vfs_open", made.int_type(), {"path", "file"});
  made.add("nothing", 0, {});
  const auto types = made.read();
  const auto write = types.function("vfs_write");
  ASSERT_TRUE(write);
  EXPECT_EQ(write->arguments, 4);
  EXPECT_EQ(write->result, EBPF_RESULT_LONG);
  EXPECT_EQ(write->flags_slot, 255);
  EXPECT_EQ(types.function("vfs_open")->result, EBPF_RESULT_INT);
  EXPECT_EQ(types.function("nothing")->arguments, 0);
  EXPECT_FALSE(types.function("tcp_sendpage"));
}

/// Linux 5.10, 5.12, 6.15 and 6.19 have different arguments and results.
TEST(KernelTypes, FollowsChangesOfPrototypes) {
  Types old;
  old.add("vfs_mkdir", old.int_type(), {"dir", "dentry", "mode"});
  old.add("vfs_create", old.int_type(), {"dir", "dentry", "mode", "want_excl"});
  old.add("udp_recvmsg", old.int_type(), {"sk", "msg", "len", "noblock", "flags", "addr_len"});
  const auto before = old.read();
  EXPECT_EQ(before.function("vfs_mkdir")->arguments, 3);
  EXPECT_EQ(before.function("vfs_create")->arguments, 4);
  EXPECT_EQ(before.function("udp_recvmsg")->flags_slot, 4);
  Types late;
  late.add("vfs_mkdir", late.pointer_type(), {"idmap", "dir", "dentry", "mode"});
  late.add("vfs_create", late.int_type(), {"idmap", "dentry", "mode", "delegated_inode"});
  late.add("udp_recvmsg", late.int_type(), {"sk", "msg", "len", "flags", "addr_len"});
  const auto after = late.read();
  EXPECT_EQ(after.function("vfs_mkdir")->result, EBPF_RESULT_POINTER);
  EXPECT_EQ(after.function("vfs_mkdir")->arguments, 4);
  EXPECT_EQ(after.function("udp_recvmsg")->flags_slot, 3);
}

TEST(KernelTypes, RefusesFunctionsWithArgumentsOnTheStack) {
  Types made;
  made.add("long_list", made.int_type(), {"a", "b", "c", "d", "e", "f", "g"});
  EXPECT_FALSE(made.read().function("long_list"));
}

TEST(KernelTypes, KnowsTheNumbersOfControllers) {
  Types made;
  made.add_controllers({"cpuset", "cpu", "cpuacct", "io", "memory"});
  const auto types = made.read();
  EXPECT_EQ(types.controller("cpuacct"), 2U);
  EXPECT_EQ(types.controller("cpu,cpuacct"), 1U);
  EXPECT_EQ(types.controller("blkio"), 3U);
  EXPECT_FALSE(types.controller("pids"));
  EXPECT_FALSE(Types().read().controller("cpu"));
}

TEST(KernelTypes, RefusesFilesThatAreNoTypeInformation) {
  const testing::TempDir directory;
  directory.write("vmlinux", "not BTF, but long enough for a header of it");
  EXPECT_FALSE(KernelTypes::read((directory.path() / "vmlinux").string()));
  EXPECT_FALSE(KernelTypes::read((directory.path() / "missing").string()));
}

TEST(Hooks, AreInTheOrderOfTheirNumbers) {
  for (std::size_t i = 0; i < all_hooks().size(); ++i) {
    EXPECT_EQ(all_hooks()[i].id, i) << all_hooks()[i].function;
  }
}

TEST(Hooks, SayWhichAreMissing) {
  Types made;
  made.add("udp_sendmsg", made.int_type(), {"sk", "msg", "len"});
  const auto types = made.read();
  ebpf_settings settings{};
  const auto missing = fit_hooks(types, HookPart::kNetwork, settings);
  EXPECT_EQ(settings.hooks[EBPF_UDP_SENDMSG].arguments, 3);
  EXPECT_EQ(missing.size(), 10U);
  EXPECT_EQ(missing.front()->function, "tcp_sendmsg");
}

/// Every function is in the kernels that CI runs on; elsewhere the type information may be missing.
TEST(Hooks, FitTheRunningKernel) {
  const auto types = KernelTypes::running();
  if (!types) {
    GTEST_SKIP() << types.error().message;
  }
  ebpf_settings settings{};
  settings.latency = 1;
  for (const HookPart part : {HookPart::kFiles, HookPart::kNetwork}) {
    for (const Hook* hook : fit_hooks(*types, part, settings)) {
      ADD_FAILURE() << "no function " << hook->function;
    }
  }
  EXPECT_EQ(settings.hooks[EBPF_VFS_WRITE].arguments, 4);
  EXPECT_EQ(settings.hooks[EBPF_VFS_WRITE].result, EBPF_RESULT_LONG);
  EXPECT_EQ(settings.hooks[EBPF_TCP_SENDMSG].result, EBPF_RESULT_INT);
}

}  // namespace
}  // namespace ceems::exporter::ebpf
