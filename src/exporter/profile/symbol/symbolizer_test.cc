#include "exporter/profile/symbol/symbolizer.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exporter/profile/symbol/compiled_binary_test_support.h"
#include "exporter/profile/symbol/names/symbols.h"

namespace ceems::exporter::profile {
namespace {

template <class Function>
std::uint64_t address_of(Function* function) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as a number
  return reinterpret_cast<std::uint64_t>(function);
}

TEST(Symbolizer, NamesFunctionsOfThisProcess) {
  Symbolizer symbolizer({}, {.demangle = DemangleMode::kSimplified});
  const SymbolName own = symbolizer.name(::getpid(), address_of(&parse_maps) + 4);
  EXPECT_EQ(own.function, "ceems::exporter::profile::parse_maps");
  EXPECT_TRUE(own.resolved);
  EXPECT_FALSE(own.jit);
  EXPECT_EQ(own.module, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(symbolizer.name(::getpid(), address_of(&::a64l)).function, "a64l");
  EXPECT_EQ(symbolizer.binaries().size(), 2U);
  Symbolizer raw({}, {});
  EXPECT_TRUE(raw.name(::getpid(), address_of(&parse_maps)).function.starts_with("_ZN5ceems"));
}

TEST(Symbolizer, NamesTheVdso) {
  const auto maps = read_maps({}, ::getpid());
  const auto vdso = std::ranges::find(maps->mappings, Mapping::Kind::kVdso, &Mapping::kind);
  if (vdso == maps->mappings.end()) {
    GTEST_SKIP() << "requires a kernel with a vDSO";
  }
  Symbolizer symbolizer({}, {});
  bool found = false;
  for (std::uint64_t at = vdso->start; at < vdso->end; at += 16) {
    const SymbolName name = symbolizer.name(::getpid(), at);
    EXPECT_EQ(name.module, "[vdso]");
    found = found || name.function.contains("clock_gettime");
  }
  EXPECT_TRUE(found);
}

TEST(Symbolizer, SaysWhatItDoesNotKnow) {
  Symbolizer symbolizer({}, {});
  EXPECT_EQ(symbolizer.name(::getpid(), 0x10).function, "[unknown]");
  EXPECT_FALSE(symbolizer.name(::getpid(), 0x10).resolved);
  for (const std::uint64_t filler : {0xCCCCCCCCCCCCCCCCULL, 0x9090909090909090ULL}) {
    EXPECT_EQ(symbolizer.name(::getpid(), filler).function, "end_of_stack");
    EXPECT_EQ(symbolizer.name(::getpid(), filler - 1).function, "end_of_stack");
  }
  // A process that does not exist.
  EXPECT_EQ(symbolizer.name(1 << 28, 0x401000).function, "[unknown]");
  // The first page of a library is a header, not code.
  const auto maps = read_maps({}, ::getpid());
  const Mapping* libc = maps->find(address_of(&::qsort));
  ASSERT_NE(libc, nullptr);
  const SymbolName start = symbolizer.name(::getpid(), libc->end - 1);
  EXPECT_EQ(start.function, libc->path);
  EXPECT_FALSE(start.resolved);
}

/// A part of /proc with one process, whose root is a directory.
class FakeProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(proc_.path() / "42");
    std::filesystem::create_directory_symlink(root_.path(), proc_.path() / "42/root");
    proc_.write("42/status", fmt::format("Uid:\t0\t{}\t0\t0\nNSpid:\t42\t7\n", ::getuid()));
  }

  void set_maps(const std::string& text) { proc_.write("42/maps", text); }

  /// A line for the code of a file, loaded at 0x10000000.
  std::string line_for(const std::string& file, const std::string& path) {
    const auto elf = ElfFile::read(BinaryFile::open(file).value()).value();
    for (const Segment& segment : elf.segments()) {
      if (segment.type == 1 && (segment.flags & 1U) != 0) {
        start_ = 0x10000000 - segment.address;
        return fmt::format("10000000-10100000 r-xp {:08x} 00:01 7 {}\n", segment.offset, path);
      }
    }
    return "";
  }

  testing::TempDir proc_;
  testing::TempDir root_;
  std::uint64_t start_ = 0;  ///< what to add to an address in the file
};

std::uint64_t symbol_address(const std::string& path, const std::string& name) {
  const auto done =
      os::real_runner().run({.path = "/usr/bin/nm", .arguments = {path}, .environment = {}});
  const std::size_t at = done ? done->output.find(" T " + name + "\n") : std::string::npos;
  return at == std::string::npos
             ? 0
             : std::strtoull(done->output.substr(at - 16, 16).c_str(), nullptr, 16);
}

