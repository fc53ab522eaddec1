// Walks this process's own stack with the rows, as the program in the kernel does, and compares
// with the unwinder of the C++ runtime.
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/profile/symbol/process_maps.h"
#include "exporter/profile/symbol/unwind_table.h"

namespace ceems::exporter::profile {
namespace {

struct Registers {
  std::uint64_t rip = 0;
  std::uint64_t rsp = 0;
  std::uint64_t rbp = 0;
};

std::uint64_t word_at(std::uint64_t address) {
  std::uint64_t value = 0;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of this process
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(value));
  return value;
}

class Walker {
 public:
  Walker() : maps_(read_maps({}, ::getpid()).value()) {}

  /// The program counters of the stack, as far as rows lead.
  std::vector<std::uint64_t> walk(Registers at) {
    std::vector<std::uint64_t> stack;
    bool exact = true;  // rip is an instruction that runs, not the one behind a call
    while (stack.size() < 200) {
      stack.push_back(at.rip);
      const UnwindRow row = row_at(at.rip - (exact ? 0 : 1));
      exact = row.cfa == cfa_rule::kSignal;
      if (row.cfa == cfa_rule::kStop) {
        break;
      }
      at = caller(at, row);
    }
    return stack;
  }

 private:
  static std::uint64_t plus(std::uint64_t value, std::int64_t offset) {
    return value + static_cast<std::uint64_t>(offset);
  }

  UnwindRow row_at(std::uint64_t address) {
    const Mapping* mapping = maps_.find(address);
    if (mapping == nullptr || mapping->kind != Mapping::Kind::kFile) {
      return {};
    }
    auto& known = binaries_[mapping->path];
    if (known.table.rows.empty()) {
      const auto elf = ElfFile::read(BinaryFile::open(mapping->path).value());
      known.table = build_unwind_table(*elf).value();
      known.bias = mapping->start - *elf->code_address(mapping->offset) + elf->base();
    }
    const auto* row = known.table.find(static_cast<std::uint32_t>(address - known.bias));
    return row == nullptr ? UnwindRow{} : *row;
  }

  static Registers caller(const Registers& at, const UnwindRow& row) {
    Registers next = at;
    const std::uint64_t at_rsp = plus(at.rsp, row.cfa_offset);
    const std::uint64_t at_rbp = plus(at.rbp, row.cfa_offset);
    const std::map<std::uint8_t, std::uint64_t> frames = {
        {cfa_rule::kRsp, at_rsp},
        {cfa_rule::kRbp, at_rbp},
        {cfa_rule::kPlt,
         at.rsp + 8 + ((at.rip & 15U) >= static_cast<std::uint64_t>(row.cfa_offset) ? 8 : 0)},
        {cfa_rule::kFramePointer, at.rbp + 16}};
    if (row.cfa == cfa_rule::kSignal) {
      next.rsp = word_at(at_rsp);
      next.rip = word_at(at_rsp + 8);
    } else {
      if (row.cfa == cfa_rule::kRbpDeref) {
        next.rsp = word_at(at_rbp);
      } else if (row.cfa == cfa_rule::kRspDerefPlus8) {
        next.rsp = word_at(at_rsp) + 8;
      } else {
        next.rsp = frames.at(row.cfa);
      }
      next.rip = word_at(next.rsp - 8);
    }
    if (row.rbp == rbp_rule::kAtCfa) {
      next.rbp = word_at(plus(next.rsp, row.rbp_offset));
    } else if (row.rbp == rbp_rule::kAtRbp) {
      next.rbp = word_at(plus(at.rbp, row.rbp_offset));
    } else if (row.rbp == rbp_rule::kAtRsp) {
      next.rbp = word_at(plus(at.rsp, row.rbp_offset));
    }
    return next;
  }

  struct Binary {
    UnwindTable table;
    std::uint64_t bias = 0;
  };
  ProcessMaps maps_;
  std::map<std::string, Binary> binaries_;
};

std::vector<std::uint64_t> g_ours;
std::vector<std::uint64_t> g_expected;

void compare_here() {
  ucontext_t context{};
  getcontext(&context);
  const auto& saved = context.uc_mcontext.gregs;
  Walker walker;
  g_ours = walker.walk({.rip = static_cast<std::uint64_t>(saved[REG_RIP]),
                        .rsp = static_cast<std::uint64_t>(saved[REG_RSP]),
                        .rbp = static_cast<std::uint64_t>(saved[REG_RBP])});
  g_expected.clear();
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void*) {
        g_expected.push_back(_Unwind_GetIP(frame));
        return _URC_NO_REASON;
      },
      nullptr);
  if (g_expected.back() == 0) {
    g_expected.pop_back();  // libgcc's caller of _start
  }
}

/// The frame that calls differs: getcontext() and _Unwind_Backtrace() are two calls.
void expect_the_same_stack(std::size_t at_least) {
  ASSERT_EQ(g_ours.size(), g_expected.size());
  EXPECT_GT(g_ours.size(), at_least);
  for (std::size_t i = 1; i < g_ours.size(); ++i) {
    EXPECT_EQ(g_ours[i], g_expected[i]) << "frame " << i;
  }
}

int compare_in_qsort(const void* /*left*/, const void* /*right*/) {
  compare_here();
  return 0;
}

int signal_in_qsort(const void* /*left*/, const void* /*right*/) {
  return std::raise(SIGUSR1);
}

TEST(UnwindWalk, GoesThroughLibrariesWithoutFramePointers) {
  std::array<int, 2> numbers{2, 1};
  std::qsort(numbers.data(), numbers.size(), sizeof(int), compare_in_qsort);
  expect_the_same_stack(10);
}

TEST(UnwindWalk, GoesThroughSignalHandlers) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) { compare_here(); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::array<int, 2> numbers{2, 1};
  std::qsort(numbers.data(), numbers.size(), sizeof(int), signal_in_qsort);
  ::sigaction(SIGUSR1, &before, nullptr);
  expect_the_same_stack(13);
}

}  // namespace
}  // namespace ceems::exporter::profile
