// The line table of Go programs: any bytes in the section .gopclntab of a program give names within
// bounds.
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "exporter/profile/symbol/names/symbols.h"
#include "exporter/profile/symbol/unwind_table.h"

using namespace ceems::exporter::profile;  // NOLINT(google-build-using-namespace): one short file

namespace {

template <class Part>
void append(std::string& out, const Part& part) {
  out.append(reinterpret_cast<const char*>(&part), sizeof(part));
}

std::string program(const std::string& table) {
  constexpr char kNames[] = "\0.text\0.gopclntab\0.shstrtab";
  const std::string names(kNames, sizeof(kNames));
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG "\x02\x01\x01", 7);
  header.e_type = ET_EXEC;
  header.e_machine = EM_X86_64;
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 3;
  const std::uint64_t start = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  header.e_shoff = start + table.size() + names.size();
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_X;
  segment.p_vaddr = 0x1000;
  segment.p_filesz = 0x3000;
  std::string out;
  append(out, header);
  append(out, segment);
  out += table + names;
  append(out, Elf64_Shdr{});
  append(out, Elf64_Shdr{.sh_name = 1,
                         .sh_type = SHT_PROGBITS,
                         .sh_flags = 0,
                         .sh_addr = 0x2000,
                         .sh_offset = 0,
                         .sh_size = 0x1000,
                         .sh_link = 0,
                         .sh_info = 0,
                         .sh_addralign = 1,
                         .sh_entsize = 0});
  append(out, Elf64_Shdr{.sh_name = 7,
                         .sh_type = SHT_PROGBITS,
                         .sh_flags = 0,
                         .sh_addr = 0,
                         .sh_offset = start,
                         .sh_size = table.size(),
                         .sh_link = 0,
                         .sh_info = 0,
                         .sh_addralign = 1,
                         .sh_entsize = 0});
  append(out, Elf64_Shdr{.sh_name = 18,
                         .sh_type = SHT_STRTAB,
                         .sh_flags = 0,
                         .sh_addr = 0,
                         .sh_offset = start + table.size(),
                         .sh_size = names.size(),
                         .sh_link = 0,
                         .sh_info = 0,
                         .sh_addralign = 1,
                         .sh_entsize = 0});
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto elf = ElfFile::read(
      BinaryFile::of_bytes(program(std::string(reinterpret_cast<const char*>(data), size))));
  CEEMS_CHECK(elf.has_value() && go_line_table(*elf) != nullptr);
  SymbolTableBuilder builder({.symbols = 1000, .name_bytes = 100'000});
  add_go_symbols(*elf, builder);
  const SymbolTable symbols = builder.finish();
  CEEMS_CHECK(symbols.size() <= 1000);
  for (std::uint32_t pc = 0; pc < 0x4000; pc += 0x10) {
    const auto name = symbols.find(pc);
    CEEMS_CHECK(!name || (!name->empty() && name->size() <= 4096));
  }
  const auto table = build_unwind_table(*elf, {.rows = 100});
  CEEMS_CHECK(table.has_value() && !table->rows.empty() && table->rows.size() <= 110);
  for (std::size_t i = 1; i < table->rows.size(); ++i) {
    CEEMS_CHECK(table->rows[i].pc > table->rows[i - 1].pc);
  }
  return 0;
}
