#include "exporter/profile/symbol/python/code_reader.h"

#include <fcntl.h>
#include <sys/capability.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "exporter/profile/symbol/byte_reader.h"
#include "os/privileges.h"

namespace ceems::exporter::profile {
namespace {

// No text of Python has more characters than that: it would not fit into memory.
constexpr std::uint64_t kMaxLength = std::uint64_t{1} << 40U;

template <class Number>
std::optional<Number> number_at(const MemoryReader& memory, std::uint64_t address) {
  std::string bytes(sizeof(Number), '\0');
  if (!memory(address, bytes)) {
    return std::nullopt;
  }
  ByteReader reader(bytes);
  if constexpr (sizeof(Number) == sizeof(std::uint64_t)) {
    return reader.u64();
  } else {
    return reader.u32();
  }
}

/// Text of characters of 1 (Latin-1), 2 or 4 bytes as UTF-8.
std::string utf8_of(std::string_view bytes, std::size_t kind) {
  std::string text;
  ByteReader reader(bytes);
  while (!reader.at_end()) {
    std::uint32_t character = 0;
    switch (kind) {
      case 1:
        character = reader.u8();
        break;
      case 2:
        character = reader.u16();
        break;
      default:
        character = reader.u32();
        break;
    }
    append_utf8(text, character);
  }
  return text;
}

/// The last kMaxPythonText characters of a str object.
std::optional<std::string> read_text(const PythonLayout& layout,
                                     std::uint64_t address,
                                     const MemoryReader& memory) {
  const auto length = number_at<std::uint64_t>(memory, address + layout.text_length);
  const auto state = number_at<std::uint32_t>(memory, address + layout.text_state);
  if (!length || !state || *length > kMaxLength) {
    return std::nullopt;
  }
  const std::uint32_t bits = *state >> layout.text_state_kind;
  const std::uint32_t kind = bits & 7U;
  const bool is_compact = (bits & 8U) != 0;
  const bool is_ascii = (bits & 16U) != 0;
  if (!is_compact || (kind != 1 && kind != 2 && kind != 4)) {
    return std::nullopt;
  }
  const std::uint64_t count = std::min<std::uint64_t>(*length, kMaxPythonText);
  std::string bytes(count * kind, '\0');
  const std::uint64_t begin = address + (is_ascii ? layout.text_ascii : layout.text_compact);
  if (!memory(begin + (*length - count) * kind, bytes)) {
    return std::nullopt;
  }
  return utf8_of(bytes, kind);
}

}  // namespace

Result<PythonFunction> read_python_function(const PythonLayout& layout,
                                            const PythonCode& code,
                                            const MemoryReader& memory) {
  const auto name = number_at<std::uint64_t>(memory, code.address + layout.code_name);
  const auto line = number_at<std::uint32_t>(memory, code.address + layout.code_first_line);
  if (!name || !line || code.check != (std::uint64_t{*line} << 32U | (*name & 0xFFFF'FFFFU))) {
    return fail(ErrorCode::kParse, "the code object is gone");
  }
  const auto qualified =
      number_at<std::uint64_t>(memory, code.address + layout.code_qualified_name);
  const auto file = number_at<std::uint64_t>(memory, code.address + layout.code_file);
  if (!qualified || !file) {
    return fail(ErrorCode::kParse, "the code object is gone");
  }
  auto function = read_text(layout, *qualified, memory);
  auto path = read_text(layout, *file, memory);
  if (!function || !path || function->empty()) {
    return fail(ErrorCode::kParse, "not a code object");
  }
  return PythonFunction{.name = *std::move(function), .file = *std::move(path)};
}

Result<PythonFunction> read_python_function(const PythonLayout& layout,
                                            const PythonCode& code,
                                            const host::Paths& paths,
                                            pid_t pid) {
  const std::string path = fmt::format("{}/{}/mem", paths.proc.string(), pid);
  const os::RaisedCapabilities raised{CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return fail(errno_error(errno, "open " + path));
  }
  return read_python_function(layout, code, [&](std::uint64_t address, std::span<char> bytes) {
    return bytes.empty() ||
           ::pread(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(address)) ==
               static_cast<ssize_t>(bytes.size());
  });
}

}  // namespace ceems::exporter::profile
