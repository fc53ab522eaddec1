#include "exporter/profile/symbol/python/interpreter.h"

#include <array>
#include <cstring>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "exporter/profile/symbol/compiled_binary_test_support.h"

namespace ceems::exporter::profile {
namespace {

using namespace std::string_view_literals;

/// The interpreter in a library made of C source.
std::optional<PythonBinary> python_in(const std::string& source, const std::string& symbol = {}) {
  const testing::TempDir directory;
  const std::string library =
      compiled(directory, "gcc", "python.c", source, {"-O1", "-shared", "-fPIC"});
  EXPECT_NE(library, "") << symbol;
  auto file = BinaryFile::open(library);
  const auto elf = file ? ElfFile::read(*std::move(file)) : Result<ElfFile>(fail(file.error()));
  return elf ? find_python(*elf) : std::nullopt;
}

constexpr std::string_view kEval = "void _PyEval_EvalFrameDefault(void) {}\n";
constexpr std::string_view kHead =
    "static void *interp_head;\n"
    "void *PyInterpreterState_Head(void) { return interp_head; }\n"
    "void PyInterpreterState_New(void *p) { interp_head = p; }\n";

struct PythonInterpreterTest : ::testing::Test {
  void SetUp() override {
    if (!program("gcc")) {
      GTEST_SKIP() << "no gcc";
    }
  }
};

TEST_F(PythonInterpreterTest, TellsVersionsByTheirSymbols) {
  const std::string runtime = std::string(kEval) + "char _PyRuntime[4096];\n";
  const auto seven = python_in(runtime);
  ASSERT_TRUE(seven);
  EXPECT_EQ(seven->layout, *known_python_layout(7));
  const auto eight = python_in(runtime + "void PyCode_NewWithPosOnlyArgs(void) {}\n");
  ASSERT_TRUE(eight);
  EXPECT_EQ(eight->layout, *known_python_layout(8));
  EXPECT_GT(eight->interpreters, 0U);
  const auto twelve = python_in(runtime + "const unsigned long Py_Version = 0x030c01f0;\n");
  ASSERT_TRUE(twelve);
  EXPECT_EQ(twelve->layout, *known_python_layout(12));
}

TEST_F(PythonInterpreterTest, Finds36ByItsFunction) {
  const auto found = python_in(std::string(kEval) + std::string(kHead));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layout, *known_python_layout(6));
  EXPECT_GT(found->interpreters, 0U);
  EXPECT_FALSE(
      python_in(std::string(kEval) + "void *PyInterpreterState_Head(void *p) { return p; }\n"));
}

TEST_F(PythonInterpreterTest, ReadsTheDescription) {
  const std::string head = std::string(kEval) + "const unsigned long Py_Version = 0x030d05f0;\n";
  const auto described = python_in(
      head +
      "unsigned long _PyRuntime[1024] = {[0] = 0x7970677562656478, [1] = 0x030d05f0, [5] = 632,\n"
      "[24] = 152, [67] = 64, [70] = 40};\n");
  ASSERT_TRUE(described);
  EXPECT_EQ(described->layout.interpreters, 632U);
  EXPECT_EQ(described->layout.thread_id, 152U);
  EXPECT_FALSE(python_in(head + "unsigned long _PyRuntime[1024] = {1};\n"));
  EXPECT_FALSE(python_in(head + "unsigned long _PyRuntime[1024];\n")) << "not in the file";
}

TEST_F(PythonInterpreterTest, RefusesOtherBinaries) {
  EXPECT_FALSE(python_in("int other;\n"));
  EXPECT_FALSE(python_in("char _PyRuntime[64];\n"));
  EXPECT_FALSE(python_in(std::string(kEval)));
  EXPECT_FALSE(python_in(std::string(kEval) +
                         "char _PyRuntime[64]; const unsigned long Py_Version = 0x02070000;\n"));
  EXPECT_FALSE(python_in(std::string(kEval) +
                         "char _PyRuntime[64]; const unsigned long Py_Version = 0x03400000;\n"));
  // A symbol that another binary defines.
  EXPECT_FALSE(
      python_in("extern void _PyEval_EvalFrameDefault(void); char _PyRuntime[64];\n"
                "void run(void) { _PyEval_EvalFrameDefault(); }\n"));
}

TEST(ReturnedVariable, DecodesOnlyThatFunction) {
  constexpr auto kPlain = "\x48\x8b\x05\x10\x00\x00\x00\xc3"sv;
  EXPECT_EQ(returned_variable(kPlain, 0x1000), 0x1017U);
  EXPECT_EQ(returned_variable("\xf3\x0f\x1e\xfa\x48\x8b\x05\xf0\xff\xff\xff\xc3"sv, 0x1000),
            0xffbU);
  EXPECT_FALSE(returned_variable(kPlain.substr(0, 7), 0x1000));
  EXPECT_FALSE(returned_variable(kPlain.substr(0, 3), 0x1000));
  EXPECT_FALSE(returned_variable("", 0x1000));
  EXPECT_FALSE(returned_variable("\x48\x8b\x05\x10\x00\x00\x00\x90"sv, 0x1000));
  EXPECT_FALSE(returned_variable("\x48\x8b\x0d\x10\x00\x00\x00\xc3"sv, 0x1000));
}

constexpr std::size_t kWords = kPythonDescriptionBytes / sizeof(std::uint64_t);

/// A description with these 64-bit words; others are 1.
std::string description(std::uint64_t version, const std::map<std::size_t, std::uint64_t>& words) {
  std::string bytes;
  for (std::size_t i = 0; i < kWords; ++i) {
    const auto known = words.find(i);
    std::uint64_t value = known == words.end() ? 1 : known->second;
    value = i == 1 ? version : value;
    value = i == 2 && known == words.end() ? 0 : value;
    std::array<char, sizeof(value)> raw{};
    std::memcpy(raw.data(), &value, raw.size());
    bytes.append(i == 0 ? "xdebugpy" : std::string(raw.data(), raw.size()));
  }
  return bytes;
}

/// What Debian's python3.13 3.13.5 says.
const std::map<std::size_t, std::uint64_t> k313{
    {5, 632},  {8, 7264}, {9, 7344}, {21, 8},  {23, 72}, {24, 152}, {29, 8},  {30, 0}, {33, 70},
    {35, 112}, {36, 120}, {37, 128}, {39, 68}, {67, 64}, {68, 32},  {69, 16}, {70, 40}};

TEST(PythonLayout, KnowsVersionsThatDoNotDescribeThemselves) {
  EXPECT_FALSE(known_python_layout(5));
  EXPECT_FALSE(known_python_layout(13));
  const auto old = known_python_layout(6);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->thread_id, 152U);
  EXPECT_EQ(old->entry, PythonEntry::kEvery);
  EXPECT_EQ(old->code_qualified_name, old->code_name)
      << "before 3.11 a code object has no qualified name";
  EXPECT_EQ(known_python_layout(7)->interpreters, 24U);
  EXPECT_EQ(known_python_layout(7)->code_name, 104U);
  EXPECT_EQ(known_python_layout(8), known_python_layout(9));
  EXPECT_EQ(known_python_layout(9), known_python_layout(10));
  EXPECT_EQ(known_python_layout(10)->code_name, 112U);
  const auto flagged = known_python_layout(11);
  ASSERT_TRUE(flagged);
  EXPECT_EQ(flagged->entry, PythonEntry::kFlag);
  EXPECT_TRUE(flagged->holder);
  EXPECT_EQ(flagged->holder_frame, 8U);
  const auto owned = known_python_layout(12);
  ASSERT_TRUE(owned);
  EXPECT_EQ(owned->entry, PythonEntry::kOwner);
  EXPECT_EQ(owned->frame_entry, 70U);
  EXPECT_EQ(owned->text_ascii, 40U);
}

