#include "exporter/profile/symbol/unwind_table.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "exporter/profile/symbol/compiled_binary_test_support.h"
#include "os/command.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::profile {
namespace {

// --- Comparison with readelf -------------------------------------------------------------------

struct Difference {
  std::size_t compared = 0;
  std::size_t expressions = 0;
  std::size_t not_decoded = 0;  ///< of them
  std::size_t by_go = 0;        ///< of Go's line table: ends of stacks, and code that switches them
  std::vector<std::string> lines;
};

/// A row of readelf's table as the row that we expect; nothing for expressions.
std::optional<UnwindRow> expected_row(std::string_view cfa,
                                      std::string_view rbp,
                                      std::string_view ra) {
  UnwindRow row{};
  if (ra == "u") {
    return row;
  }
  const std::size_t sign = cfa.find_first_of("+-");
  if (sign == std::string_view::npos || ra != "c-8") {
    return std::nullopt;
  }
  row.cfa = cfa.starts_with("rsp") ? cfa_rule::kRsp : cfa_rule::kRbp;
  if (!cfa.starts_with("rsp") && !cfa.starts_with("rbp")) {
    return std::nullopt;
  }
  row.cfa_offset = std::atoi(std::string(cfa.substr(sign)).c_str());
  if (rbp.starts_with("c")) {
    row.rbp = rbp_rule::kAtCfa;
    row.rbp_offset = static_cast<std::int16_t>(std::atoi(std::string(rbp.substr(1)).c_str()));
  } else if (!rbp.empty() && rbp != "u" && rbp != "s") {
    return std::nullopt;
  }
  return row;
}

std::string text_of(const UnwindRow& row) {
  return fmt::format("cfa {}{:+} rbp {}{:+}", row.cfa, row.cfa_offset, row.rbp, row.rbp_offset);
}

class ReadelfRows {
 public:
  ReadelfRows(const UnwindTable& table, std::uint64_t base) : table_(table), base_(base) {}

  void line(std::string_view text) {
    std::vector<std::string> words;
    while (!(text = trim(text)).empty()) {
      words.emplace_back(take_word(text));
    }
    if (words.size() > 3 && (words[3] == "FDE" || words[3] == "CIE")) {
      in_function_ = words[3] == "FDE";
    } else if (!words.empty() && words[0] == "LOC") {
      columns_ = words;
    } else if (in_function_ && words.size() == columns_.size() && words[0].size() == 16) {
      compare(words);
    }
  }

  Difference result;

 private:
  [[nodiscard]] std::string column(const std::vector<std::string>& words,
                                   std::string_view name) const {
    const auto found = std::ranges::find(columns_, name);
    return found == columns_.end() ? std::string()
                                   : words[static_cast<std::size_t>(found - columns_.begin())];
  }

  void compare(const std::vector<std::string>& words) {
    const std::uint64_t address = std::strtoull(words[0].c_str(), nullptr, 16);
    const auto expected =
        expected_row(column(words, "CFA"), column(words, "rbp"), column(words, "ra"));
    const UnwindRow* row = table_.find(static_cast<std::uint32_t>(address - base_));
    if (!expected) {
      ++result.expressions;
      result.not_decoded += row == nullptr || row->cfa == cfa_rule::kStop ? 1 : 0;
      return;
    }
    ++result.compared;
    UnwindRow found = row == nullptr ? UnwindRow{} : *row;
    found.pc = 0;
    if (row != nullptr && found != *expected &&
        (found == UnwindRow{} || found.cfa == cfa_rule::kFramePointer)) {
      ++result.by_go;
    } else if (row == nullptr || found != *expected) {
      result.lines.push_back(fmt::format("{}: expected {}, got {}", words[0], text_of(*expected),
                                         row == nullptr ? "nothing" : text_of(found)));
    }
  }

