#include "exporter/profile/sampler/unwind_memory.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::profile {
namespace {

/// Keeps what the kernel would be told.
class FakeStore final : public UnwindStore {
 public:
  Result<> put_table(std::uint32_t index, const std::vector<UnwindRow>& rows) override {
    if (refuse) {
      return fail(ErrorCode::kInternal, "refused");
    }
    tables[index] = rows;
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

  std::map<std::uint32_t, std::vector<UnwindRow>> tables;
  std::map<std::uint32_t, stack_mapping> mappings;
  std::map<pid_t, stack_process> processes;
  bool refuse = false;
};

[[gnu::noinline]] int some_function(int value) {
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
  const auto address = reinterpret_cast<std::uint64_t>(&some_function);
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
    const auto& rows = store.tables.at(mapping.table);
    EXPECT_EQ(rows.size(), mapping.rows);
    const auto pc = static_cast<std::uint32_t>(address - mapping.bias);
    const auto after = std::ranges::upper_bound(rows, pc, {}, &UnwindRow::pc);
    ASSERT_NE(after, rows.begin());
    // At its first instruction the return address is on top of the stack.
    EXPECT_EQ(std::prev(after)->cfa, cfa_rule::kRsp);
    EXPECT_EQ(std::prev(after)->cfa_offset, 8);
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

}  // namespace
}  // namespace ceems::exporter::profile
