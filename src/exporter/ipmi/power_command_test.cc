#include "exporter/ipmi/power_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <fmt/format.h>
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

std::string watts(const Result<Power>& power) {
  return power ? fmt::format("{} {} {} {}", power->current, power->minimum, power->maximum,
                             power->average)
               : std::string(to_string(power.error().code)) + ": " + power.error().message;
}
std::string text(std::string_view output) {
  return watts(parse_power_output(Format::kText, output));
}
std::string capmc(std::string_view output) {
  return watts(parse_power_output(Format::kCapmc, output));
}

constexpr std::string_view kInactive = "unavailable: power measurement is not active";
constexpr std::string_view kNoState =
    "parse: the output has no line with the state of power measurement";

TEST(PowerOutput, OfIpmiDcmi) {
  EXPECT_EQ(text("Current Power                        : 164 Watts\n"
                 "Minimum Power over sampling duration : 48 watts\n"
                 "Maximum Power over sampling duration : 361 watts\n"
                 "Average Power over sampling duration : 157 watts\n"
                 "Time Stamp                           : 02/07/2026 - 10:11:12\n"
                 "Statistics reporting time period     : 1000 milliseconds\n"
                 "Power Measurement                    : Active\n"),
            "164 48 361 157");
  for (const char* none : {"65535", "32767", "4294967295"}) {
    EXPECT_EQ(parse_power_output(Format::kText, fmt::format("Current Power : {} Watts\n"
                                                            "Power Measurement : Active\n",
                                                            none))
                  ->current,
              0)
        << none;
  }
  EXPECT_EQ(text("Current Power : 164 Watts\nPower Measurement : Not Available\n"), kInactive);
}

TEST(PowerOutput, OfIpmitool) {
  const std::string reading =
      "\n    Instantaneous power reading:                   321 Watts\n"
      "    Minimum during sampling period:                100 Watts\n"
      "    Maximum during sampling period:                500 Watts\n"
      "    Average power reading over sample period:      300 Watts\n"
      "    IPMI timestamp:                           Thu Jan  1 00:00:00 1970\n"
      "    Sampling period:                          00001000 Milliseconds\n"
      "    Power reading state is:                   ";
  EXPECT_EQ(text(reading + "activated\n\n\n"), "321 100 500 300");
  EXPECT_EQ(text(reading + "deactivated\n\n\n"), kInactive);
}

TEST(PowerOutput, OfIpmiutil) {
  const std::string reading =
      "ipmiutil dcmi ver 3.17\r\n"
      "  Current Power:                   52 Watts\r\n"
      "  Min Power over sample duration:  7 Watts\r\n"
      "  Max Power over sample duration:  298 Watts\r\n"
      "  Avg Power over sample duration:  51 Watts\r\n"
      "  Power reading state is:          ";
  EXPECT_EQ(text(reading + "active\r\n"), "52 7 298 51");
  EXPECT_EQ(text(reading + "not active\r\n"), kInactive);
}

TEST(PowerOutput, TheFirstLineThatMatchesCounts) {
  EXPECT_EQ(text("Current Power : none\nCurrent Power:12.5Watts\nCurrent Power: 13 Watts\n"
                 "Power Measurement: unknown\nPower Measurement : Active\n"
                 "Power Measurement : Not Available"),
            "12.5 0 0 0");
}

TEST(PowerOutput, MissingAndBrokenQuantitiesAreZero) {
  EXPECT_EQ(text("Power Measurement : Active"), "0 0 0 0");
  EXPECT_EQ(text("Current Power : 1.2.3 Watts\nMinimum during sampling period: 5 Volts\n"
                 "Maximum during sampling period: -5 Watts\n"
                 "Average power reading over sample period: " +
                 std::string(400, '9') + " Watts\nPower Measurement : Active"),
            "0 0 0 0");
  EXPECT_EQ(text("Current Power : 1000000001 Watts\nPower Measurement : Active"), "0 0 0 0");
}

TEST(PowerOutput, WithoutAStateIsInvalid) {
  EXPECT_EQ(text(""), kNoState);
  EXPECT_EQ(text("Current Power : 164 Watts\n"), kNoState);
  EXPECT_EQ(text("Current Power : 164 Watts\nXPower Measurement : Active\n"), kNoState);
  EXPECT_EQ(text("Could not open device at /dev/ipmi0\n"), kNoState);
}

TEST(PowerOutput, ThatIsNotText) {
  EXPECT_EQ(text("Power Measurement : Active\n\xff\xfe"), "parse: the output is not text");
  EXPECT_EQ(text(std::string_view("Power Measurement : Active\n\0", 28)),
            "parse: the output is not text");
}

TEST(PowerOutput, OfCapmcUsesTheAverageAsCurrentPower) {
  EXPECT_EQ(capmc(R"({"start_time":"x","avg":4211,"min":4100,"max":4400,"e":0,"err_msg":""})"),
            "4211 4100 4400 4211");
  EXPECT_EQ(capmc(R"({"current":10,"min":1.5,"avg":0,"max":"many"})"), "10 1.5 0 0");
  EXPECT_EQ(capmc("{}"), "0 0 0 0");
  EXPECT_EQ(capmc(R"({"current":-4,"max":1e300})"), "0 0 0 0");
}

TEST(PowerOutput, OfCapmcWithAnError) {
  EXPECT_EQ(capmc(R"({"e":22,"err_msg":"Invalid\narguments","avg":5})"),
            "unavailable: error 22: Invalid\\x0aarguments");
  EXPECT_EQ(capmc(R"({"e":22,"avg":5})"), "5 0 0 5")
      << "as in the reference: without a message it is not an error";
}

TEST(PowerOutput, OfCapmcThatIsNotJson) {
  for (const char* broken :
       {"", "[]", "5", "{\"avg\":", "{\"avg\":5}}", "Current Power : 1 Watts"}) {
    EXPECT_EQ(capmc(broken), "parse: expected one JSON object") << broken;
  }
  EXPECT_EQ(capmc(std::string(100'000, '[')), "parse: expected one JSON object");
}

}  // namespace

}  // namespace ceems::exporter::ipmi
