// Python interpreters of jobs: any bytes give an error, or offsets within bounds and short names.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/utf8.h"
#include "exporter/profile/symbol/python/code_reader.h"
#include "exporter/profile/symbol/python/interpreter.h"

using namespace ceems::exporter::profile;  // NOLINT(google-build-using-namespace): one short file

namespace {

/// Reads a code object at the start of the bytes, which are all the memory there is.
void read_code(const PythonLayout& layout, std::string_view bytes) {
  std::size_t read = 0;
  const MemoryReader memory = [&](std::uint64_t address, std::span<char> out) {
    read += out.size();
    if (address > bytes.size() || out.size() > bytes.size() - address) {
      return false;
    }
    std::memcpy(out.data(), bytes.data() + address, out.size());
    return true;
  };
  std::uint64_t name = 0;
  std::uint32_t line = 0;
  if (!memory(layout.code_name, {reinterpret_cast<char*>(&name), sizeof(name)}) ||
      !memory(layout.code_first_line, {reinterpret_cast<char*>(&line), sizeof(line)})) {
    return;
  }
  const PythonCode code{.address = 0, .check = std::uint64_t{line} << 32U | (name & 0xFFFF'FFFFU)};
  if (const auto function = read_python_function(layout, code, memory)) {
    CEEMS_CHECK(!function->name.empty() && function->name.size() <= 4 * kMaxPythonText);
    CEEMS_CHECK(ceems::is_utf8(function->name) && ceems::is_utf8(function->file));
  }
  CEEMS_CHECK(read <= 8 * kMaxPythonText + 256);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto elf = ElfFile::read(BinaryFile::of_bytes(bytes))) {
    if (const auto python = find_python(*elf)) {
      CEEMS_CHECK(python->layout.text_ascii > 0);
    }
  }
  if (const auto layout = parse_python_description(bytes)) {
    CEEMS_CHECK(layout->interpreter_threads < (1U << 20U) && layout->text_ascii > 0);
    read_code(*layout, bytes);
  }
  for (unsigned minor = kFirstPythonMinor; minor < kFirstDescribedMinor; ++minor) {
    read_code(*known_python_layout(minor), bytes);
  }
  static_cast<void>(returned_variable(bytes, 0x1000));
  return 0;
}
