#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exporter/profile/sampler/layout.h"
#include "exporter/profile/symbol/unwind_table.h"

namespace ceems::exporter::profile {

/// An unwind table as the sampling program looks it up: half the size, because few rules of a
/// binary differ. The first `rows` cells are the rows.
struct UnwindCells {
  static_assert(sizeof(stack_row) == sizeof(stack_rule));
  static constexpr std::size_t kBytes = sizeof(stack_row);  ///< of a cell in the kernel

  std::vector<stack_row> cells;  ///< rules have been copied into those behind the rows
  std::size_t rows = 0;
};

UnwindCells pack(std::span<const UnwindRow> rows);

/// The rule in this cell.
stack_rule rule_at(const UnwindCells& table, std::size_t cell);

}  // namespace ceems::exporter::profile