TEST_F(FakeProcess, IsReadWithinItsRoot) {
  const testing::TempDir directory;
  const std::string file =
      compiled(directory, "g++", "a.cc", "extern \"C\" int hot(int n) { return n; }",
               {"-shared", "-fPIC", "-nostdlib"});
  if (file.empty() || !program("nm")) {
    GTEST_SKIP() << "requires g++ and nm (binutils)";
  }
  std::filesystem::create_directories(root_.path() / "opt");
  std::filesystem::copy_file(file, root_.path() / "opt/real.so");
  // A link that is absolute in the process's root, and would be another file in ours.
  std::filesystem::create_symlink("/opt/real.so", root_.path() / "opt/a.so");
  set_maps(line_for(file, "/opt/a.so"));
  Symbolizer symbolizer({.proc = proc_.path()}, {});
  const std::uint64_t hot = start_ + symbol_address(file, "hot");
  EXPECT_EQ(symbolizer.name(42, hot).function, "hot");
  EXPECT_EQ(symbolizer.name(42, hot).module, "/opt/a.so");

  // A link that leads out of the root leads nowhere.
  std::filesystem::remove(root_.path() / "opt/a.so");
  std::filesystem::create_symlink("../../../../../../.." + file, root_.path() / "opt/a.so");
  Symbolizer outside({.proc = proc_.path()}, {});
  EXPECT_EQ(outside.name(42, hot).function, "/opt/a.so");
  // A deleted file is not taken for the one that has its name now.
  std::filesystem::copy_file(file, root_.path() / "opt/deleted.so");
  set_maps(line_for(file, "/opt/deleted.so (deleted)"));
  Symbolizer deleted({.proc = proc_.path()}, {});
  EXPECT_EQ(deleted.name(42, hot).function, "/opt/deleted.so");
}

TEST_F(FakeProcess, SharesBinariesByBuildIdAndOwner) {
  const testing::TempDir directory;
  const std::string file =
      compiled(directory, "g++", "a.cc", "extern \"C\" int hot(int n) { return n; }",
               {"-shared", "-fPIC", "-nostdlib", "-Wl,--build-id"});
  if (file.empty()) {
    GTEST_SKIP() << "requires g++";
  }
  std::filesystem::copy_file(file, root_.path() / "a.so");
  std::filesystem::copy_file(file, root_.path() / "b.so");
  BinaryCache cache({.proc = proc_.path()}, {.loads_per_round = 3});
  const Mapping a{.start = 1, .end = 2, .kind = Mapping::Kind::kFile, .path = "/a.so"};
  Mapping b = a;
  b.path = "/b.so";
  const auto first = cache.find(42, a);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(*first, cache.find(42, b).value());
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ((*first)->build_id.size(), 40U);
  // The same build id in a file of another size is another binary.
  std::filesystem::copy_file(file, root_.path() / "c.so");
  std::ofstream(root_.path() / "c.so", std::ios::app) << "more";
  b.path = "/c.so";
  EXPECT_NE(*first, cache.find(42, b).value());
  EXPECT_EQ(cache.size(), 2U);
  // Only so many are read in a round.
  std::filesystem::copy_file(file, root_.path() / "d.so");
  b.path = "/d.so";
  EXPECT_EQ(cache.find(42, b).error().code, ErrorCode::kUnavailable);
  cache.next_round();
  EXPECT_EQ(cache.find(42, b).value(), *first);
}

TEST_F(FakeProcess, ForgetsBinariesThatAreNotUsed) {
  const testing::TempDir directory;
  const std::string file =
      compiled(directory, "g++", "a.cc", "extern \"C\" int hot(int n) { return n; }",
               {"-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=none"});
  if (file.empty()) {
    GTEST_SKIP() << "requires g++";
  }
  BinaryCache cache({.proc = proc_.path()}, {.by_file = 2, .rounds = 2});
  const auto load = [&](const std::string& name) {
    if (!std::filesystem::exists(root_.path() / name)) {
      std::filesystem::copy_file(file, root_.path() / name);
    }
    return cache.find(42, {.start = 1, .end = 2, .kind = Mapping::Kind::kFile, .path = "/" + name});
  };
  for (const std::string name : {"a", "b", "c"}) {
    ASSERT_TRUE(load(name));
  }
  EXPECT_EQ(cache.size(), 3U);  // all of this round
  cache.next_round();
  ASSERT_TRUE(load("a"));
  EXPECT_EQ(cache.size(), 3U);
  cache.next_round();
  EXPECT_EQ(cache.size(), 2U);
  BinaryCache small({.proc = proc_.path()}, {.memory_bytes = 1});
  ASSERT_TRUE(small.find(42, {.start = 1, .end = 2, .kind = Mapping::Kind::kFile, .path = "/a"}));
  ASSERT_TRUE(small.find(42, {.start = 1, .end = 2, .kind = Mapping::Kind::kFile, .path = "/b"}));
  EXPECT_EQ(small.size(), 1U);
}

