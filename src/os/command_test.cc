#include "os/command.h"

#include <sys/stat.h>

#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::os {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Command shell(const std::string& script, milliseconds timeout = milliseconds(10000)) {
  return {.path = "/bin/sh",
          .arguments = {"-c", script},
          .environment = {{"PATH", "/usr/bin:/bin"}},
          .timeout = timeout};
}

TEST(Command, GivesOutputErrorsAndStatus) {
  const auto result = real_runner().run(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->error_text, "err\n");
  EXPECT_EQ(result->exit_status, 3);
  EXPECT_EQ(real_runner().run(shell("kill -9 $$"))->exit_status, 128 + 9);
}

TEST(Command, GetsExactlyTheGivenEnvironmentAndNoDescriptors) {
  ::setenv("CEEMS_TEST_SECRET", "x", 1);
  Command command{
      .path = "/usr/bin/env", .arguments = {}, .environment = {{"A", "1"}, {"B", "2 3"}}};
  EXPECT_EQ(real_runner().run(command)->output, "A=1\nB=2 3\n");
  ::unsetenv("CEEMS_TEST_SECRET");
  EXPECT_EQ(real_runner().run(shell("ls /proc/self/fd | wc -l; cat"))->output,
            "4\n");  // ls itself opens one
}

TEST(Command, EndsAtTheDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = real_runner().run(shell("sleep 100 & sleep 100", milliseconds(200)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(result.error().message, "run /bin/sh: no end within 200 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(real_runner().run(shell("exec >&- 2>&-; sleep 100", milliseconds(200))).error().code,
            ErrorCode::kTimeout);
}

TEST(Command, DoesNotWaitForAGrandchildThatKeepsThePipe) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = real_runner().run(shell("sleep 100 & echo done"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Command, EndsWhatPrintsTooMuch) {
  Command command = shell("exec head -c 1000000000 /dev/zero");
  command.max_output_bytes = 1U << 20U;
  EXPECT_EQ(real_runner().run(command).error().message,
            "run /bin/sh: more than 1048576 bytes of output");
  EXPECT_EQ(
      real_runner().run_lines(command, [](std::string_view) { return Result<>(); }).error().message,
      "run /bin/sh: a line of more than 1048576 bytes");
}

TEST(Command, HandsLinesOverAsTheyCome) {
  std::vector<std::string> lines;
  const auto result =
      real_runner().run_lines(shell("printf 'a\\n\\nb'"), [&](std::string_view line) {
        lines.emplace_back(line);
        return Result<>();
      });
  ASSERT_TRUE(result);
  EXPECT_THAT(lines, ElementsAre("a", "", "b"));
  const auto stopped = real_runner().run_lines(shell("yes"), [&](std::string_view) {
    return Result<>(fail(ErrorCode::kParse, "line 1: not a number"));
  });
  EXPECT_EQ(stopped.error().message, "run /bin/sh: line 1: not a number");
}

TEST(Command, SaysWhyItCannotStart) {
  const ceems::testing::TempDir dir;
  const std::string file = dir.write("plain", "x").string();
  ::chmod(file.c_str(), 0600);
  const auto message = [](const std::string& path) {
    return real_runner().run({.path = path, .arguments = {}, .environment = {}}).error().message;
  };
  EXPECT_EQ(message("/nonexistent/x"), "run /nonexistent/x: No such file or directory");
  EXPECT_EQ(message(file), "run " + file + ": Permission denied");
  EXPECT_EQ(message(dir.path().string()), "run " + dir.path().string() + ": Permission denied");
  EXPECT_EQ(message("sh"), "run sh: not an absolute path");
}

TEST(Command, StopsWhenAsked) {
  std::stop_source source;
  std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(100));
    source.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto result = real_runner().run(shell("sleep 100"), source.get_token());
  EXPECT_EQ(result.error().message, "run /bin/sh: stopped");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(FindProgram, SearchesAbsoluteDirectoriesOnly) {
  EXPECT_EQ(find_program("sh", "relative::/nonexistent:/bin").value(), "/bin/sh");
  EXPECT_EQ(find_program("sh", "").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ceems::os