  const UnwindTable& table_;
  std::uint64_t base_;
  std::vector<std::string> columns_;
  bool in_function_ = false;
};

Difference difference_to_readelf(const std::string& path) {
  auto file = BinaryFile::open(path);
  const auto elf = ElfFile::read(std::move(*file));
  const auto table = build_unwind_table(*elf);
  if (!table) {
    return {.compared = 0,
            .expressions = 0,
            .not_decoded = 0,
            .by_go = 0,
            .lines = {table.error().message}};
  }
  EXPECT_FALSE(table->truncated);
  EXPECT_EQ(table->malformed, 0U);
  ReadelfRows rows(*table, elf->base());
  const auto done =
      os::real_runner().run_lines({.path = *program("readelf"),
                                   .arguments = {"--debug-dump=frames-interp", "-W", path},
                                   .environment = {{"LC_ALL", "C"}},
                                   .timeout = std::chrono::minutes(2)},
                                  [&rows](std::string_view line) -> Result<> {
                                    rows.line(line);
                                    return {};
                                  });
  EXPECT_TRUE(done) << done.error().message;
  fmt::print("{}: {} functions, {} rows, {} compared, {} expressions, {} of them not decoded\n",
             path, table->functions, table->rows.size(), rows.result.compared,
             rows.result.expressions, rows.result.not_decoded);
  return rows.result;
}

void expect_no_difference(const Difference& difference) {
  EXPECT_GT(difference.compared, 20U);
  EXPECT_LE(difference.not_decoded * 50, difference.compared) << "too many rows without a rule";
  EXPECT_EQ(difference.lines.size(), 0U);
  for (std::size_t i = 0; i < std::min<std::size_t>(difference.lines.size(), 10); ++i) {
    ADD_FAILURE() << difference.lines[i];
  }
}

class InstalledBinary : public ::testing::TestWithParam<const char*> {};

TEST_P(InstalledBinary, UnwindsAsReadelfSays) {
  std::string path = GetParam();
  if (path == "this test") {
    path = std::filesystem::read_symlink("/proc/self/exe");
  }
  if (!program("readelf") || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "requires readelf (binutils) and " << path;
  }
  const Difference difference = difference_to_readelf(path);
  expect_no_difference(difference);
  EXPECT_EQ(difference.by_go, 0U);
}

INSTANTIATE_TEST_SUITE_P(UnwindTable,
                         InstalledBinary,
                         ::testing::Values("/usr/lib/x86_64-linux-gnu/libc.so.6",
                                           "/usr/lib/x86_64-linux-gnu/libm.so.6",
                                           "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                                           "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                           "/usr/lib64/ld-linux-x86-64.so.2",
                                           "/usr/lib/x86_64-linux-gnu/libgfortran.so.5",
                                           "/usr/bin/python3",
                                           "this test"));

// --- Compiled programs -------------------------------------------------------------------------

UnwindTable table_of(const std::string& path) {
  auto file = BinaryFile::open(path);
  const auto elf = ElfFile::read(std::move(*file));
  return build_unwind_table(*elf).value_or(UnwindTable{});
}

TEST(UnwindTable, FollowsARealignedStack) {
  const testing::TempDir directory;
  const std::string path = compiled(directory, "g++", "a.cc", R"(
    #include <alloca.h>
    typedef double V __attribute__((vector_size(32)));
    void use(V*, void*);
    __attribute__((noinline)) void use(V* v, void* p) { asm volatile("" ::"r"(v), "r"(p)); }
    __attribute__((noinline)) void wide(int n) { V v[4]; use(v, alloca(n)); use(v, alloca(n + 1)); }
    int main(int argc, char**) { wide(argc); }
  )",
                                    {"-O2", "-mavx", "-fomit-frame-pointer"});
  if (path.empty() || !program("readelf")) {
    GTEST_SKIP() << "requires g++ and readelf (binutils)";
  }
  const Difference difference = difference_to_readelf(path);
  // Three for the loop's frame; the prologue's, of a few instructions each, are of r10.
  EXPECT_EQ(difference.by_go, 0U);
  EXPECT_GE(difference.expressions, 3U);
  EXPECT_LE(difference.not_decoded, 3U);
  EXPECT_EQ(difference.lines, std::vector<std::string>{});
  const auto rows = table_of(path).rows;
  EXPECT_TRUE(std::ranges::any_of(rows, [](const UnwindRow& row) {
    return row.cfa == cfa_rule::kRbpDeref && row.rbp == rbp_rule::kAtRbp && row.rbp_offset == 0;
  }));
}

