#include "os/command.h"

#include <signal.h>
#include <sys/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/strings.h"
#include "os/privileges.h"
#include "testing/child.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::os {
namespace {

using ceems::testing::eventually;
using ceems::testing::kPatience;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

Command shell(const std::string& script, milliseconds timeout = 2 * kPatience) {
  return {.path = "/bin/sh",
          .arguments = {"-c", script},
          .environment = {{"PATH", "/usr/bin:/bin"}},
          .timeout = timeout};
}

TEST(Command, ReturnsOutputErrorsAndStatus) {
  const auto result = real_runner().run(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->error_text, "err\n");
  EXPECT_EQ(result->exit_status, 3);
  EXPECT_EQ(real_runner().run(shell("kill -9 $$"))->exit_status, 128 + 9);
}

TEST(Command, GetsExactlyTheGivenEnvironmentAndNoDescriptors) {
  Command command{
      .path = "/usr/bin/env", .arguments = {}, .environment = {{"A", "1"}, {"B", "2 3"}}};
  EXPECT_EQ(real_runner().run(command)->output, "A=1\nB=2 3\n");
  const UniqueFd inheritable(::dup(2));  // no FD_CLOEXEC
  EXPECT_EQ(real_runner().run(shell("ls /proc/self/fd | wc -l; cat"))->output,
            "4\n");  // ls itself opens the fourth
}

TEST(Command, EndsAtTheDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  std::string message = "not started";
  // A busy machine may not even start it in time.
  for (auto time = milliseconds(200); message.find("not started") != std::string::npos; time *= 2) {
    const auto result = real_runner().run(shell("sleep 1000 & sleep 1000", time));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
    message = result.error().message;
    EXPECT_THAT(message, ::testing::EndsWith(" after " + std::to_string(time.count()) + " ms"));
    ASSERT_LT(std::chrono::steady_clock::now() - begin, kPatience);
  }
  EXPECT_THAT(message, ::testing::StartsWith("run /bin/sh: still running after "));
  EXPECT_EQ(real_runner().run(shell("exec >&- 2>&-; sleep 1000", milliseconds(200))).error().code,
            ErrorCode::kTimeout);
}

TEST(Command, DoesNotWaitForAGrandchildThatKeepsThePipe) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = real_runner().run(shell("sleep 1000 & echo done"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
}

TEST(Command, DoesNotWaitForAProcessOutsideItsGroupThatKeepsThePipe) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = real_runner().run(shell("setsid sleep 1000 & sleep 0.05; echo $!"));
  ASSERT_TRUE(result) << result.error().message;
  const auto pid = parse_int<pid_t>(trim(result->output));
  ASSERT_TRUE(pid) << result->output;
  ::kill(*pid, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
}

/// Whether the process is gone, or a zombie that init has not reaped yet.
bool has_ended(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string stat;
  std::getline(in, stat);
  return stat.empty() || stat.find(") Z ") != std::string::npos;
}

TEST(Command, KillsWhatItLeavesBehind) {
  for (const char* const script : {"sleep 1000 & echo $!; exit 0", "sleep 1000 & echo $!; wait"}) {
    std::string pid;
    std::stop_source stop;
    const auto remember = [&](std::string_view line) {
      pid = line;
      stop.request_stop();  // ends the second script
      return Result<>();
    };
    const auto result = real_runner().run_lines(shell(script), remember, stop.get_token());
    ASSERT_NE(pid, "") << script << ": " << (result ? "" : result.error().message);
    EXPECT_TRUE(eventually([&] { return has_ended(pid); })) << script;
  }
}

TEST(Command, TruncatesErrorsAndContinues) {
  const auto result = real_runner().run(shell("head -c 300000 /dev/zero >&2; echo out"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->error_text.size(), 65536U);
  EXPECT_EQ(result->output, "out\n");
}

TEST(Command, ReturnsAllOfALongOutput) {
  const auto result = real_runner().run(shell("head -c 3000000 /dev/zero"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output.size(), 3'000'000U);
}

TEST(Command, EndsAProcessThatPrintsTooMuch) {
  Command command = shell("exec head -c 1000000000 /dev/zero");
  command.max_output_bytes = 1U << 20U;
  EXPECT_EQ(real_runner().run(command).error().message,
            "run /bin/sh: output exceeds 1048576 bytes");
  EXPECT_EQ(
      real_runner().run_lines(command, [](std::string_view) { return Result<>(); }).error().message,
      "run /bin/sh: a line of output exceeds 1048576 bytes");
}

TEST(Command, PassesOnLinesAsTheyArrive) {
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

TEST(Command, CutsLinesThatAreTooLong) {
  Command command = shell("printf 'abcd\\nabcde\\n'; head -c 300000 /dev/zero; printf '\\n\\nx'");
  command.max_output_bytes = 4;
  command.cut_lines = true;
  std::vector<std::string> lines;
  const auto result = real_runner().run_lines(command, [&](std::string_view line) {
    lines.emplace_back(line);
    return Result<>();
  });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(lines, ElementsAre("abcd", "abcd", std::string(4, '\0'), "", "x"));
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
  const std::string script = dir.write("script", "no program").string();
  ::chmod(script.c_str(), 0755);
  EXPECT_EQ(message(script), "run " + script + ": Exec format error");
  EXPECT_EQ(
      real_runner()
          .run({.path = "/bin/echo", .arguments = {std::string("a\0b", 3)}, .environment = {}})
          .error()
          .message,
      "run /bin/echo: an argument contains a NUL byte");
}

TEST(Command, RunsManyAtOnce) {
  constexpr int kThreads = 8;
  std::array<bool, kThreads> right{};
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&right, i] {
      right.at(i) = true;
      for (int turn = 0; turn < 5; ++turn) {
        const std::string text = std::to_string(i) + "." + std::to_string(turn);
        // A pipe end that leaked into another command would keep this one waiting.
        const auto result =
            real_runner().run(shell("sleep 0.0" + std::to_string(i) + "; echo " + text));
        right.at(i) = right.at(i) && result && result->output == text + "\n";
      }
    });
  }
  threads.clear();
  EXPECT_THAT(right, ::testing::Each(true));
}

TEST(Command, StopsWhenAsked) {
  const ceems::testing::TempDir dir;
  const std::string begun = dir.path() / "begun";
  std::stop_source source;
  std::jthread later([&] {
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(begun); }));
    source.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto result = real_runner().run(shell(": >" + begun + "; sleep 1000"), source.get_token());
  EXPECT_EQ(result.error().message, "run /bin/sh: stopped");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
}

TEST(Command, RunsAsRootFromAnUnprivilegedProgramAndCanEndIt) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to drop its privileges";
  }
  const auto body = [] {
    if (!drop_privileges("nobody", {CAP_SETUID, CAP_SETGID})) {
      return 1;
    }
    Command command = shell("echo $(id -u) $(id -g) $(id -G)");
    if (real_runner().run(command)->output == "0 0 0\n") {
      return 2;
    }
    command.as_root = true;
    const auto root = real_runner().run(command);
    if (!root || root->output != "0 0 0\n") {
      return 3;
    }
    // An ordinary kill(2) by this user would be refused.
    Command slow = shell("sleep 1000 & sleep 1000", milliseconds(200));
    slow.as_root = true;
    const auto begin = std::chrono::steady_clock::now();
    if (real_runner().run(slow).error().code != ErrorCode::kTimeout) {
      return 4;
    }
    if (std::chrono::steady_clock::now() - begin > kPatience) {
      return 5;
    }
    return ::getuid() != 0 && ::setuid(0) != 0 ? 0 : 6;
  };
  EXPECT_EQ(testing::in_child(body), 0);
}

