#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "exporter/profile/symbol/elf_file.h"
#include "exporter/profile/symbol/names/symbol_table.h"

namespace ceems::exporter::profile {

/// Opens another file of the process that the binary belongs to, by an absolute path.
using FileOpener = std::function<Result<BinaryFile>(const std::string& path)>;

/// The functions of a binary. Sources in order of precedence: the line table of Go programs; the
/// separate debug file, by build id in /usr/lib/debug/.build-id, or by debug link beside the
/// binary, in its .debug/ and in /usr/lib/debug; the binary's symbol tables; its mini debug info.
/// If there are none but dynamic symbols, `source` is asked, unless it is null. @param path of the
/// binary, which a debug link is relative to
SymbolTable read_symbols(const ElfFile& elf,
                         const std::string& path,
                         const FileOpener& open,
                         const SymbolLimits& limits = {},
                         DebugFileSource* source = nullptr);

/// Adds the functions of .symtab and .dynsym, as offsets from `base`.
void add_elf_symbols(const ElfFile& elf, std::uint64_t base, SymbolTableBuilder& builder);
/// Adds the functions in a Go program's .gopclntab (Go 1.2, 1.16, 1.18 and from 1.20). Adds none if
/// it has no such table.
void add_go_symbols(const ElfFile& elf, SymbolTableBuilder& builder);

/// The ELF file in .gnu_debugdata, which Fedora and RHEL add to stripped binaries. kNotFound if
/// there is none, or no liblzma to decompress it.
Result<ElfFile> mini_debug_info(const ElfFile& elf);

}  // namespace ceems::exporter::profile
