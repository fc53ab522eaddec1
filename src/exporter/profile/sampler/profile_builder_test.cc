#include "exporter/profile/sampler/profile_builder.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::profile {
namespace {

using ::testing::HasSubstr;

/// A function of this program, whose address is named by its own symbols.
[[gnu::noinline]] int some_function(int value) {
  return value * 3;
}

std::uint64_t address_of_function() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the address is what is tested
  return reinterpret_cast<std::uint64_t>(&some_function);
}

struct ProfileBuilderTest : ::testing::Test {
  Symbolizer symbolizer{host::Paths{}, {.demangle = DemangleMode::kSimplified}};
  KernelSymbols kernel = KernelSymbols::parse(
      "ffffffff81000000 T do_syscall_64\n"
      "ffffffff81001000 T vfs_write\n");
  ProfileBuilder builder{symbolizer, &kernel, 97};

  std::uint64_t unit = 7;
  stack_image image{.started = 1, .execs = 0};

  void add(std::span<const std::uint64_t> kernel_frames, std::span<const std::uint64_t> user) {
    builder.add({.pid = ::getpid(),
                 .image = image,
                 .unit = unit,
                 .comm = "test",
                 .end = STACK_END_OUTERMOST,
                 .unknown = false,
                 .kernel = kernel_frames,
                 .user = user});
  }
};

TEST_F(ProfileBuilderTest, NamesFramesAndCountsEqualStacks) {
  const std::array<std::uint64_t, 2> user{address_of_function() + 4, address_of_function() + 5};
  const std::array<std::uint64_t, 2> system{0xffffffff81001010, 0xffffffff81000020};
  add({}, user);
  add({}, user);
  add(system, user);
  const auto profiles = builder.take();
  ASSERT_EQ(profiles.size(), 1U);
  const Profile& profile = profiles.at({.unit = 7, .pid = ::getpid()});
  EXPECT_EQ(profile.rate, 97U);
  ASSERT_EQ(profile.stacks.size(), 2U);
  EXPECT_EQ(profile.stacks[0].samples, 2U);
  EXPECT_EQ(profile.stacks[1].samples, 1U);
  std::vector<std::string> names;
  for (const std::uint32_t index : profile.stacks[1].frames) {
    names.push_back(profile.frames.at(index).name);
  }
  ASSERT_EQ(names.size(), 5U);
  EXPECT_EQ(names[0], "vfs_write");
  EXPECT_EQ(names[1], "do_syscall_64");
  EXPECT_THAT(names[2], HasSubstr("some_function"));
  EXPECT_EQ(names[3], names[2]);
  EXPECT_EQ(names[4], "test");
  EXPECT_EQ(profile.frames.at(profile.stacks[1].frames[0]).kind, FrameKind::kKernel);
  EXPECT_EQ(profile.frames.at(profile.stacks[1].frames[4]).kind, FrameKind::kProcess);
  EXPECT_TRUE(builder.take().empty()) << "each sample is handed over once";
}

TEST_F(ProfileBuilderTest, AReturnAddressBelongsToTheCallBeforeIt) {
  // The first address of a function as a return address is behind the function before it.
  const std::array<std::uint64_t, 2> user{address_of_function() + 4, address_of_function()};
  add({}, user);
  const Profile profile = builder.take_all();
  const auto& frames = profile.stacks.at(0).frames;
  EXPECT_NE(profile.frames.at(frames.at(1)).name, profile.frames.at(frames.at(0)).name);
}

TEST_F(ProfileBuilderTest, PutsProcessesTogether) {
  const std::array<std::uint64_t, 1> user{address_of_function() + 4};
  add({}, user);
  builder.add({.pid = 1 << 21,
               .comm = "gone",
               .end = STACK_END_NO_RULE,
               .unknown = true,
               .kernel = {},
               .user = user});
  const Profile all = builder.take_all();
  ASSERT_EQ(all.stacks.size(), 2U);
  std::uint64_t samples = 0;
  for (const Stack& stack : all.stacks) {
    samples += stack.samples;
  }
  EXPECT_EQ(samples, 2U);
}

TEST(ProfileBuilder, WithoutSymbolsOfTheKernelItsFramesAreOne) {
  Symbolizer symbolizer{host::Paths{}, {}};
  ProfileBuilder builder(symbolizer, nullptr, 19);
  const std::array<std::uint64_t, 2> system{0xffffffff81001010, 0xffffffff81000020};
  builder.add({.pid = 1,
               .comm = "x",
               .end = STACK_END_OUTERMOST,
               .unknown = false,
               .kernel = system,
               .user = {}});
  const Profile all = builder.take_all();
  EXPECT_EQ(all.frames.at(all.stacks.at(0).frames.at(0)).name, "[kernel]");
  EXPECT_EQ(all.rate, 19U);
}

