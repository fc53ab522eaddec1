#include "exporter/profile/sampler/unwind_cells.h"

#include <bit>
#include <cstdint>
#include <unordered_map>

namespace ceems::exporter::profile {

UnwindCells pack(std::span<const UnwindRow> rows) {
  UnwindCells table{.cells = {}, .rows = rows.size()};
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  std::vector<stack_row> rules;
  table.cells.reserve(rows.size() + 64);
  for (const UnwindRow& row : rows) {
    const stack_rule rule{
        .cfa = row.cfa, .rbp = row.rbp, .rbp_offset = row.rbp_offset, .cfa_offset = row.cfa_offset};
    const auto next = static_cast<std::uint32_t>(rows.size() + rules.size());
    const auto [number, is_new] = numbers.try_emplace(std::bit_cast<std::uint64_t>(rule), next);
    if (is_new) {
      rules.push_back(std::bit_cast<stack_row>(rule));
    }
    table.cells.push_back({.pc = row.pc, .rule = number->second});
  }
  table.cells.insert(table.cells.end(), rules.begin(), rules.end());
  return table;
}

stack_rule rule_at(const UnwindCells& table, std::size_t cell) {
  return std::bit_cast<stack_rule>(table.cells.at(cell));
}

}  // namespace ceems::exporter::profile
