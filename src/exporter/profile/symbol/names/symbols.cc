#include "exporter/profile/symbol/names/symbols.h"

#include <elf.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "exporter/profile/symbol/byte_reader.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::uint64_t kMaxEntries = 4'000'000;  ///< of a symbol table, most of them no functions
constexpr std::uint64_t kMaxChecksummed = 256U << 20U;

struct ElfSymbol {
  std::uint32_t name = 0;
  unsigned type = 0;
  unsigned binding = 0;
  std::uint16_t section = 0;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};

ElfSymbol elf_symbol(std::string_view bytes) {
  ByteReader reader(bytes);
  ElfSymbol symbol;
  symbol.name = reader.u32();
  const unsigned info = reader.u8();
  symbol.type = info & 0xFU;
  symbol.binding = info >> 4U;
  reader.skip(1);
  symbol.section = reader.u16();
  symbol.value = reader.u64();
  symbol.size = reader.u64();
  return symbol;
}

/// Functions, and labels of code such as _start, which hand-written code has instead.
bool is_function(const ElfSymbol& symbol, const std::vector<Section>& sections) {
  if (symbol.section == SHN_UNDEF || symbol.name == 0) {
    return false;
  }
  if (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) {
    return true;
  }
  return symbol.type == STT_NOTYPE && symbol.binding != STB_LOCAL &&
         symbol.section < sections.size() && (sections[symbol.section].flags & SHF_EXECINSTR) != 0;
}

void add_table(const ElfFile& elf,
               const Section& section,
               std::uint64_t base,
               SymbolTableBuilder& builder) {
  if (section.link >= elf.sections().size()) {
    return;
  }
  const Section& texts = elf.sections()[section.link];
  FileWindow names(elf.file(), texts.offset, texts.type == SHT_STRTAB ? texts.size : 0);
  FileWindow table(elf.file(), section.offset, section.size);
  const std::uint64_t count = std::min(table.size() / sizeof(Elf64_Sym), kMaxEntries);
  std::vector<SymbolTableBuilder::Function> functions;
  for (std::uint64_t i = 0; i < count; ++i) {
    const ElfSymbol symbol = elf_symbol(table.at(i * sizeof(Elf64_Sym), sizeof(Elf64_Sym)));
    if (!is_function(symbol, elf.sections()) || symbol.value < base ||
        symbol.value - base > std::numeric_limits<std::uint32_t>::max()) {
      continue;
    }
    if (functions.size() == builder.room()) {
      builder.drop(1);
      continue;
    }
    functions.push_back({.start = static_cast<std::uint32_t>(symbol.value - base),
                         .size = static_cast<std::uint32_t>(std::min<std::uint64_t>(
                             symbol.size, std::numeric_limits<std::uint32_t>::max())),
                         .name = symbol.name,
                         .is_local = symbol.binding == STB_LOCAL});
  }
  builder.add(std::move(functions), names);
}

bool has_checksum(const BinaryFile& file, std::uint32_t expected) {
  if (file.size() > kMaxChecksummed) {
    return false;
  }
  FileWindow window(file, 0, file.size());
  uLong crc = ::crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at < window.size(); at += FileWindow::kPiece) {
    const std::string_view piece = window.at(at, FileWindow::kPiece);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): zlib's bytes
    crc =
        ::crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
  }
  return crc == expected;
}

std::optional<ElfFile> debug_file_by_id(const ElfFile& elf, const FileOpener& open) {
  const std::string& id = elf.build_id();
  if (id.size() < 4) {
    return std::nullopt;
  }
  auto file =
      open(fmt::format("/usr/lib/debug/.build-id/{}/{}.debug", id.substr(0, 2), id.substr(2)));
  if (!file) {
    return std::nullopt;
  }
  auto debug = ElfFile::read(std::move(*file));
  return debug && debug->build_id() == id ? std::optional(std::move(*debug)) : std::nullopt;
}

std::optional<ElfFile> fetched_debug_file(const ElfFile& elf, DebugFileSource& source) {
  const std::string& id = elf.build_id();
  auto file = id.empty() ? std::nullopt : source.find(id);
  if (!file) {
    return std::nullopt;
  }
  auto debug = ElfFile::read(*std::move(file));
  return debug && debug->build_id() == id ? std::optional(*std::move(debug)) : std::nullopt;
}

std::optional<ElfFile> debug_file_by_link(const ElfFile& elf,
                                          const std::string& path,
                                          const FileOpener& open) {
  const auto link = elf.debug_link();
  const std::size_t slash = path.rfind('/');
  if (!link || slash == std::string::npos) {
    return std::nullopt;
  }
  const std::string directory = path.substr(0, slash);
  for (const std::string& candidate : {fmt::format("{}/{}", directory, link->name),
                                       fmt::format("{}/.debug/{}", directory, link->name),
                                       fmt::format("/usr/lib/debug{}/{}", directory, link->name)}) {
    auto file = open(candidate);
    if (!file || candidate == path) {
      continue;
    }
    const FileIdentity identity = file->identity();
    if (identity == elf.file().identity()) {
      continue;  // the link names the binary itself
    }
    // Equal build ids say the same as the checksum, without reading all of a large file.
    auto debug = ElfFile::read(std::move(*file));
    if (debug && ((!elf.build_id().empty() && debug->build_id() == elf.build_id()) ||
                  (debug->build_id().empty() && has_checksum(debug->file(), link->crc)))) {
      return std::move(*debug);
    }
  }
  return std::nullopt;
}

}  // namespace

void add_elf_symbols(const ElfFile& elf, std::uint64_t base, SymbolTableBuilder& builder) {
  for (const std::uint32_t type : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
    const auto section = std::ranges::find(elf.sections(), type, &Section::type);
    if (section != elf.sections().end()) {
      add_table(elf, *section, base, builder);
    }
  }
}

SymbolTable read_symbols(const ElfFile& elf,
                         const std::string& path,
                         const FileOpener& open,
                         const SymbolLimits& limits,
                         DebugFileSource* source) {
  SymbolTableBuilder builder(limits);
  add_go_symbols(elf, builder);
  const bool is_go = builder.size() > 0;
  auto debug = debug_file_by_id(elf, open);
  if (!debug) {
    debug = debug_file_by_link(elf, path, open);
  }
  if (debug) {
    add_elf_symbols(*debug, elf.base(), builder);
  }
  add_elf_symbols(elf, elf.base(), builder);
  const auto mini = mini_debug_info(elf);
  if (mini) {
    add_elf_symbols(*mini, elf.base(), builder);
  }
  const bool is_stripped = std::ranges::find(elf.sections(), std::uint32_t{SHT_SYMTAB},
                                             &Section::type) == elf.sections().end();
  if (source != nullptr && is_stripped && !is_go && !debug && !mini) {
    if (const auto fetched = fetched_debug_file(elf, *source)) {
      add_elf_symbols(*fetched, elf.base(), builder);
    }
  }
  return builder.finish();
}

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
