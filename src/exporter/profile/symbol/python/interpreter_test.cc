#include "exporter/profile/symbol/python/interpreter.h"

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

}  // namespace
}  // namespace ceems::exporter::profile
