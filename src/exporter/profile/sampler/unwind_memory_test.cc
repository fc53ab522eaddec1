#include "exporter/profile/sampler/unwind_memory.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/profile/symbol/compiled_binary_test_support.h"

namespace ceems::exporter::profile {
namespace {

/// Records what would be written to the kernel.
class FakeStore final : public UnwindStore {
 public:
  Result<> put_table(std::uint32_t index, const UnwindCells& table) override {
    if (refuse) {
      return fail(ErrorCode::kInternal, "refused");
    }
    tables[index] = table;
    return {};
  }
  void remove_table(std::uint32_t index) override { tables.erase(index); }
  Result<> put_mappings(std::uint32_t first, std::span<const stack_mapping> all) override {
    for (const stack_mapping& mapping : all) {
      mappings[first++] = mapping;
    }
    return {};
  }
  Result<> put_process(pid_t pid, const stack_process& process) override {
    processes[pid] = process;
    return {};
  }
  void remove_process(pid_t pid) override { processes.erase(pid); }

  std::map<std::uint32_t, UnwindCells> tables;
  std::map<std::uint32_t, stack_mapping> mappings;
  std::map<pid_t, stack_process> processes;
  bool refuse = false;
};

[[gnu::noinline]] int probed_function(int value) {
  return value * 3;
}

TEST(UnwindMemory, DescribesAProcess) {
  FakeStore store;
  UnwindMemory memory(host::Paths{}, store);
  const pid_t self = ::getpid();
  const auto done = memory.describe(self);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(memory.knows(self));
  const stack_process process = store.processes.at(self);
  ASSERT_GT(process.count, 2U);
  // The mapping of a function of this program leads to a row of its table.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the address is what is looked up
  const auto address = reinterpret_cast<std::uint64_t>(&probed_function);
  bool found = false;
  std::uint64_t end = 0;
  for (std::uint32_t i = process.first; i < process.first + process.count; ++i) {
    const stack_mapping& mapping = store.mappings.at(i);
    EXPECT_GE(mapping.begin, end) << "sorted by address";
    end = mapping.end;
    if (address < mapping.begin || address >= mapping.end) {
      continue;
    }
    found = true;
    const UnwindCells& table = store.tables.at(mapping.table);
    EXPECT_EQ(table.rows, mapping.rows);
    const auto rows = std::span(table.cells).first(table.rows);
    const auto pc = static_cast<std::uint32_t>(address - mapping.bias);
    const auto after = std::ranges::upper_bound(rows, pc, {}, &stack_row::pc);
    ASSERT_NE(after, rows.begin());
    // At its first instruction the return address is on top of the stack.
    const stack_rule rule = rule_at(table, std::prev(after)->rule);
    EXPECT_EQ(rule.cfa, cfa_rule::kRsp);
    EXPECT_EQ(rule.cfa_offset, 8);
  }
  EXPECT_TRUE(found);
}

TEST(UnwindMemory, DescribesAgainInAnotherPlaceAndSharesTables) {
  FakeStore store;
  UnwindMemory memory(host::Paths{}, store);
  const pid_t self = ::getpid();
  ASSERT_TRUE(memory.describe(self));
  const auto tables = store.tables.size();
  const auto bytes = memory.table_bytes();
  const auto first = store.processes.at(self).first;
  ASSERT_TRUE(memory.describe(self));
  EXPECT_NE(store.processes.at(self).first, first) << "the program may be reading the old ones";
  EXPECT_EQ(store.tables.size(), tables);
  EXPECT_EQ(memory.table_bytes(), bytes);
  ASSERT_TRUE(memory.describe(self));
  EXPECT_EQ(store.processes.at(self).first, first) << "free places are used again";
}

TEST(UnwindMemory, ForgetsProcesses) {
  FakeStore store;
  UnwindMemory memory(host::Paths{}, store);
  const pid_t self = ::getpid();
  ASSERT_TRUE(memory.describe(self));
  memory.forget_ended();
  EXPECT_TRUE(memory.knows(self));
  memory.forget(self);
  EXPECT_FALSE(memory.knows(self));
  EXPECT_TRUE(store.processes.empty());
  EXPECT_FALSE(memory.describe(1 << 22)) << "no such process";
}

TEST(UnwindMemory, HoldsNoMoreProcessesThanTheKernelsTable) {
  FakeStore store;
  UnwindMemory memory(host::Paths{}, store, UnwindMemory::Python::kIgnore, 1);
  ASSERT_TRUE(memory.describe(::getpid()));
  ASSERT_TRUE(memory.describe(::getpid())) << "the same one again";
  const auto another = memory.describe(::getppid());
  ASSERT_FALSE(another);
  EXPECT_EQ(another.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(memory.knows(::getppid()));
}

TEST(UnwindMemory, WithoutTablesMappingsHaveNone) {
  FakeStore store;
  store.refuse = true;
  UnwindMemory memory(host::Paths{}, store);
  ASSERT_TRUE(memory.describe(::getpid()));
  for (const auto& [index, mapping] : store.mappings) {
    EXPECT_EQ(mapping.rows, 0U);
  }
  EXPECT_EQ(memory.table_bytes(), 0U);
}

/// A program that runs until the object is destroyed.
class RunningProgram {
 public:
  explicit RunningProgram(std::string path) {
    std::array<char*, 2> arguments{path.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, path.c_str(), nullptr, nullptr, arguments.data(), nullptr), 0);
  }
  ~RunningProgram() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(UnwindMemory, FindsPython) {
  const testing::TempDir directory;
  const std::string path = compiled(directory, "gcc", "python.c",
                                    "#include <unistd.h>\n"
                                    "void _PyEval_EvalFrameDefault(void) {}\n"
                                    "char _PyRuntime[4096] = {1};\n"
                                    "const unsigned long Py_Version = 0x030c01f0;\n"
                                    "int main() { for (;;) pause(); }\n",
                                    {"-rdynamic", "-pie", "-fPIE"});
  if (path.empty()) {
    GTEST_SKIP() << "no gcc";
  }
  const RunningProgram program(path);
  FakeStore store;
  UnwindMemory memory(host::Paths{}, store);
  // The new process begins as a copy of this one.
  for (int i = 0; i < 3000 && memory.python(program.pid()) == nullptr; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(memory.describe(program.pid()));
  }
  const PythonProcess* const python = memory.python(program.pid());
  ASSERT_NE(python, nullptr);
  EXPECT_EQ(python->module, path);
  EXPECT_EQ(python->layout, *known_python_layout(12));
  const stack_process& process = store.processes.at(program.pid());
  EXPECT_EQ(process.python.interpreters, python->interpreters);
  EXPECT_EQ(process.python.interpreters % 8, 0U);
  EXPECT_EQ(process.python.thread_id, 136U);
  EXPECT_EQ(process.python.entry, STACK_PYTHON_OWNER);
  EXPECT_EQ(process.python.holder, 1U);
  // In the data of the program, which follows its code.
  const stack_mapping& code = store.mappings.at(process.first);
  EXPECT_GT(process.python.interpreters, code.end);
  EXPECT_LT(process.python.interpreters, code.end + 0x10000);

  UnwindMemory ignoring(host::Paths{}, store, UnwindMemory::Python::kIgnore);
  ASSERT_TRUE(ignoring.describe(program.pid()));
  EXPECT_EQ(ignoring.python(program.pid()), nullptr);
  EXPECT_EQ(store.processes.at(program.pid()).python.interpreters, 0U);
}

TEST(UnwindCells, HoldEachRuleOnce) {
  const UnwindRow entry{
      .pc = 0x10, .cfa = cfa_rule::kRsp, .rbp = rbp_rule::kSame, .rbp_offset = 0, .cfa_offset = 8};
  UnwindRow pushed{.pc = 0x11,
                   .cfa = cfa_rule::kRsp,
                   .rbp = rbp_rule::kAtCfa,
                   .rbp_offset = -16,
                   .cfa_offset = 16};
  UnwindRow again = entry;
  again.pc = 0x30;
  UnwindRow deep = pushed;
  deep.pc = 0x40;
  deep.cfa_offset = -70'000;
  const UnwindCells table = pack(std::vector{entry, pushed, again, deep});
  ASSERT_EQ(table.rows, 4U);
  ASSERT_EQ(table.cells.size(), 4U + 3U);
  const std::vector<UnwindRow> wanted{entry, pushed, again, deep};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(table.cells[i].pc, wanted[i].pc);
    ASSERT_GE(table.cells[i].rule, table.rows);
    const stack_rule rule = rule_at(table, table.cells[i].rule);
    EXPECT_EQ(rule.cfa, wanted[i].cfa);
    EXPECT_EQ(rule.rbp, wanted[i].rbp);
    EXPECT_EQ(rule.rbp_offset, wanted[i].rbp_offset);
    EXPECT_EQ(rule.cfa_offset, wanted[i].cfa_offset);
  }
  EXPECT_EQ(table.cells[0].rule, table.cells[2].rule);
}

TEST(UnwindCells, OfNoRowsAreNone) {
  EXPECT_TRUE(pack({}).cells.empty());
}

}  // namespace

}  // namespace ceems::exporter::profile
