#include "exporter/profile/symbol/python/interpreter.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "exporter/profile/symbol/byte_reader.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::string_view kCookie = "xdebugpy";
// Interpreters have a state of some 100 KiB; other structures are smaller.
constexpr std::uint64_t kMaxMemberOffset = std::uint64_t{1} << 20U;

// Offsets of 64-bit builds without Py_TRACE_REFS, printed by offsetof() with the headers of
// releases 3.6.15, 3.7.16, 3.8.18, 3.9.2, 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1.
constexpr PythonLayout k36{.interpreters = 0,
                           .interpreter_next = 0,
                           .interpreter_threads = 8,
                           .thread_next = 8,
                           .thread_id = 152,
                           .thread_frame = 24,
                           .frame_code = 32,
                           .frame_previous = 24,
                           .entry = PythonEntry::kEvery,
                           .code_file = 96,
                           .code_name = 104,
                           .code_qualified_name = 104,
                           .code_first_line = 36,
                           .text_length = 16,
                           .text_state = 32,
                           .text_state_kind = 2,
                           .text_ascii = 48,
                           .text_compact = 72};

constexpr PythonLayout k37 = [] {
  PythonLayout layout = k36;
  layout.interpreters = 24;
  layout.thread_id = 176;
  return layout;
}();

constexpr PythonLayout k38 = [] {
  PythonLayout layout = k37;
  layout.interpreters = 32;
  layout.code_file = 104;
  layout.code_name = 112;
  layout.code_qualified_name = 112;
  layout.code_first_line = 40;
  return layout;
}();

constexpr PythonLayout k311{.interpreters = 40,
                            .interpreter_next = 0,
                            .interpreter_threads = 16,
                            .thread_next = 8,
                            .thread_id = 152,
                            .thread_frame = 56,
                            .holder = true,
                            .holder_frame = 8,
                            .frame_code = 32,
                            .frame_previous = 48,
                            .frame_entry = 68,
                            .entry = PythonEntry::kFlag,
                            .code_file = 112,
                            .code_name = 120,
                            .code_qualified_name = 128,
                            .code_first_line = 72,
                            .text_length = 16,
                            .text_state = 32,
                            .text_state_kind = 2,
                            .text_ascii = 48,
                            .text_compact = 72};

constexpr PythonLayout k312{.interpreters = 40,
                            .interpreter_next = 0,
                            .interpreter_threads = 72,
                            .thread_next = 8,
                            .thread_id = 136,
                            .thread_frame = 56,
                            .holder = true,
                            .holder_frame = 0,
                            .frame_code = 0,
                            .frame_previous = 8,
                            .frame_entry = 70,
                            .entry = PythonEntry::kOwner,
                            .code_file = 112,
                            .code_name = 120,
                            .code_qualified_name = 128,
                            .code_first_line = 68,
                            .text_length = 16,
                            .text_state = 32,
                            .text_state_kind = 2,
                            .text_ascii = 40,
                            .text_compact = 56};

/// Which 64-bit words of a description hold the offsets. Word 0 is the cookie, 1 the version of
/// Python, 2 whether the build has no global lock.
struct DescriptionWords {
  std::size_t interpreters;
  std::size_t interpreter_next;
  std::size_t interpreter_threads;
  std::size_t thread_next;
  std::size_t thread_frame;
  std::size_t thread_id;
  std::size_t frame_previous;
  std::size_t frame_code;
  std::size_t frame_owner;
  std::size_t code_file;
  std::size_t code_name;
  std::size_t code_qualified_name;
  std::size_t code_first_line;
  std::size_t text_size;
  std::size_t text_state;
  std::size_t text_length;
  std::size_t text_ascii;
};

// Printed by offsetof() with the headers of 3.13.0 and 3.13.5, 3.14.10 and 3.15.2.
constexpr std::array<DescriptionWords, 3> kDescriptions{{
    {5, 8, 9, 21, 23, 24, 29, 30, 33, 35, 36, 37, 39, 67, 68, 69, 70},
    {5, 8, 9, 24, 26, 27, 32, 33, 36, 40, 41, 42, 44, 77, 78, 79, 80},
    {5, 8, 9, 24, 26, 30, 40, 41, 44, 48, 49, 50, 52, 89, 90, 91, 92},
}};
static_assert(kDescriptions.size() == kLastPythonMinor - kFirstDescribedMinor + 1);

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

std::optional<PythonLayout> known_python_layout(unsigned minor) {
  switch (minor) {
    case 6:
      return k36;
    case 7:
      return k37;
    case 8:
    case 9:
    case 10:
      return k38;
    case 11:
      return k311;
    case 12:
      return k312;
    default:
      return std::nullopt;
  }
}

Result<PythonLayout> parse_python_description(std::string_view bytes) {
  constexpr std::size_t kWord = 8;
  bool good = bytes.starts_with(kCookie);
  const auto word = [&](std::size_t index) {
    ByteReader reader(bytes, index * kWord);
    const std::uint64_t value = reader.u64();
    good = good && reader.good();
    return value;
  };
  const std::uint64_t version = word(1);
  if (!good) {
    return fail(ErrorCode::kParse, "not a description of a Python interpreter");
  }
  // As PY_VERSION_HEX: a byte for the major and one for the minor version, and two more.
  const std::uint64_t minor = (version >> 16U) & 0xFFU;
  if (version >> 24U != 3 || minor < kFirstDescribedMinor || minor > kLastPythonMinor) {
    return fail(ErrorCode::kParse, "unknown version {:x} of Python", version);
  }
  const bool free_threaded = word(2) != 0;
  const auto offset = [&](std::size_t index) {
    const std::uint64_t value = word(index);
    good = good && value < kMaxMemberOffset;
    return static_cast<std::uint32_t>(good ? value : 0);
  };
  const DescriptionWords& at = kDescriptions.at(minor - kFirstDescribedMinor);
  const std::uint32_t text_size = offset(at.text_size);
  const PythonLayout layout{.interpreters = offset(at.interpreters),
                            .interpreter_next = offset(at.interpreter_next),
                            .interpreter_threads = offset(at.interpreter_threads),
                            .thread_next = offset(at.thread_next),
                            .thread_id = offset(at.thread_id),
                            .thread_frame = offset(at.thread_frame),
                            .frame_code = offset(at.frame_code),
                            .frame_previous = offset(at.frame_previous),
                            .frame_entry = offset(at.frame_owner),
                            .entry = PythonEntry::kOwner,
                            .code_file = offset(at.code_file),
                            .code_name = offset(at.code_name),
                            .code_qualified_name = offset(at.code_qualified_name),
                            .code_first_line = offset(at.code_first_line),
                            .text_length = offset(at.text_length),
                            .text_state = offset(at.text_state),
                            // Without a lock, .state.interned before it is a byte (from 3.14 on).
                            .text_state_kind = free_threaded && minor >= 14 ? 8U : 2U,
                            .text_ascii = offset(at.text_ascii),
                            // PyUnicodeObject has one pointer more.
                            .text_compact = text_size - std::min<std::uint32_t>(text_size, kWord)};
  if (!good || layout.text_ascii == 0 || layout.text_compact < layout.text_ascii) {
    return fail(ErrorCode::kParse, "a Python interpreter describes itself by impossible offsets");
  }
  return layout;
}

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
