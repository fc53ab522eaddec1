#include "exporter/profile/symbol/python/code_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::profile {
namespace {

constexpr std::uint64_t kBase = 0x7f00'0000'0000;
constexpr std::uint64_t kCode = kBase + 0x1000;
constexpr std::uint64_t kName = kBase + 0x2000;
constexpr std::uint64_t kQualifiedName = kBase + 0x3000;
constexpr std::uint64_t kFile = kBase + 0x4000;
constexpr std::uint32_t kLine = 42;

/// The memory of a process from kBase on, of Python 3.12.
class FakeMemory {
 public:
  FakeMemory() : bytes_(0x10000) {
    put(kCode + layout.code_name, kName);
    put(kCode + layout.code_qualified_name, kQualifiedName);
    put(kCode + layout.code_file, kFile);
    put(kCode + layout.code_first_line, kLine);
    put_text(kName, "step", 4, 1, true);
    put_text(kQualifiedName, "Solver.step", 11, 1, true);
    put_text(kFile, "/home/user/solve.py", 19, 1, true);
  }

  template <class Number>
  void put(std::uint64_t address, Number value) {
    std::memcpy(bytes_.data() + (address - kBase), &value, sizeof(value));
  }
  void put_text(std::uint64_t at,
                std::string_view characters,
                std::uint64_t length,
                std::uint32_t kind,
                bool ascii) {
    put(at + layout.text_length, length);
    put(at + layout.text_state, 1U | kind << 2U | 1U << 5U | (ascii ? 1U << 6U : 0U));
    const std::uint64_t begin = at + (ascii ? layout.text_ascii : layout.text_compact);
    std::ranges::copy(characters, bytes_.begin() + static_cast<std::ptrdiff_t>(begin - kBase));
  }

  [[nodiscard]] Result<PythonFunction> read(const PythonCode& code) {
    return read_python_function(layout, code, [&](std::uint64_t address, std::span<char> bytes) {
      largest = std::max(largest, bytes.size());
      if (address < kBase || address - kBase > bytes_.size() ||
          bytes.size() > bytes_.size() - (address - kBase)) {
        return false;
      }
      std::memcpy(bytes.data(), bytes_.data() + (address - kBase), bytes.size());
      return true;
    });
  }

  const PythonLayout layout = *known_python_layout(12);
  std::size_t largest = 0;  ///< read at once

 private:
  std::vector<char> bytes_;
};

constexpr PythonCode kSampled{.address = kCode,
                              .check = std::uint64_t{kLine} << 32U | (kName & 0xFFFF'FFFFU)};

TEST(PythonCodeReader, ReadsNameAndFile) {
  FakeMemory memory;
  const auto function = memory.read(kSampled);
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_EQ(function->name, "Solver.step");
  EXPECT_EQ(function->file, "/home/user/solve.py");
}

TEST(PythonCodeReader, ReadsCharactersOfEverySize) {
  FakeMemory memory;
  memory.put_text(kQualifiedName,
                  "gr\xf6\xdf"
                  "e",
                  5, 1, false);
  EXPECT_EQ(memory.read(kSampled)->name, "größe");
  memory.put_text(kQualifiedName, std::string_view("\xb1\x03\x62\x00", 4), 2, 2, false);
  EXPECT_EQ(memory.read(kSampled)->name, "αb");
  memory.put_text(kQualifiedName, std::string_view("\x00\xf6\x01\x00\x62\x00\x00\x00", 8), 2, 4,
                  false);
  EXPECT_EQ(memory.read(kSampled)->name, "😀b");
  // Half of a surrogate pair, and a number beyond Unicode.
  memory.put_text(kQualifiedName, std::string_view("\x00\xd8\x62\x00", 4), 2, 2, false);
  EXPECT_EQ(memory.read(kSampled)->name,
            "\xEF\xBF\xBD"
            "b");
  memory.put_text(kQualifiedName, std::string_view("\xff\xff\xff\xff", 4), 1, 4, false);
  EXPECT_EQ(memory.read(kSampled)->name, "\xEF\xBF\xBD");
}

TEST(PythonCodeReader, RefusesAnotherObjectInTheSamePlace) {
  FakeMemory memory;
  EXPECT_FALSE(memory.read({.address = kCode, .check = kSampled.check + 1}));
  EXPECT_FALSE(memory.read({.address = kCode + 8, .check = kSampled.check}));
  memory.put(kCode + memory.layout.code_first_line, kLine + 1);
  EXPECT_FALSE(memory.read(kSampled));
}

TEST(PythonCodeReader, RefusesWhatIsNoText) {
  FakeMemory memory;
  for (const std::uint32_t state : {0U, 1U << 5U, 3U << 2U | 1U << 5U, 1U << 2U, 0x7U << 2U}) {
    memory.put(kQualifiedName + memory.layout.text_state, state);
    EXPECT_FALSE(memory.read(kSampled)) << state;
  }
  memory.put_text(kQualifiedName, "", 0, 1, true);
  EXPECT_FALSE(memory.read(kSampled)) << "functions have names";
  memory.put_text(kQualifiedName, "x", 1, 1, true);
  EXPECT_TRUE(memory.read(kSampled));
  memory.put(kCode + memory.layout.code_file, std::uint64_t{0});
  EXPECT_FALSE(memory.read(kSampled));
  memory.put(kCode + memory.layout.code_file, ~std::uint64_t{0} - 20);
  EXPECT_FALSE(memory.read(kSampled));
}

TEST(PythonCodeReader, ReadsTheEndOfLongTexts) {
  FakeMemory memory;
  const std::string path = std::string(3000, 'a') + "/solve.py";
  memory.put_text(kFile, path, path.size(), 1, true);
  const auto function = memory.read(kSampled);
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_EQ(function->file, path.substr(path.size() - kMaxPythonText));
  // A length that cannot be, and one that reaches out of the memory.
  memory.put(kFile + memory.layout.text_length, ~std::uint64_t{0});
  EXPECT_FALSE(memory.read(kSampled));
  memory.put(kFile + memory.layout.text_length, std::uint64_t{1} << 39U);
  EXPECT_FALSE(memory.read(kSampled));
  EXPECT_LE(memory.largest, 4 * kMaxPythonText);
}

TEST(PythonCodeReader, ReadsAProcess) {
  // This process has what a code object has, where the layout says.
  static const PythonLayout layout = *known_python_layout(12);
  std::vector<char> code(256);
  std::vector<char> text(256);
  const auto put = [](std::vector<char>& object, std::size_t at, const auto& value) {
    std::memcpy(object.data() + at, &value, sizeof(value));
  };
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): an address in this process
  const auto address = [](const auto& object) {
    return reinterpret_cast<std::uint64_t>(object.data());
  };
  put(text, layout.text_length, std::uint64_t{3});
  put(text, layout.text_state, 1U << 2U | 1U << 5U | 1U << 6U);
  std::memcpy(text.data() + layout.text_ascii, "run", 3);
  for (const std::size_t at : {layout.code_name, layout.code_qualified_name, layout.code_file}) {
    put(code, at, address(text));
  }
  put(code, layout.code_first_line, 7U);
  const PythonCode sampled{.address = address(code),
                           .check = std::uint64_t{7} << 32U | (address(text) & 0xFFFF'FFFFU)};
  const auto function = read_python_function(layout, sampled, host::Paths{}, ::getpid());
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_EQ(function->name, "run");
  EXPECT_EQ(function->file, "run");
  const auto gone = read_python_function(layout, sampled, host::Paths{}, 1 << 22);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ceems::exporter::profile
