#include "exporter/ipmi/power_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::ipmi {
namespace {

using os::CommandResult;
using testing::FakeRunner;

constexpr const char* kGood = "Current Power : 164 Watts\nPower Measurement : Active\n";

std::filesystem::path add_program(const testing::TempDir& directory, const std::string& name) {
  const auto path = directory.write(name, "#!/bin/sh\n");
  ::chmod(path.c_str(), 0755);
  return path;
}

PowerCommandOptions options_for(const std::string& path, bool root = true) {
  return {.program = {.path = path, .arguments = {"dcmi", "power", "reading"}},
          .search_path = "/opt/bin:relative::/usr/bin",
          .may_become_root = root ? [] { return true; } : [] { return false; }};
}

/// Fails unless the command runs as root.
Result<CommandResult> for_root_only(const os::Command& command) {
  if (!command.as_root) {
    return CommandResult{.exit_status = 1, .error_text = "Could not open device\nat all\n"};
  }
  return CommandResult{.output = kGood};
}

TEST(ProgramSearch, FindsTheFirstInstalledKind) {
  const testing::TempDir first;
  const testing::TempDir second;
  const std::string search = first.path().string() + ":" + second.path().string();
  add_program(first, "capmc");
  const auto cray = search_program(search);
  ASSERT_TRUE(cray);
  EXPECT_EQ(cray->path, (first.path() / "capmc").string());
  EXPECT_EQ(cray->arguments, (std::vector<std::string>{"get_system_power", "-w", "600"}));
  EXPECT_EQ(cray->format, Format::kCapmc);

  add_program(first, "ipmitool");
  add_program(second, "ipmi-dcmi");
  const auto free_ipmi = search_program(search);
  ASSERT_TRUE(free_ipmi);
  EXPECT_EQ(free_ipmi->path, (second.path() / "ipmi-dcmi").string());
  EXPECT_EQ(free_ipmi->arguments, (std::vector<std::string>{"--get-system-power-statistics"}));
  EXPECT_EQ(free_ipmi->format, Format::kText);
}

TEST(ProgramOfFlag, IsSplitAtBlanksAndMadeAbsolute) {
  const testing::TempDir directory;
  add_program(directory, "ipmitool");
  const auto found = program_of("ipmitool -I  open dcmi", directory.path().string());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, (directory.path() / "ipmitool").string());
  EXPECT_EQ(found->arguments, (std::vector<std::string>{"-I", "open", "dcmi"}));
  EXPECT_EQ(program_of("/opt/x/capmc get_system_power", "")->format, Format::kCapmc);
  EXPECT_EQ(program_of("/usr/bin/sudo capmc get_system_power", "")->format, Format::kCapmc);
  EXPECT_EQ(program_of("/opt/x/capmc2", "")->format, Format::kText);
  EXPECT_EQ(program_of("./tools/reader", "")->path,
            (std::filesystem::current_path() / "tools/reader").string());
  EXPECT_EQ(program_of("no-such-program-anywhere", "/opt").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(program_of("  ", "/opt").error().code, ErrorCode::kInvalidArgument);
}

TEST(PowerCommand, PrefersPlainExecutionAndRemembersIt) {
  const testing::TempDir directory;
  const auto path = add_program(directory, "ipmitool");
  FakeRunner runner;
  runner.reply("ipmitool", {.output = kGood});
  PowerCommand command(options_for(path), runner);
  for (int i = 0; i < 2; ++i) {
    const auto power = command.read({});
    ASSERT_TRUE(power) << power.error().message;
    EXPECT_EQ(power->current, 164);
  }
  EXPECT_EQ(command.mode(), RunAs::kSelf);
  const auto calls = runner.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_FALSE(calls[1].as_root);
  EXPECT_EQ(calls[1].arguments, (std::vector<std::string>{"dcmi", "power", "reading"}));
  EXPECT_EQ(calls[1].environment,
            (std::map<std::string, std::string>{{"LC_ALL", "C"}, {"PATH", "/opt/bin:/usr/bin"}}));
  EXPECT_EQ(calls[1].timeout, std::chrono::seconds(5));
  EXPECT_EQ(calls[1].max_output_bytes, 1U << 20U);
}

TEST(PowerCommand, BecomesRootIfNeededAndAllowed) {
  const testing::TempDir directory;
  const auto path = add_program(directory, "ipmitool");
  if (::chown(path.c_str(), 0, 0) != 0) {
    GTEST_SKIP() << "needs root for a program that belongs to root";
  }
  FakeRunner runner;
  runner.answer("ipmitool", for_root_only);
  PowerCommand command(options_for(path), runner);
  EXPECT_TRUE(command.read({}));
  EXPECT_EQ(command.mode(), RunAs::kRoot);
  EXPECT_TRUE(command.read({}));
  const auto calls = runner.calls();
  ASSERT_EQ(calls.size(), 3U) << "the mode is remembered";
  EXPECT_TRUE(calls[2].as_root);
  EXPECT_EQ(calls[2].environment.at("PATH"), "/usr/sbin:/usr/bin:/sbin:/bin");

  // It failed, so all modes are tried again.
  runner.reply("ipmitool", {.exit_status = 3});
  EXPECT_FALSE(command.read({}));
  EXPECT_FALSE(command.mode());
  runner.reply("ipmitool", {.output = kGood});
  EXPECT_TRUE(command.read({}));
  EXPECT_EQ(command.mode(), RunAs::kSelf);
}

TEST(PowerCommand, RootRunsNothingThatOthersCanChange) {
  const testing::TempDir directory;
  const auto path = add_program(directory, "ipmitool");
  FakeRunner runner;
  runner.answer("ipmitool", for_root_only);
  ::chmod(path.c_str(), 0777);
  PowerCommand command(options_for(path), runner);
  const auto power = command.read({});
  ASSERT_FALSE(power);
  EXPECT_NE(power.error().message.find("must belong to root"), std::string::npos);
  EXPECT_NE(power.error().message.find("Could not open device"), std::string::npos);
  EXPECT_EQ(power.error().message.find("at all"), std::string::npos) << "one line of the tool";
  for (const auto& call : runner.calls()) {
    EXPECT_FALSE(call.as_root);
  }
}

TEST(PowerCommand, TestModeNeverBecomesRoot) {
  const testing::TempDir directory;
  const auto path = add_program(directory, "ipmitool");
  FakeRunner runner;
  runner.answer("ipmitool", for_root_only);
  auto options = options_for(path);
  options.only_self = true;
  PowerCommand command(options, runner);
  EXPECT_FALSE(command.read({}));
  EXPECT_EQ(runner.calls().size(), 1U);
}

TEST(PowerCommand, RunsTheCommandWithSudo) {
  const testing::TempDir directory;
  const auto sudo = add_program(directory, "sudo");
  FakeRunner runner;
  runner.reply("ipmitool", {.exit_status = 1});
  runner.reply("sudo", {.output = kGood});
  auto options = options_for("/opt/ipmitool", /*root=*/false);
  options.system_path = directory.path().string();
  PowerCommand command(options, runner);
  EXPECT_TRUE(command.read({}));
  EXPECT_EQ(command.mode(), RunAs::kSudo);
  EXPECT_EQ(runner.calls().back().arguments,
            (std::vector<std::string>{"-n", "--", "/opt/ipmitool", "dcmi", "power", "reading"}));
  EXPECT_EQ(runner.calls().back().path, sudo.string());
  EXPECT_EQ(runner.calls().back().environment.at("PATH"), directory.path().string());
  EXPECT_FALSE(runner.calls().back().as_root);
}

TEST(PowerCommand, FailsInOneLine) {
  FakeRunner runner;
  auto options = options_for("/opt/ipmitool");
  options.only_self = true;
  PowerCommand command(options, runner);
  const auto message = [&] {
    const auto power = command.read({});
    return power ? "" : power.error().message;
  };
  EXPECT_NE(message().find("/opt/ipmitool"), std::string::npos) << "no such program";
  runner.refuse("ipmitool", {ErrorCode::kTimeout, "still running after 5000 ms"});
  EXPECT_EQ(message(), "as own user: run /opt/ipmitool: still running after 5000 ms");
  runner.reply("ipmitool", {.output = "garbage\nin many\nlines\n"});
  EXPECT_EQ(message(),
            "as own user: /opt/ipmitool: the output has no line with the state of power "
            "measurement");
  runner.reply("ipmitool", {.exit_status = 1, .output = "\n\nfirst\x1b[1m\nsecond"});
  EXPECT_EQ(message(), "as own user: /opt/ipmitool exited with status 1: first\\x1b[1m");
}

}  // namespace
}  // namespace ceems::exporter::ipmi
