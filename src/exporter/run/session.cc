#include "exporter/run/session.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/strings.h"
#include "exporter/run/child.h"
#include "exporter/run/report/report.h"
#include "os/file.h"

namespace ceems::exporter::run {
namespace {

constexpr std::string_view kAgentLog = "agents.log";
constexpr auto kAgentPatience = std::chrono::seconds(60);
constexpr auto kAgentTerm = std::chrono::seconds(10);  // then they are asked by a signal, too

/// Whether anyone reads stderr does not matter, so errors are ignored.
void say(std::string_view line) {
  static_cast<void>(os::write_all(STDERR_FILENO, fmt::format("[ceems] {}\n", line)));
}

std::string name_of_run(const Options& options, const Job& job, const std::string& program) {
  constexpr std::size_t kMaxName = 256;
  const std::string& name = !options.name.empty() ? options.name
                            : !job.name.empty()   ? job.name
                                                  : program;
  return name.substr(0, kMaxName);
}

std::string duration_of(std::chrono::milliseconds time) {
  return fmt::format("{} s", std::chrono::duration<double>(time).count());
}

MeasurementOptions measurement_options(const Options& options,
                                       const Job& job,
                                       const std::string& name,
                                       const MarkSocket* marks,
                                       std::int64_t begin_ms) {
  return {.paths = {.proc = options.proc, .sys = options.sys, .cgroup = options.cgroup},
          .job = job,
          .name = name,
          .begin_ms = begin_ms,
          .interval = options.period,
          .max_bytes = static_cast<std::uint64_t>(options.max_megabytes) * 1'000'000,
          .marks = marks != nullptr ? marks->ledger() : nullptr};
}

}  // namespace

std::string default_directory(const Options& options, const Job& job) {
  const bool named = !job.managed() && !options.name.empty();
  return "./ceems-" + file_name_of(named ? options.name : job.id);
}

Session::Session(Options options,
                 Job job,
                 const std::string& program,
                 std::unique_ptr<MarkSocket> marks,
                 std::int64_t begin_ms)
    : options_(std::move(options)),
      job_(std::move(job)),
      name_(name_of_run(options_, job_, program)),
      begin_ms_(begin_ms),
      marks_(std::move(marks)) {
  if (marks_ != nullptr) {
    marks_->start();
  }
}

Session::~Session() = default;

void Session::begin() {
  try {
    if (const auto begun = try_begin(); !begun) {
      say(fmt::format("not measuring: {}", printable(begun.error().message, 1024)));
    }
  } catch (const std::exception& exception) {
    say(fmt::format("not measuring: {}", exception.what()));
    measurement_.reset();
  }
}

Result<> Session::try_begin() {
  const std::string path =
      options_.directory.empty() ? default_directory(options_, job_) : options_.directory;
  CEEMS_TRY(directory, DataDirectory::create(path));
  directory_ = std::make_unique<DataDirectory>(std::move(directory));
  CEEMS_TRY(directory_->replace(
      std::string(kFactsFile),
      to_json(
          RunFacts{.job = job_.id, .name = name_, .cluster = job_.cluster, .nodes = job_.nodes})));
  if (job_.on_node) {
    CEEMS_TRY(made, Measurement::create(
                        measurement_options(options_, job_, name_, marks_.get(), begin_ms_),
                        *directory_, real_clock()));
    measurement_ = std::move(made);
  }
  if (const auto started = start_agents(); !started) {
    say(fmt::format("measuring this node only: {}", printable(started.error().message, 1024)));
  }
  if (measurement_ == nullptr && !fanned_out_) {
    return fail(ErrorCode::kUnavailable, "this machine is not a node of the job");
  }
  if (measurement_ != nullptr) {
    measurement_->start();
  }
  return {};
}

std::string Session::measured_directory() const {
  std::error_code error;
  const bool measuring = measurement_ != nullptr || fanned_out_;
  return directory_ == nullptr || !measuring
             ? std::string()
             : std::filesystem::absolute(directory_->path(), error).lexically_normal().string();
}

Result<> Session::start_agents() {
  CEEMS_TRY(fanout, choose_fanout(options_.fanout, job_));
  if (fanout == Fanout::kNone) {
    return {};
  }
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto directory = std::filesystem::canonical(directory_->path(), error);
  if (error) {
    return fail(ErrorCode::kUnavailable, "{}", error.message());
  }
  std::vector<std::string> agent{program.string(),
                                 "run",
                                 "--agent=" + directory.string(),
                                 "--interval=" + options_.interval,
                                 fmt::format("--max-size={}", options_.max_megabytes),
                                 "--manager=" + job_.manager,
                                 "--job=" + job_.id,
                                 "--name=" + name_};
  if (marks_ != nullptr) {
    agent.push_back("--mark-socket=" + marks_->path());
  }
  if (job_.on_node) {
    agent.push_back("--skip-node=" + job_.node);
  }
  CEEMS_TRY(log, directory_->create_file(std::string(kAgentLog)));
  for (const auto& words : fanout_commands(fanout, job_, agent)) {
    CEEMS_TRY(pid, start_helper(words, log.get()));
    fanned_out_ = true;
    agents_.push_back(pid);
    if (measurement_ != nullptr) {
      measurement_->processes().leave_out(pid);
    }
  }
  return {};
}

void Session::announce() {
  const bool measuring = measurement_ != nullptr || fanned_out_;
  if (directory_ == nullptr || !measuring || std::exchange(announced_, true)) {
    return;
  }
  const std::size_t nodes = !fanned_out_ ? 1 : std::max<std::size_t>(job_.node_count, 1);
  say(fmt::format("measuring {} every {}, energy: {}; data: {}/",
                  nodes == 1 ? std::string("1 node") : fmt::format("{} nodes", nodes),
                  duration_of(options_.period),
                  measurement_ != nullptr ? measurement_->energy() : "as each node can measure it",
                  printable(directory_->path(), 1024)));
}

void Session::reap(const std::function<void(int pid, int status)>& ended) {
  const auto note = [&](int pid, int status) {
    std::erase(agents_, pid);
    ended(pid, status);
  };
  if (measurement_ != nullptr) {
    measurement_->processes().reap(note);
    return;
  }
  int status = 0;
  for (pid_t pid = ::waitpid(-1, &status, WNOHANG); pid > 0;
       pid = ::waitpid(-1, &status, WNOHANG)) {
    note(pid, status);
  }
}

void Session::stop_agents() {
  if (!fanned_out_) {
    return;
  }
  if (const auto made = directory_->replace(std::string(kStopFile), ""); !made) {
    say(printable(made.error().message, 1024));
  }
  sigset_t set = passed_signals();
  ::sigaddset(&set, SIGCHLD);
  const auto begin = std::chrono::steady_clock::now();
  bool asked = false;
  while (true) {
    reap([](int /*pid*/, int /*status*/) {});
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (agents_.empty() || waited >= kAgentPatience) {
      break;
    }
    if (waited >= kAgentTerm && !std::exchange(asked, true)) {
      std::ranges::for_each(agents_, [](int pid) { ::kill(pid, SIGTERM); });
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = 200'000'000};
    if (const int number = ::sigtimedwait(&set, nullptr, &pause); number > 0 && number != SIGCHLD) {
      break;  // the job is being ended
    }
  }
  std::ranges::for_each(agents_, [](int pid) { ::kill(-pid, SIGKILL); });
}

Result<> Session::report() {
  CEEMS_TRY(read, read_report(*directory_));
  for (const std::string& line : summary_lines(read)) {
    say(line);
  }
  CEEMS_TRY(write_reports(*directory_, read));
  say(fmt::format("report: {}/report.html", printable(directory_->path(), 1024)));
  return {};
}

void Session::end(std::optional<int> exit_status) {
  if (directory_ == nullptr) {
    return;
  }
  try {
    announce();
    if (marks_ != nullptr) {
      marks_->finish();
    }
    if (measurement_ != nullptr && !measurement_->finish(exit_status)) {
      say(fmt::format("the file system of {} does not answer; some data is lost",
                      printable(directory_->path(), 1024)));
      std::ranges::for_each(agents_, [](int pid) { ::kill(-pid, SIGKILL); });
      ::_exit(exit_status.value_or(0));
    }
    stop_agents();
    if (const std::string failure =
            measurement_ != nullptr ? measurement_->failure() : std::string();
        !failure.empty()) {
      say(fmt::format("some data could not be written: {}", printable(failure, 1024)));
    }
    if (const auto done = options_.report ? report() : Result<>(); !done) {
      say(fmt::format("no report: {}", printable(done.error().message, 1024)));
    }
  } catch (const std::exception& exception) {
    say(fmt::format("no report: {}", exception.what()));
  }
}

std::unique_ptr<MarkSocket> open_marks(const Options& options,
                                       const Job& job,
                                       const std::string& path) {
  if (!options.marks) {
    return nullptr;
  }
  const char* const temporary = std::getenv("TMPDIR");
  auto opened = MarkSocket::create(
      {.paths = {.proc = options.proc, .sys = options.sys, .cgroup = options.cgroup},
       .job = job,
       .self = ::getpid(),
       .path = path,
       .temporary = temporary != nullptr ? temporary : "/tmp"},
      real_clock());
  if (!opened) {
    say(fmt::format("{}: taking no marks: {}", printable(job.node),
                    printable(opened.error().message, 1024)));
    return nullptr;
  }
  return *std::move(opened);
}

int merge(const std::string& path) {
  const auto merged = [&]() -> Result<> {
    CEEMS_TRY(directory, DataDirectory::open(path));
    CEEMS_TRY(report, read_report(directory));
    for (const std::string& line : summary_lines(report)) {
      fmt::print("{}\n", line);
    }
    return write_reports(directory, report);
  }();
  if (!merged) {
    fmt::print(stderr, "ceems_exporter run: {}\n", printable(merged.error().message, 1024));
    return 1;
  }
  return 0;
}

int run_agent(const Options& options, Job job) {
  if (!options.manager.empty()) {
    set_manager(job, options.manager, options.job);
  }
  prepare_signals();
  const std::int64_t begin_ms = real_clock().now_ms();
  const auto measured = [&]() -> Result<> {
    CEEMS_TRY(directory, DataDirectory::open(options.agent));
    constexpr std::size_t kMaxBytes = std::size_t{8} << 20U;
    if (const auto text = directory.read(std::string(kFactsFile), kMaxBytes)) {
      const auto facts = parse_facts(*text);
      job.node = facts && !facts->nodes.empty() ? node_name_of(facts->nodes, job.node) : job.node;
    }
    if (job.node == options.skip_node) {
      return {};
    }
    const auto marks =
        options.mark_socket.empty() ? nullptr : open_marks(options, job, options.mark_socket);
    if (marks != nullptr) {
      marks->start();
    }
    CEEMS_TRY(measurement, Measurement::create(measurement_options(options, job, options.name,
                                                                   marks.get(), begin_ms),
                                               directory, real_clock()));
    measurement->start();
    sigset_t set = passed_signals();
    bool stopped = false;
    while (!stopped && !directory.has(std::string(kStopFile))) {
      const timespec pause{.tv_sec = 0, .tv_nsec = 500'000'000};
      stopped = ::sigtimedwait(&set, nullptr, &pause) > 0;
    }
    if (marks != nullptr) {
      marks->finish();
    }
    if (!measurement->finish(std::nullopt)) {
      ::_exit(1);
    }
    return {};
  }();
  if (!measured) {
    fmt::print(stderr, "{}: {}\n", job.node, printable(measured.error().message, 1024));
    return 1;
  }
  return 0;
}

}  // namespace ceems::exporter::run
