#include "testing/fake_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

os::Command command(const std::string& path, std::vector<std::string> arguments = {}) {
  return {.path = path, .arguments = std::move(arguments), .environment = {}};
}

TEST(FakeRunner, AnswersByProgramNameAndRecordsItsCommands) {
  FakeRunner runner;
  runner.reply("sacct", {.exit_status = 1, .output = "a|b\n", .error_text = "oops"});
  const auto result = runner.run(command("/opt/slurm/bin/sacct", {"-n"}));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->exit_status, 1);
  EXPECT_EQ(result->output, "a|b\n");
  EXPECT_EQ(result->error_text, "oops");
  ASSERT_EQ(runner.calls().size(), 1U);
  EXPECT_EQ(runner.calls()[0].path, "/opt/slurm/bin/sacct");
  EXPECT_THAT(runner.calls()[0].arguments, ElementsAre("-n"));
}

TEST(FakeRunner, FailsAsTheRealOneDoes) {
  FakeRunner runner;
  EXPECT_EQ(runner.run(command("/x/none")).error().message,
            "run /x/none: No such file or directory");
  runner.refuse("slow", {ErrorCode::kTimeout, "still running after 5000 ms"});
  const auto slow = runner.run(command("/x/slow"));
  EXPECT_EQ(slow.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(slow.error().message, "run /x/slow: still running after 5000 ms");
  runner.reply("big", {.output = "12345"});
  os::Command big = command("/x/big");
  big.max_output_bytes = 4;
  EXPECT_EQ(runner.run(big).error().message, "run /x/big: output exceeds 4 bytes");
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(runner.run(big, stopped.get_token()).error().message, "run /x/big: stopped");
}

TEST(FakeRunner, PassesOnLines) {
  FakeRunner runner;
  runner.reply("list", {.output = "a\n\nlonger"});
  std::vector<std::string> lines;
  const auto take = [&](std::string_view line) {
    lines.emplace_back(line);
    return Result<>();
  };
  const auto result = runner.run_lines(command("/bin/list"), take);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(lines, ElementsAre("a", "", "longer"));
  EXPECT_THAT(result->output, IsEmpty());
  os::Command narrow = command("/bin/list");
  narrow.max_output_bytes = 5;
  EXPECT_EQ(runner.run_lines(narrow, take).error().message,
            "run /bin/list: a line of output exceeds 5 bytes");
  const auto refused = runner.run_lines(command("/bin/list"), [](std::string_view) {
    return Result<>(fail(ErrorCode::kParse, "line 1: bad"));
  });
  EXPECT_EQ(refused.error().message, "run /bin/list: line 1: bad");
}

}  // namespace
}  // namespace ceems::testing
