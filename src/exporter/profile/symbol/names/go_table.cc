// The line table of Go programs (runtime/symtab.go and debug/gosym in Go; "Go 1.2 Runtime Symbol
// Information", https://golang.org/s/go12symtab).
#include <algorithm>
#include <optional>
#include <string_view>

#include "exporter/profile/symbol/byte_reader.h"
#include "exporter/profile/symbol/names/symbol_table.h"
#include "exporter/profile/symbol/names/symbols.h"

namespace ceems::exporter::profile {
namespace {

enum class Version : std::uint8_t { kGo12, kGo116, kGo118 };

struct Header {
  Version version = Version::kGo12;
  std::uint64_t functions = 0;
  std::uint64_t text = 0;         ///< address that entries count from; since 1.18
  std::uint64_t names = 0;        ///< offset of the names in the section
  std::uint64_t functab = 0;      ///< offset of the table of functions
  std::uint64_t entry_size = 16;  ///< of it
  std::uint64_t values = 0;       ///< offset of the tables of values by program counter
  bool has_start_line = false;    ///< a field before the flags; since 1.20
};

std::optional<Header> read_header(std::string_view bytes) {
  ByteReader reader(bytes);
  Header header;
  switch (reader.u32()) {
    case 0xFFFFFFFB:
      break;
    case 0xFFFFFFFA:
      header.version = Version::kGo116;
      break;
    case 0xFFFFFFF1:
      header.has_start_line = true;
      [[fallthrough]];
    case 0xFFFFFFF0:
      header.version = Version::kGo118;
      break;
    default:
      return std::nullopt;
  }
  const bool zeros = reader.u16() == 0;
  reader.skip(1);  // quantum
  const unsigned word = reader.u8();
  header.functions = reader.u64();
  if (header.version == Version::kGo12) {
    header.functab = reader.offset();
  } else {
    reader.skip(8);  // number of files
    header.text = header.version == Version::kGo118 ? reader.u64() : 0;
    header.names = reader.u64();
    reader.skip(16);  // compilation units, files
    header.values = reader.u64();
    header.functab = reader.u64();
    header.entry_size = header.version == Version::kGo118 ? 8 : 16;
  }
  return reader.good() && zeros && word == 8 ? std::optional(header) : std::nullopt;
}

/// One entry of the table of functions: where a function begins, and where more about it stands.
struct Place {
  std::uint64_t address = 0;
  std::uint64_t details = 0;
};

Place read_place(FileWindow& table, const Header& header, std::uint64_t index) {
  ByteReader reader(table.at(header.functab + index * header.entry_size, header.entry_size));
  Place place;
  if (header.version == Version::kGo118) {
    place.address = header.text + reader.u32();
    place.details = reader.u32();
  } else {
    place.address = reader.u64();
    place.details = reader.u64();
  }
  // Before Go 1.16 details count from the section, later from the table.
  place.details += header.version == Version::kGo12 ? 0 : header.functab;
  return place;
}

/// Position-independent programs have zero in the file, for which the loader puts the address.
std::uint64_t text_address(const ElfFile& elf, std::uint64_t in_table) {
  const Section* text = elf.find_section(".text");
  if (text == nullptr || (in_table >= text->address && in_table - text->address < text->size)) {
    return in_table;
  }
  return text->address;
}

/// What the table says about a function behind its address.
GoFunction read_function(ByteReader reader, const Header& header) {
  GoFunction function;
  function.name = header.names + reader.u32();
  reader.skip(8);  // size of arguments, deferred calls
  const std::uint32_t sizes = reader.u32();
  function.stack_sizes = sizes == 0 ? 0 : header.values + sizes;
  if (header.version == Version::kGo118) {
    reader.skip(16);  // files, lines, number of tables, compilation unit
    reader.skip(header.has_start_line ? 5 : 1);
    const unsigned flags = reader.u8();
    function.is_outermost = (flags & 1U) != 0;
    function.switches_stacks = (flags & 2U) != 0;
  }
  return function;
}

}  // namespace

const Section* go_line_table(const ElfFile& elf) {
  const Section* section = elf.find_section(".gopclntab");
  return section != nullptr ? section : elf.find_section(".data.rel.ro.gopclntab");
}

void each_go_function(const ElfFile& elf, const std::function<bool(const GoFunction&)>& found) {
  const Section* section = go_line_table(elf);
  if (section == nullptr) {
    return;
  }
  FileWindow table(elf.file(), section->offset, section->size);
  auto header = read_header(table.at(0, 72));
  if (!header || header->functab > table.size() || header->names > table.size()) {
    return;
  }
  if (header->version == Version::kGo118) {
    header->text = text_address(elf, header->text);
  }
  // The entry behind the last one has only the end of the last function.
  const std::uint64_t room = (table.size() - header->functab) / header->entry_size;
  const std::uint64_t count = std::min(header->functions, room);
  FileWindow details(elf.file(), section->offset, section->size);
  const std::uint64_t name_at = header->version == Version::kGo118 ? 4 : 8;
  Place place = count == 0 ? Place{} : read_place(table, *header, 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Place next = read_place(table, *header, i + 1);
    const std::string_view bytes = details.at(place.details + name_at, 40);
    GoFunction function = read_function(ByteReader(bytes), *header);
    function.address = place.address;
    function.end = next.address;
    if (bytes.size() >= 4 && function.end > function.address && !found(function)) {
      return;
    }
    place = next;
  }
}

}  // namespace ceems::exporter::profile
