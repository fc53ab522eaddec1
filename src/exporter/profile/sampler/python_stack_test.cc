#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/profile/sampler/profile_builder.h"

namespace ceems::exporter::profile {
namespace {

using ::testing::ElementsAre;

constexpr auto kCode = NativeRole::kCode;
constexpr auto kEval = NativeRole::kEval;
constexpr auto kCall = NativeRole::kCall;
constexpr auto kInterpreter = NativeRole::kInterpreter;
constexpr auto kStart = NativeRole::kStart;

TEST(NativeRole, IsToldByNameAndModule) {
  constexpr std::string_view kPython = "/usr/lib/libpython3.12.so.1.0";
  const auto role = [&](std::string_view function, std::string_view module) {
    return native_role(function, module, kPython);
  };
  EXPECT_EQ(role("_PyEval_EvalFrameDefault", kPython), kEval);
  EXPECT_EQ(role("_PyEval_EvalFrameDefault.cold", kPython), kEval);
  EXPECT_EQ(role("_PyEval_EvalFrameDefault", "/job/program"), kCode);
  EXPECT_EQ(role("_PyEval_Vector", kPython), kCall);
  EXPECT_EQ(role("PyObject_CallMethod", kPython), kCall);
  EXPECT_EQ(role("cfunction_vectorcall_FASTCALL", kPython), kCall);
  EXPECT_EQ(role(kPython, kPython), kCall) << "a function without a name";
  EXPECT_EQ(role("PyNumber_Add", kPython), kInterpreter);
  EXPECT_EQ(role("__libc_start_main@@GLIBC_2.34", "/lib/libc.so.6"), kStart);
  EXPECT_EQ(role("clone3", "/lib/libc.so.6"), kStart);
  EXPECT_EQ(role("memcpy", "/lib/libc.so.6"), kCode);
  EXPECT_EQ(role("/lib/libc.so.6", "/lib/libc.so.6"), NativeRole::kUnnamed);
}

// Native frames have the numbers 1 to 99, Python frames 100 and more.

TEST(MergePython, ReplacesWhatRunsPython) {
  // deflate, called by an extension, called by two Python functions of one call.
  const std::vector<NativePart> native{
      {1, kCode}, {2, kInterpreter}, {3, kCall},  {4, kEval},
      {5, kCall}, {6, kInterpreter}, {7, kStart}, {8, NativeRole::kUnnamed}};
  const std::vector<PythonPart> python{{100, false}, {101, true}};
  EXPECT_THAT(merge_python(native, python, true), ElementsAre(1, 2, 100, 101));
  EXPECT_THAT(merge_python(native, python, false), ElementsAre(1, 2, 100, 101));
}

TEST(MergePython, KeepsTheOrderOfNestedCalls) {
  // A program that is not Python runs a function, which sorts with a function as the key.
  const std::vector<NativePart> native{{1, kEval}, {2, kCall},        {3, kInterpreter},
                                       {4, kEval}, {5, kInterpreter}, {6, kCode}};
  const std::vector<PythonPart> python{{100, true}, {101, false}, {102, true}};
  EXPECT_THAT(merge_python(native, python, true), ElementsAre(100, 3, 101, 102, 6));
}

TEST(MergePython, MatchesTheOutermostOfCompleteStacks) {
  const std::vector<NativePart> two{{1, kEval}, {2, kCode}, {3, kEval}};
  const std::vector<PythonPart> one{{100, true}};
  EXPECT_THAT(merge_python(two, one, true), ElementsAre(2, 100)) << "the leaf has no frame yet";
  const std::vector<NativePart> single{{1, kCode}, {2, kEval}};
  const std::vector<PythonPart> three{{100, true}, {101, true}, {102, false}};
  EXPECT_THAT(merge_python(single, three, true), ElementsAre(1, 100, 101, 102));
}

TEST(MergePython, MatchesTheLeafOfStacksThatAreCut) {
  const std::vector<NativePart> native{{1, kCode}, {2, kEval}, {3, kCode}};
  const std::vector<PythonPart> python{{100, true}, {101, true}};
  EXPECT_THAT(merge_python(native, python, false), ElementsAre(1, 100, 3, 101));
}

TEST(MergePython, PlacesPythonWithoutRecognisedCalls) {
  const std::vector<PythonPart> python{{100, true}, {101, true}};
  const std::vector<NativePart> unnamed{{1, kCode}, {2, kCall}, {3, kInterpreter}, {4, kCall}};
  EXPECT_THAT(merge_python(unnamed, python, true), ElementsAre(1, 100, 101));
  const std::vector<NativePart> compiled_code{{1, kCode}};
  EXPECT_THAT(merge_python(compiled_code, python, false), ElementsAre(1, 100, 101));
  EXPECT_THAT(merge_python({}, python, true), ElementsAre(100, 101));
}

TEST(MergePython, LeavesStacksWithoutPythonAsTheyAre) {
  const std::vector<NativePart> native{{1, kCall}, {2, kEval}, {3, kStart}};
  EXPECT_THAT(merge_python(native, {}, true), ElementsAre(1, 2, 3));
}

TEST(MarkEvals, FindsTheFramesThatContainAddresses) {
  std::vector<NativePart> native{{1, kEval}, {2, kCall}, {3, kCall}, {4, kCode}};
  const std::array<std::uint64_t, 4> stack{0x1000, 0x1100, 0x1200, 0x1300};
  EXPECT_TRUE(mark_evals(native, stack, std::array<std::uint64_t, 2>{0x1100, 0x12ff}));
  EXPECT_EQ(native[0].role, kCall) << "it has no frame yet";
  EXPECT_EQ(native[1].role, kEval);
  EXPECT_EQ(native[2].role, kEval);
  EXPECT_EQ(native[3].role, kCode);
}

TEST(MarkEvals, ChangesNothingWithoutAMatch) {
  std::vector<NativePart> native{{1, kEval}, {2, kCall}};
  const std::array<std::uint64_t, 2> stack{0x1000, 0x1100};
  for (const std::uint64_t address : {0xfffU, 0x1100U, 0x2000U}) {
    EXPECT_FALSE(mark_evals(native, stack, std::array{address})) << address;
  }
  EXPECT_FALSE(mark_evals(native, stack, {}));
  EXPECT_FALSE(mark_evals(native, {}, std::array<std::uint64_t, 1>{0x1000}));
  EXPECT_FALSE(mark_evals(native, std::array<std::uint64_t, 3>{0x1000, 0x1100, 0x1200},
                          std::array<std::uint64_t, 1>{0x1000}));
  EXPECT_EQ(native[0].role, kEval);
}

}  // namespace
}  // namespace ceems::exporter::profile
