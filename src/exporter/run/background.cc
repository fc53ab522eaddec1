#include "exporter/run/background.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/strings.h"
#include "exporter/run/child.h"
#include "exporter/run/directory.h"
#include "exporter/run/fanout.h"
#include "exporter/run/mark_socket.h"
#include "exporter/run/process_tree.h"
#include "exporter/run/report/report.h"
#include "host/read_file.h"
#include "os/file.h"

namespace ceems::exporter::run {
namespace {

constexpr const char* kDirectoryVariable = "CEEMS_RUN_DIR";
constexpr std::string_view kReportFile = "report.json";
constexpr auto kReportPatience = std::chrono::seconds(90);  // the agents have a minute

/// The process that began the session of this one: the script of the job, or a login shell.
class Script {
 public:
  explicit Script(std::string proc) : proc_(std::move(proc)), pid_(::getsid(0)), start_(start()) {}
  /// True if it cannot be seen.
  [[nodiscard]] bool lives() const { return !start_ || start() == start_; }

 private:
  [[nodiscard]] std::optional<std::uint64_t> start() const {
    const auto text = host::read_file(fmt::format("{}/{}/stat", proc_, pid_));
    const auto stat = text ? parse_process_stat(*text) : std::nullopt;
    return stat && !stat->ended ? std::optional(stat->start_ticks) : std::nullopt;
  }
  std::string proc_;
  pid_t pid_;
  std::optional<std::uint64_t> start_;
};

/// The child: measures until it is asked to stop. Writes the directory to `ready`.
void measure(const Options& options,
             Job job,
             std::unique_ptr<MarkSocket> marks,
             const Script& script,
             UniqueFd ready) {
  ::setsid();
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(nothing.get(), STDOUT_FILENO);  // the caller may wait for its end
  prepare_signals();
  Session session(options, std::move(job), "job", std::move(marks), real_clock().now_ms());
  session.begin();
  const std::string directory = session.measured_directory();
  static_cast<void>(os::write_all(ready.get(), directory));
  ready.reset();
  const sigset_t set = passed_signals();
  bool stopped = directory.empty();
  while (!stopped && !session.asked_to_stop() && script.lives()) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 200'000'000};
    stopped = ::sigtimedwait(&set, nullptr, &pause) > 0;
    session.reap([](int /*pid*/, int /*status*/) {});
    session.announce();
  }
  session.end(std::nullopt);
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 1024> buffer{};
  for (ssize_t size = 1; size != 0;) {
    size = ::read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno != EINTR) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }
  return text;
}

}  // namespace

Result<> start_in_background(const Options& options, Job job) {
  if (!job.managed()) {
    return fail(ErrorCode::kInvalidArgument,
                "this is not a job of SLURM, OpenPBS or LSF; use 'ceems_exporter run -- COMMAND'");
  }
  const Script script(options.proc);
  auto marks = open_marks(options, job, {});
  const std::string socket = marks != nullptr ? marks->path() : std::string();
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(errno_error(errno, "pipe"));
  }
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();  // there is no other thread yet
  if (child < 0) {
    return fail(errno_error(errno, "fork"));
  }
  if (child == 0) {
    measure(options, std::move(job), std::move(marks), script, std::move(write_end));
    return {};
  }
  write_end.reset();
  if (marks != nullptr) {
    marks->leave_to_child();
  }
  const std::string directory = read_all(read_end.get());
  if (directory.empty()) {
    return fail(ErrorCode::kUnavailable, "nothing is measured");
  }
  fmt::print("export {}={}\n", kDirectoryVariable, shell_quoted(directory));
  if (!socket.empty()) {
    fmt::print("export {}={}\n", kMarkVariable, shell_quoted(socket));
  }
  return {};
}

Result<> stop_in_background(const Options& options, const Job& job) {
  const char* const variable = std::getenv(kDirectoryVariable);
  const std::string path = !options.directory.empty() ? options.directory
                           : variable != nullptr      ? std::string(variable)
                                                      : default_directory(options, job);
  CEEMS_TRY(directory, DataDirectory::open(path));
  if (!directory.has(std::string(kFactsFile))) {
    return fail(ErrorCode::kNotFound, "{}: not the directory of a run", path);
  }
  if (directory.has(std::string(kReportFile))) {
    return {};
  }
  CEEMS_TRY(directory.replace(std::string(kStopFile), ""));
  const auto end = std::chrono::steady_clock::now() + kReportPatience;
  while (!directory.has(std::string(kReportFile))) {
    if (std::chrono::steady_clock::now() >= end) {
      return fail(ErrorCode::kTimeout, "{}: no report yet; 'ceems_exporter run --merge' makes one",
                  path);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return {};
}

}  // namespace ceems::exporter::run
