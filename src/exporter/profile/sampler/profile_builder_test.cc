#include "exporter/profile/sampler/profile_builder.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

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

}  // namespace
}  // namespace ceems::exporter::profile
