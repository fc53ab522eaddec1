#include "exporter/profile/symbol/perf_map.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::profile {
namespace {

TEST(PerfMap, NamesRanges) {
  const auto map = PerfMap::parse(
      "7f0000001000 20 Builtin:Add\n"
      "0x7f0000002000 0x10 jl_fib with blanks\r\n");
  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(map.find(0x7f0000000fff), std::nullopt);
  EXPECT_EQ(map.find(0x7f0000001000), "Builtin:Add");
  EXPECT_EQ(map.find(0x7f000000101f), "Builtin:Add");
  EXPECT_EQ(map.find(0x7f0000001020), std::nullopt);
  EXPECT_EQ(map.find(0x7f000000200f), "jl_fib with blanks");
}

TEST(PerfMap, LaterLinesWin) {
  // The second one lies within the first, the third covers the end of the first, and the last one
  // all of the fourth.
  const auto map =
      PerfMap::parse("100 100 first\n140 10 second\n1f0 20 third\n300 10 fourth\n2f0 30 fifth\n");
  EXPECT_EQ(map.find(0x13f), "first");
  EXPECT_EQ(map.find(0x140), "second");
  EXPECT_EQ(map.find(0x14f), "second");
  EXPECT_EQ(map.find(0x150), "first");
  EXPECT_EQ(map.find(0x1ef), "first");
  EXPECT_EQ(map.find(0x1f0), "third");
  EXPECT_EQ(map.find(0x20f), "third");
  EXPECT_EQ(map.find(0x210), std::nullopt);
  EXPECT_EQ(map.find(0x308), "fifth");
  EXPECT_EQ(map.find(0x31f), "fifth");
  EXPECT_EQ(map.size(), 5U);
}

TEST(PerfMap, LeavesOutMalformedLines) {
  const auto map = PerfMap::parse(
      "\n100\n100 10\n100 10 \nxyz 10 a\n100 zz a\n100 0 empty\n"
      "ffffffffffffffff 2 wraps\n-1 10 a\n200 10 good\n11112222333344445 1 long\n");
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.dropped(), 10U);
  EXPECT_EQ(map.find(0x205), "good");
}

TEST(PerfMap, KeepsABoundedNumber) {
  std::string text;
  for (unsigned i = 0; i < 200'001; ++i) {
    text += fmt::format("{:x} 10 f\n", 0x1000 + 0x10 * i);
  }
  const auto map = PerfMap::parse(text);
  EXPECT_EQ(map.size(), 200'000U);
  EXPECT_EQ(map.dropped(), 1U);
}

/// A process's part of /proc, in which its root is a directory.
class ProcessWithAMap : public ::testing::Test {
 protected:
  void SetUp() override {
    proc_.write("42/status", fmt::format("Name:\tnode\nPid:\t42\nUid:\t0\t{}\t0\t0\n"
                                         "NSpid:\t42\t7\nThreads:\t1\n",
                                         ::getuid()));
    std::filesystem::create_directory_symlink(root_.path(), proc_.path() / "42/root");
  }

  Result<PerfMap> read() { return read_perf_map({.proc = proc_.path()}, 42); }

  testing::TempDir proc_;
  testing::TempDir root_;
};

TEST_F(ProcessWithAMap, IsReadByItsOwnPid) {
  root_.write("tmp/perf-42.map", "1000 10 wrong\n");
  const auto path = root_.write("tmp/perf-7.map", "1000 10 right\n2000 10 cut");
  const auto map = read();
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->find(0x1000), "right");
  EXPECT_EQ(map->find(0x2000), std::nullopt);  // the line is not finished

  // Of several pieces.
  std::ofstream out(path);
  for (unsigned i = 0; i < 100'000; ++i) {
    out << fmt::format("{:x} 10 function {}\n", 0x1000 + 0x10 * i, i);
  }
  out.close();
  const auto large = read();
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(large->size(), 100'000U);
  EXPECT_EQ(large->dropped(), 0U);
  EXPECT_EQ(large->find(0x1000 + 0x10 * 77'777), "function 77777");
}

TEST_F(ProcessWithAMap, IsNotReadFromElsewhere) {
  EXPECT_EQ(read().error().code, ErrorCode::kNotFound);
  const testing::TempDir elsewhere;
  const auto target = elsewhere.write("secret", "1000 10 secret\n");
  std::filesystem::create_directories(root_.path() / "tmp");
  std::filesystem::create_symlink(target, root_.path() / "tmp/perf-7.map");
  EXPECT_FALSE(read());
  std::filesystem::remove(root_.path() / "tmp/perf-7.map");
  ASSERT_EQ(::mkfifo((root_.path() / "tmp/perf-7.map").c_str(), 0600), 0);
  EXPECT_EQ(read().error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ProcessWithAMap, IsNotReadOfAnotherUser) {
  root_.write("tmp/perf-7.map", "1000 10 f\n");
  proc_.write("42/status", fmt::format("Uid:\t0\t{}\t0\t0\nNSpid:\t42\t7\n", ::getuid() + 1));
  EXPECT_EQ(read().error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ProcessWithAMap, IsNotReadIfItIsTooLarge) {
  const auto path = root_.write("tmp/perf-7.map", "1000 10 f\n");
  std::filesystem::resize_file(path, (64U << 20U) + 1);
  EXPECT_EQ(read().error().code, ErrorCode::kInvalidArgument);
  std::filesystem::resize_file(path, 8U << 20U);  // a line of 8 MiB
  EXPECT_EQ(read().error().code, ErrorCode::kParse);
}

TEST(KernelSymbols, NameCode) {
  const auto kernel = KernelSymbols::parse(
      "ffffffff81000000 T _text\n"
      "ffffffff81000000 T startup_64\n"
      "ffffffffc0001000 t lnet_send\t[lnet]\n"
      "ffffffff81000100 t do_idle\n"
      "ffffffff81000180 D some_data\n"
      "0000000000000000 T hidden\nnonsense\n");
  EXPECT_EQ(kernel.size(), 3U);
  EXPECT_EQ(kernel.find(0xffffffff80ffffff), std::nullopt);
  EXPECT_EQ(kernel.find(0xffffffff81000010), "_text");
  EXPECT_EQ(kernel.find(0xffffffff81000190), "do_idle");
  EXPECT_EQ(kernel.find(0xffffffffc0001010), "lnet_send");
}

TEST(KernelSymbols, AreAnErrorWhereTheKernelHidesThem) {
  const testing::TempDir proc;
  proc.write("kallsyms", "0000000000000000 T _text\n0000000000000000 t do_idle\n");
  EXPECT_EQ(read_kernel_symbols({.proc = proc.path()}).error().code, ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace ceems::exporter::profile