TEST(UnwindTable, OfFortranUnwindsAsReadelfSays) {
  const testing::TempDir directory;
  const std::string path = compiled(directory, "gfortran-12", "a.f90", R"(
    module work
    contains
      recursive function fib(n) result(f)
        integer, intent(in) :: n
        integer :: f
        if (n < 2) then; f = n; else; f = fib(n - 1) + fib(n - 2); end if
      end function
      subroutine stencil(a, b)
        real(8), intent(in) :: a(:, :)
        real(8), intent(out) :: b(:, :)
        real(8) :: t(size(a, 1), size(a, 2))
        t = cshift(a, 1, 1); b = t + transpose(matmul(a, t)); print *, sum(b)
      end subroutine
    end module
    program main
      use work
      real(8) :: a(40, 40), b(40, 40)
      a = 1; call stencil(a, b); print *, fib(20)
    end program
  )",
                                    {"-O2", "-march=haswell", "-J", directory.path()});
  if (path.empty() || !program("readelf")) {
    GTEST_SKIP() << "requires gfortran-12 and readelf (binutils)";
  }
  expect_no_difference(difference_to_readelf(path));
}

TEST(UnwindTable, KnowsWhetherABinaryKeepsFramePointers) {
  constexpr std::string_view kSource = R"(
    #include <cstdio>
    __attribute__((noinline)) int a(int n) { return n < 2 ? n : a(n - 1) + std::printf("%d", n); }
    __attribute__((noinline)) int b(int n) { char t[99]; return std::snprintf(t, n, "%d", a(n)); }
    __attribute__((noinline)) int c(int n) { return a(n) + b(n); }
    int main(int argc, char**) { return c(argc) + b(argc); }
  )";
  const testing::TempDir with;
  const testing::TempDir without;
  const testing::TempDir bare;
  const std::vector<std::string> keep = {"-O1", "-fno-omit-frame-pointer"};
  const std::string kept = compiled(with, "g++", "a.cc", kSource, keep);
  if (kept.empty()) {
    GTEST_SKIP() << "requires g++";
  }
  EXPECT_TRUE(table_of(kept).uses_frame_pointers);
  const std::string omitted =
      compiled(without, "g++", "a.cc", kSource, {"-O2", "-fomit-frame-pointer"});
  EXPECT_FALSE(table_of(omitted).uses_frame_pointers);
  // Without any description, by the code itself.
  const std::string undescribed = compiled(
      bare, "g++", "a.cc", R"(
    extern "C" int f(int n) { return n; }
    extern "C" int g(int n) { return f(n) + f(n + 1); }
    extern "C" void _start() { g(3); __builtin_trap(); }
  )",
      {"-O0", "-nostdlib", "-static", "-fno-asynchronous-unwind-tables", "-fno-exceptions"});
  const UnwindTable table = table_of(undescribed);
  EXPECT_TRUE(table.uses_frame_pointers);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0], (UnwindRow{0, cfa_rule::kFramePointer, rbp_rule::kAtCfa, -16, 16}));
}

TEST(UnwindTable, OfGoUnwindsAsReadelfSays) {
  const testing::TempDir directory;
  // readelf 2.40 does not decompress .zdebug sections.
  const std::string path =
      compiled_go(directory, "package main\nfunc main() { println(1) }\n", "-compressdwarf=false");
  if (path.empty() || !program("readelf")) {
    GTEST_SKIP() << "requires go (golang-go) and readelf (binutils)";
  }
  const UnwindTable table = table_of(path);
  const Difference difference = difference_to_readelf(path);
  expect_no_difference(difference);
  EXPECT_GT(difference.by_go, 10U);
  EXPECT_LE(difference.by_go * 50, difference.compared);
  // The line table stays when a program is stripped.
  const testing::TempDir other;
  const std::string stripped =
      compiled_go(other, "package main\nfunc main() { println(1) }\n", "-s -w");
  const UnwindTable same = table_of(stripped);
  EXPECT_GT(same.rows.size(), 3000U);
  EXPECT_EQ(same.rows.size(), table.rows.size());
  EXPECT_TRUE(std::ranges::equal(same.rows, table.rows));
}

}  // namespace
}  // namespace ceems::exporter::profile