TEST(Command, ReportsThatItMayNotRunAsRoot) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to drop its privileges";
  }
  const auto body = [] {
    if (!drop_privileges("nobody", {})) {
      return 1;
    }
    Command command = shell("id -u");
    command.as_root = true;
    const auto result = real_runner().run(command);
    return !result && result.error().code == ErrorCode::kPermissionDenied &&
                   result.error().message == "run /bin/sh as root: Operation not permitted"
               ? 0
               : 2;
  };
  EXPECT_EQ(testing::in_child(body), 0);
}

TEST(Command, RunsAsRootOnlyWhatOnlyRootCanChange) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed for programs that belong to root";
  }
  const testing::TempDir directory;
  const std::string program = directory.write("bin/tool", "#!/bin/sh\necho ran\n");
  const std::string link = directory.path() / "link";
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  ASSERT_EQ(::symlink(program.c_str(), link.c_str()), 0);
  const auto refusal = [](const std::string& path) {
    const auto result = real_runner().run(
        {.path = path, .arguments = {}, .environment = {}, .as_root = true, .only_trusted = true});
    return result ? result->output : result.error().message;
  };
  EXPECT_EQ(refusal(program), "ran\n");
  EXPECT_EQ(refusal(link), "ran\n");

  const std::string above = directory.path() / "bin";
  ASSERT_EQ(::chmod(above.c_str(), 0777), 0);
  EXPECT_EQ(refusal(program), program + " is not run as root: " + above +
                                  " must belong to root and be writable by root alone");
  ASSERT_EQ(::chmod(above.c_str(), 0755), 0);
  ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
  for (const std::string& path : {program, link}) {
    EXPECT_EQ(refusal(path), path +
                                 " is not run as root: it must belong to root and be writable by "
                                 "root alone");
  }
  EXPECT_EQ(trusted_program(above + "/none").error().code, ErrorCode::kNotFound);
}

TEST(Command, WorksInAProgramStartedWithoutStdio) {
  const auto body = [] {
    ::close(0);
    ::close(1);
    ::close(2);
    const auto result = real_runner().run(shell("cat; echo out; echo err >&2"));
    return result && result->output == "out\n" && result->error_text == "err\n" ? 0 : 1;
  };
  EXPECT_EQ(testing::in_child(body), 0);
}

TEST(FindProgram, SearchesAbsoluteDirectoriesOnly) {
  EXPECT_EQ(find_program("sh", "relative::/nonexistent:/bin").value(), "/bin/sh");
  EXPECT_EQ(find_program("sh", "").error().message, "program sh not found in ");
  EXPECT_EQ(find_program("../bin/sh", "/usr").error().message,
            "../bin/sh: expected a name without a directory");
  EXPECT_EQ(find_program("", "/bin").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ceems::os