TEST_F(FakeProcess, IsNamedByItsPerfMapWhereItHasNoFile) {
  set_maps("10000000-10001000 rwxp 00000000 00:00 0\n");
  root_.write("tmp/perf-7.map", "10000000 100 LazyCompile:*loop\n");
  Symbolizer symbolizer({.proc = proc_.path()}, {});
  const SymbolName name = symbolizer.name(42, 0x10000080);
  EXPECT_EQ(name.function, "LazyCompile:*loop");
  EXPECT_TRUE(name.jit);
  EXPECT_EQ(symbolizer.name(42, 0x10000200).function, "[unknown]");
  // What the runtime adds is seen in the next round.
  root_.write("tmp/perf-7.map", "10000000 100 LazyCompile:*loop\n10000200 10 added\n");
  EXPECT_EQ(symbolizer.name(42, 0x10000200).function, "[unknown]");
  symbolizer.next_round();
  EXPECT_EQ(symbolizer.name(42, 0x10000200).function, "added");
  // The names stay known when the process has gone.
  std::filesystem::remove_all(proc_.path() / "42");
  symbolizer.next_round();
  EXPECT_EQ(symbolizer.name(42, 0x10000080).function, "LazyCompile:*loop");
  symbolizer.forget(42);
  EXPECT_EQ(symbolizer.name(42, 0x10000080).function, "[unknown]");
}

TEST_F(FakeProcess, HasOtherNamesWhenItRunsAnotherProgram) {
  set_maps("10000000-10001000 rwxp 00000000 00:00 0\n");
  root_.write("tmp/perf-7.map", "10000000 100 first\n");
  Symbolizer symbolizer({.proc = proc_.path()}, {});
  symbolizer.enter(42, {1000, 1});
  EXPECT_EQ(symbolizer.name(42, 0x10000080).function, "first");
  root_.write("tmp/perf-7.map", "10000000 100 second\n");
  symbolizer.enter(42, {1000, 1});
  EXPECT_EQ(symbolizer.name(42, 0x10000080).function, "first");
  symbolizer.enter(42, {1000, 2});  // exec
  EXPECT_EQ(symbolizer.name(42, 0x10000080).function, "second");
  root_.write("tmp/perf-7.map", "10000000 100 third\n");
  symbolizer.enter(42, {2000, 0});  // another process with its number
  EXPECT_EQ(symbolizer.name(42, 0x10000080).function, "third");
}

TEST_F(FakeProcess, HasHostileFiles) {
  set_maps("10000000-10001000 r-xp 00000000 00:01 7 /x\n");
  const auto name = [&] { return Symbolizer({.proc = proc_.path()}, {}).name(42, 0x10000000); };
  EXPECT_EQ(name().function, "/x");  // missing
  std::filesystem::create_directory(root_.path() / "x");
  EXPECT_EQ(name().function, "/x");
  std::filesystem::remove(root_.path() / "x");
  ASSERT_EQ(::mkfifo((root_.path() / "x").c_str(), 0600), 0);
  EXPECT_EQ(name().function, "/x");
  std::filesystem::remove(root_.path() / "x");
  root_.write("x", "#!/bin/sh\n");
  EXPECT_EQ(name().function, "/x");
  root_.write("x",
              "\x7f"
              "ELF\x02\x01");
  EXPECT_EQ(name().function, "/x");
}

TEST_F(FakeProcess, ReadsEachCutOfABinary) {
  const testing::TempDir directory;
  const std::string file =
      compiled(directory, "g++", "a.cc", "extern \"C\" int hot(int n) { return n; }",
               {"-shared", "-fPIC", "-nostdlib"});
  if (file.empty()) {
    GTEST_SKIP() << "requires g++";
  }
  const BinaryFile whole = BinaryFile::open(file).value();
  const std::string bytes = whole.read(0, whole.size()).value();
  const FileOpener none = [](const std::string& path) -> Result<BinaryFile> {
    return fail(ErrorCode::kNotFound, "{}", path);
  };
  std::size_t read = 0;
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    const auto elf = ElfFile::read(BinaryFile::of_bytes(bytes.substr(0, size)));
    if (elf) {
      ++read;
      EXPECT_LE(read_symbols(*elf, "/a", none).size(), 1U);
    }
  }
  EXPECT_GT(read, 100U);
}

TEST(Symbolizer, SurvivesProcessesThatEnd) {
  // Children that exit while they are read.
  Symbolizer symbolizer({}, {});
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::usleep(static_cast<useconds_t>(i * 20));
      ::_exit(0);
    }
    const SymbolName name = symbolizer.name(child, address_of(&::qsort));
    EXPECT_TRUE(name.function == "qsort" || name.function == "[unknown]" ||
                name.function.starts_with("/"))
        << name.function;
    symbolizer.next_round();
    ::waitpid(child, nullptr, 0);
  }
}

}  // namespace
}  // namespace ceems::exporter::profile
