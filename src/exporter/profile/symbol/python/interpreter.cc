#include "exporter/profile/symbol/python/interpreter.h"

#include <elf.h>

#include <map>
#include <string>

#include "exporter/profile/symbol/byte_reader.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{16} << 20U;
constexpr std::size_t kMaxFunctionBytes = 32;

// All are exported; the comments say since which version.
constexpr std::string_view kEval = "_PyEval_EvalFrameDefault";             // 3.6
constexpr std::string_view kHead = "PyInterpreterState_Head";              // long before
constexpr std::string_view kRuntime = "_PyRuntime";                        // 3.7
constexpr std::string_view kPositionalOnly = "PyCode_NewWithPosOnlyArgs";  // 3.8
constexpr std::string_view kVersion = "Py_Version";                        // 3.11, PY_VERSION_HEX

using Symbols = std::map<std::string_view, std::uint64_t>;

/// The addresses of the symbols that the binary defines.
Symbols find_symbols(const ElfFile& elf) {
  Symbols found;
  const Section* const table = elf.find_section(".dynsym");
  if (table == nullptr || table->link >= elf.sections().size()) {
    return found;
  }
  const auto names = elf.content(elf.sections()[table->link], kMaxTableBytes);
  if (!names || !names->contains(kEval)) {
    return found;  // as most binaries
  }
  const auto symbols = elf.content(*table, kMaxTableBytes);
  if (!symbols) {
    return found;
  }
  ByteReader reader(*symbols);
  while (reader.left() >= sizeof(Elf64_Sym)) {
    const std::uint32_t name = reader.u32();
    reader.skip(2);
    const std::uint16_t section = reader.u16();
    const std::uint64_t address = reader.u64();
    reader.skip(sizeof(std::uint64_t));
    if (section == SHN_UNDEF || name >= names->size()) {
      continue;
    }
    const std::string_view rest = std::string_view(*names).substr(name);
    for (const std::string_view wanted : {kEval, kHead, kRuntime, kPositionalOnly, kVersion}) {
      if (rest.starts_with(wanted) && rest.substr(wanted.size()).starts_with('\0')) {
        found.emplace(wanted, address);
      }
    }
  }
  return found;
}

/// N of Python 3.N, or of an older one with the same layout; nothing for another Python.
std::optional<unsigned> minor_of(const ElfFile& elf, const Symbols& symbols) {
  const auto version = symbols.find(kVersion);
  if (version == symbols.end()) {
    const unsigned newest = symbols.contains(kPositionalOnly) ? 8 : 7;
    return symbols.contains(kRuntime) ? newest : kFirstPythonMinor;
  }
  const auto bytes = elf.content_at(version->second, sizeof(std::uint64_t));
  const std::uint64_t value = bytes ? ByteReader(*bytes).u64() : 0;
  return value >> 24U == 3 ? std::optional(static_cast<unsigned>(value >> 16U) & 0xFFU)
                           : std::nullopt;
}

/// The variable that PyInterpreterState_Head() returns. It has no exported name itself.
std::optional<std::uint64_t> head_of(const ElfFile& elf, const Symbols& symbols) {
  const auto function = symbols.find(kHead);
  if (function == symbols.end()) {
    return std::nullopt;
  }
  const auto code = elf.content_at(function->second, kMaxFunctionBytes);
  return code ? returned_variable(*code, function->second) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> returned_variable(std::string_view code, std::uint64_t address) {
  constexpr std::string_view kBranchTarget = "\xf3\x0f\x1e\xfa";
  constexpr std::string_view kLoad = "\x48\x8b\x05";  // mov offset(%rip), %rax
  constexpr char kReturn = '\xc3';
  const std::string_view begin = code;
  if (code.starts_with(kBranchTarget)) {
    code.remove_prefix(kBranchTarget.size());
  }
  if (!code.starts_with(kLoad)) {
    return std::nullopt;
  }
  ByteReader reader(code, kLoad.size());
  const auto offset = static_cast<std::int32_t>(reader.u32());
  const std::uint64_t next = address + (begin.size() - code.size()) + reader.offset();
  if (reader.take(1) != std::string_view(&kReturn, 1)) {
    return std::nullopt;
  }
  return next + static_cast<std::uint64_t>(std::int64_t{offset});
}

std::optional<PythonBinary> find_python(const ElfFile& elf) {
  const Symbols symbols = find_symbols(elf);
  if (!symbols.contains(kEval)) {
    return std::nullopt;
  }
  const auto minor = minor_of(elf, symbols);
  if (!minor) {
    return std::nullopt;
  }
  const auto runtime = symbols.find(kRuntime);
  if (runtime == symbols.end()) {
    const auto head = head_of(elf, symbols);
    const auto layout = known_python_layout(*minor);
    if (!head || !layout || *head < elf.base()) {
      return std::nullopt;
    }
    return PythonBinary{.interpreters = *head - elf.base(), .layout = *layout};
  }
  auto layout = known_python_layout(*minor);
  if (*minor >= kFirstDescribedMinor) {
    const auto bytes = elf.content_at(runtime->second, kPythonDescriptionBytes);
    if (const auto described = parse_python_description(bytes ? *bytes : std::string())) {
      layout = *described;
    }
  }
  if (!layout || runtime->second < elf.base()) {
    return std::nullopt;
  }
  return PythonBinary{.interpreters = runtime->second - elf.base() + layout->interpreters,
                      .layout = *layout};
}

}  // namespace ceems::exporter::profile