TEST(PythonLayout, ReadsTheDescriptionOf313) {
  const auto layout = parse_python_description(description(0x030d05f0, k313));
  ASSERT_TRUE(layout) << layout.error().message;
  const PythonLayout expected{.interpreters = 632,
                              .interpreter_next = 7264,
                              .interpreter_threads = 7344,
                              .thread_next = 8,
                              .thread_id = 152,
                              .thread_frame = 72,
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
  EXPECT_EQ(*layout, expected);
}

TEST(PythonLayout, TakesTheWordsOfEachVersion) {
  // Each word holds its own index, so that offsets show which words were taken.
  std::map<std::size_t, std::uint64_t> words;
  for (std::size_t i = 3; i < kWords; ++i) {
    words.emplace(i, i);
  }
  words[77] = words[89] = 200;  // sizes of text objects
  const auto newer = parse_python_description(description(0x030e0af0, words));
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(newer->thread_frame, 26U);
  EXPECT_EQ(newer->thread_id, 27U);
  EXPECT_EQ(newer->frame_entry, 36U);
  EXPECT_EQ(newer->code_first_line, 44U);
  EXPECT_EQ(newer->text_ascii, 80U);
  EXPECT_EQ(newer->text_compact, 192U);
  const auto newest = parse_python_description(description(0x030f02f0, words));
  ASSERT_TRUE(newest) << newest.error().message;
  EXPECT_EQ(newest->thread_frame, 26U);
  EXPECT_EQ(newest->thread_id, 30U);
  EXPECT_EQ(newest->frame_previous, 40U);
  EXPECT_EQ(newest->text_state, 90U);
}

TEST(PythonLayout, KnowsBuildsWithoutTheLock) {
  auto words = k313;
  words[2] = 1;
  EXPECT_EQ(parse_python_description(description(0x030d0000, words))->text_state_kind, 2U);
  for (std::size_t i = 3; i < kWords; ++i) {
    words[i] = 8;
  }
  words[77] = 64;
  words[80] = 40;
  EXPECT_EQ(parse_python_description(description(0x030e0000, words))->text_state_kind, 8U);
}

TEST(PythonLayout, RefusesOtherDescriptions) {
  EXPECT_FALSE(parse_python_description(""));
  EXPECT_FALSE(parse_python_description("xdebugpy"));
  const std::string good = description(0x030d0000, k313);
  EXPECT_TRUE(parse_python_description(good));
  EXPECT_FALSE(parse_python_description(good.substr(0, 300))) << "too short";
  std::string other = good;
  other[0] = 'y';
  EXPECT_FALSE(parse_python_description(other));
  EXPECT_FALSE(parse_python_description(description(0x020d0000, k313)));
  EXPECT_FALSE(parse_python_description(description(0x030c0000, k313)));
  EXPECT_FALSE(parse_python_description(description(0x03100000, k313)));
  EXPECT_FALSE(parse_python_description(description(0x1'030d'0000, k313)));
  for (const auto& [word, value] : k313) {
    auto words = k313;
    words[word] = std::uint64_t{1} << 20U;
    EXPECT_FALSE(parse_python_description(description(0x030d0000, words))) << word;
    words[word] = ~std::uint64_t{0};
    EXPECT_FALSE(parse_python_description(description(0x030d0000, words))) << word;
  }
  auto words = k313;
  words[67] = 3;  // smaller than a part of it
  EXPECT_FALSE(parse_python_description(description(0x030d0000, words)));
  words[70] = 0;
  EXPECT_FALSE(parse_python_description(description(0x030d0000, words)));
}

}  // namespace

}  // namespace ceems::exporter::profile
