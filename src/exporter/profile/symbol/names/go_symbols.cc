#include <limits>
#include <utility>
#include <vector>

#include "exporter/profile/symbol/names/go_table.h"
#include "exporter/profile/symbol/names/symbols.h"

namespace ceems::exporter::profile {

void add_go_symbols(const ElfFile& elf, SymbolTableBuilder& builder) {
  const std::uint64_t base = elf.base();
  std::vector<SymbolTableBuilder::Function> functions;
  each_go_function(elf, [&](const GoFunction& function) {
    if (functions.size() == builder.room()) {
      builder.drop(1);
      return true;
    }
    if (function.address >= base &&
        function.end - base <= std::numeric_limits<std::uint32_t>::max()) {
      functions.push_back({.start = static_cast<std::uint32_t>(function.address - base),
                           .size = static_cast<std::uint32_t>(function.end - function.address),
                           .name = function.name});
    }
    return true;
  });
  if (const Section* section = go_line_table(elf)) {
    FileWindow names(elf.file(), section->offset, section->size);
    builder.add(std::move(functions), names);
  }
}

}  // namespace ceems::exporter::profile
