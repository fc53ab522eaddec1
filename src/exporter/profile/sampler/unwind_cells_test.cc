#include <vector>

#include <gtest/gtest.h>

#include "exporter/profile/sampler/unwind_memory.h"

namespace ceems::exporter::profile {
namespace {

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
