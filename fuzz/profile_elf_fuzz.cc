// Binaries of jobs: any bytes give an error, or headers, unwind rows and symbols within bounds.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "exporter/profile/symbol/names/symbols.h"
#include "exporter/profile/symbol/unwind_table.h"

using namespace ceems::exporter::profile;  // NOLINT(google-build-using-namespace): one short file

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto elf = ElfFile::read(BinaryFile::of_bytes(bytes));
  if (!elf) {
    return 0;
  }
  CEEMS_CHECK(elf->segments().size() <= 256 && elf->sections().size() <= 20'000);
  if (const auto link = elf->debug_link()) {
    CEEMS_CHECK(!link->name.empty() && !link->name.contains('/'));
  }
  static_cast<void>(elf->code_address(0x1000));
  if (const auto table = build_unwind_table(*elf)) {
    CEEMS_CHECK(!table->rows.empty());
  }
  // Any path opens the file itself as its debug file.
  const auto open = [&bytes](const std::string& /*path*/) -> ceems::Result<BinaryFile> {
    return BinaryFile::of_bytes(bytes);
  };
  const SymbolTable symbols = read_symbols(*elf, "/opt/program", open, {.symbols = 1000});
  CEEMS_CHECK(symbols.size() <= 1000);
  for (std::uint32_t pc = 1; pc != 0; pc <<= 1U) {
    const auto name = symbols.find(pc);
    CEEMS_CHECK(!name || (!name->empty() && name->size() <= 4096));
  }
  return 0;
}