// A number of a process that goes to another unit must not take its stacks along.
TEST_F(ProfileBuilderTest, KeepsUnitsApart) {
  const std::array<std::uint64_t, 1> user{address_of_function() + 4};
  add({}, user);
  unit = 8;
  image = {.started = 2, .execs = 0};
  add({}, user);
  add({}, user);
  const auto profiles = builder.take();
  ASSERT_EQ(profiles.size(), 2U);
  EXPECT_EQ(profiles.at({.unit = 7, .pid = ::getpid()}).stacks.at(0).samples, 1U);
  EXPECT_EQ(profiles.at({.unit = 8, .pid = ::getpid()}).stacks.at(0).samples, 2U);
  EXPECT_EQ(builder.take_all().stacks.size(), 0U);
}

/// Objects of Python 3.12 in this process, whose memory is read as that of any other.
struct PythonObjects {
  PythonObjects() {
    put(text, layout.text_length, std::uint64_t{12});
    put(text, layout.text_state, 1U << 2U | 1U << 5U | 1U << 6U);
    std::memcpy(text.data() + layout.text_ascii, "/x/solver.py", 12);
    for (const std::size_t at : {layout.code_name, layout.code_qualified_name, layout.code_file}) {
      put(code, at, address(text));
    }
    put(code, layout.code_first_line, 7U);
  }

  [[nodiscard]] PythonCode sampled() const {
    return {.address = address(code),
            .check = std::uint64_t{7} << 32U | (address(text) & 0xFFFF'FFFFU)};
  }

  template <class Number>
  static void put(std::array<char, 256>& object, std::size_t at, Number value) {
    std::memcpy(object.data() + at, &value, sizeof(value));
  }
  static std::uint64_t address(const std::array<char, 256>& object) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): an address in this process
    return reinterpret_cast<std::uint64_t>(object.data());
  }

  const PythonLayout layout = *known_python_layout(12);
  std::array<char, 256> code{};
  std::array<char, 256> text{};
};

TEST_F(ProfileBuilderTest, PutsPythonIntoTheStack) {
  const PythonObjects objects;
  const PythonProcess process{.interpreters = 1, .layout = objects.layout, .module = "/python"};
  const std::array<std::uint64_t, 2> user{address_of_function() + 4, address_of_function() + 5};
  const std::array<std::uint64_t, 2> stack{0x1000, 0x2000};
  PythonCode gone = objects.sampled();
  gone.check += 1;
  // The leaf runs two functions of Python, of which one cannot be read any more.
  const std::array<PythonSample, 2> python{
      PythonSample{.code = gone},
      PythonSample{.code = objects.sampled(), .entry = true, .stack = 0x1800}};
  Sample sample{.pid = ::getpid(),
                .image = image,
                .comm = "test",
                .end = STACK_END_OUTERMOST,
                .unknown = false,
                .kernel = {},
                .user = user,
                .python = python,
                .stack = stack,
                .python_process = &process};
  builder.add(sample);
  const Profile profile = builder.take_all();
  ASSERT_EQ(profile.stacks.size(), 1U);
  std::vector<Frame> frames;
  for (const std::uint32_t index : profile.stacks[0].frames) {
    frames.push_back(profile.frames.at(index));
  }
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0].name, "pyperf_unknown");
  EXPECT_EQ(frames[0].kind, FrameKind::kPython);
  EXPECT_EQ(frames[1].name, "solver.py /x/solver.py");
  EXPECT_EQ(frames[1].module, "/x/solver.py");
  EXPECT_EQ(frames[1].kind, FrameKind::kPython);
  EXPECT_THAT(frames[2].name, HasSubstr("some_function"));
  EXPECT_EQ(frames[3].name, "test");
  EXPECT_EQ(frames[3].kind, FrameKind::kProcess);
}

TEST_F(ProfileBuilderTest, WithoutPythonFramesTheNativeStackStays) {
  const PythonProcess process{
      .interpreters = 1, .layout = *known_python_layout(12), .module = "/python"};
  const std::array<std::uint64_t, 1> user{address_of_function() + 4};
  builder.add({.pid = ::getpid(),
               .comm = "test",
               .end = STACK_END_OUTERMOST,
               .unknown = false,
               .kernel = {},
               .user = user,
               .python_process = &process});
  const Profile profile = builder.take_all();
  ASSERT_EQ(profile.stacks.size(), 1U);
  EXPECT_EQ(profile.stacks[0].frames.size(), 2U);
}

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
