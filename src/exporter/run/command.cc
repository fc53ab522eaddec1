#include "exporter/run/command.h"

#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/flags.h"
#include "exporter/energy/options.h"
#include "exporter/run/background.h"
#include "exporter/run/child.h"
#include "exporter/run/session.h"
#include "exporter/run/watch.h"
#include "host/read_file.h"

namespace ceems::exporter::run {
namespace {

constexpr std::string_view kDescription =
    "Runs a command and reports what it used: energy, CPU time, memory and GPUs, on all nodes of "
    "its job. Needs no administrator, no server and no root: put it in front of the command in a "
    "job "
    "script, such as 'ceems_exporter run -- srun ./a.out', or use it on a workstation. The exit "
    "status is that of the command, or 128 and the number of the signal that ended it. The command "
    "starts at once and is never held up; if something cannot be measured, it runs without. "
    "Reports and samples are in a new directory, ./ceems-JOB. GPUs are measured where their "
    "driver's "
    "library shows them. CPUs are measured where the kernel lets users read their counters (RAPL "
    "usually needs root); otherwise their energy is estimated from their use, and the report says "
    "so. 'ceems_exporter run --merge DIR' makes the report again from what a run has left, also "
    "after it was killed.";

/// One line for the user.
int complain(std::string_view message) {
  fmt::print(stderr, "ceems_exporter run: {}\n", message);
  return 1;
}

void add_flags(config::FlagSet& flags, Options& options, std::vector<std::string>& words) {
  flags.positionals("command", words,
                    "The command and its arguments, after '--' so that its flags are its own");
  flags.add("interval", options.interval, {.help = "Time between two samples, 100ms to 60s"});
  flags.add("dir", options.directory,
            {.help = "New directory for reports and samples; default: ./ceems-JOB, or ceems-PID "
                     "without a job. If it exists, a number is added",
             .placeholder = "DIR"});
  flags.add("name", options.name,
            {.help = "Name in the report; default: that of the job or of the program",
             .placeholder = "NAME"});
  flags.add("report", options.report,
            {.help = "Write and print a report at the end; on by default"});
  flags.add_enum("fanout", options.fanout, {"auto", "srun", "pbsdsh", "blaunch", "ssh", "none"},
                 {.help = "How the other nodes of the job are measured: auto (srun in a job of "
                          "SLURM, otherwise none), srun, pbsdsh, blaunch, ssh, none"});
  flags.add("max-size", options.max_megabytes,
            {.help = "Size of the samples of a node in MB, beyond which fewer are kept"});
  flags.add("marks", options.marks,
            {.help = "Take regions and results that the command reports (ceems_mark); on by "
                     "default. Otherwise they go to the site's exporter, if there is one"});
  flags.add("watch", options.watch,
            {.help = "Measure this process of yours with its descendants, or this job of yours in "
                     "SLURM on this node, until it ends or this program is stopped, and run "
                     "nothing. A number is a job if no process of yours has it; job:4711 always is",
             .placeholder = "PID|JOB"});
  flags.add("start", options.start,
            {.help = "Measure the job in the background until --stop or the end of its script, and "
                     "run nothing: eval \"$(ceems_exporter run --start)\""});
  flags.add("stop", options.stop, {.help = "End what --start began, and wait for its report"});
  flags.add("merge", options.merge,
            {.help = "Make the report again from the data in this directory, and run nothing",
             .placeholder = "DIR"});
  flags.add("agent", options.agent, {.help = "Measure a node for a run", .hidden = true});
  flags.add("skip-node", options.skip_node, {.help = "Node that has no agent", .hidden = true});
  flags.add("manager", options.manager, {.help = "Manager of the job", .hidden = true});
  flags.add("job", options.job, {.help = "Number of the job", .hidden = true});
  flags.add("mark-socket", options.mark_socket, {.help = "Socket for marks", .hidden = true});
  flags.add("path.procfs", options.proc, {.help = "Mount point of procfs", .hidden = true});
  flags.add("path.sysfs", options.sys, {.help = "Mount point of sysfs", .hidden = true});
  flags.add("path.cgroupfs", options.cgroup, {.help = "Mount point of cgroupfs", .hidden = true});
}

std::string environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? value : "";
}

std::string hostname() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name.front() != '\0' ? name.data()
                                                                                  : "localhost";
}

/// The job with its nodes.
Job this_job() {
  constexpr std::size_t kMaxNodeFile = std::size_t{16} << 20U;
  Job job = describe_job(environment, hostname(), ::getpid());
  if (job.node_file.empty()) {
    return job;
  }
  if (const auto text = host::read_file(job.node_file, kMaxNodeFile)) {
    job.nodes = nodes_in_file(*text);
    job.node_count = std::max<std::size_t>(job.nodes.size(), 1);
    job.node = node_name_of(job.nodes, job.node);
  }
  return job;
}

/// Waits for the command and passes signals on to it. Returns its wait status. The session says
/// what is measured after a second.
int wait_for_command(pid_t command, Session& session) {
  sigset_t set = passed_signals();
  ::sigaddset(&set, SIGCHLD);
  std::optional<int> ended;
  bool announced = false;
  while (true) {
    session.reap([&](int pid, int status) {
      if (pid == command) {
        ended = status;
      }
    });
    if (ended) {
      return *ended;
    }
    siginfo_t info{};
    const timespec second{.tv_sec = 1, .tv_nsec = 0};
    const int number =
        announced ? ::sigwaitinfo(&set, &info) : ::sigtimedwait(&set, &info, &second);
    if (number < 0 && errno == EAGAIN) {
      announced = true;
      session.announce();
    }
    // The terminal sends its signals to the whole group, so the command has them already.
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) {
      ::kill(command, number);
    }
  }
}

/// What the flags and the command contradict each other in; empty if they do not.
std::string clash_of(const Options& options,
                     const std::vector<std::string>& words,
                     const std::vector<std::string>& misplaced) {
  std::vector<std::string_view> modes;
  const auto add = [&modes](std::string_view name, bool on) {
    if (on) {
      modes.push_back(name);
    }
  };
  add("--watch", !options.watch.empty());
  add("--merge", !options.merge.empty());
  add("--start", options.start);
  add("--stop", options.stop);
  if (modes.size() > 1) {
    return fmt::format("{} and {} exclude each other", modes[0], modes[1]);
  }
  if (options.start && !options.report) {
    return "--start always writes a report; leave out --no-report";
  }
  if (!modes.empty() && (!words.empty() || !misplaced.empty())) {
    return fmt::format("{} runs no command, got: {}", modes.front(),
                       printable(words.empty() ? misplaced.front() : words.front(), 1024));
  }
  return {};
}

int run_words(const Options& options, const std::vector<std::string>& words, Job job) {
  prepare_signals();
  auto marks = open_marks(options, job, {});
  if (marks != nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is no other thread yet
    ::setenv(kMarkVariable, marks->path().c_str(), 1);
  }
  const std::int64_t begin_ms = real_clock().now_ms();
  const auto command = start_command(words);
  if (!command) {
    return complain(command.error().message);
  }
  const std::string program = std::filesystem::path(words.front()).filename().string();
  Session session(options, std::move(job), program, std::move(marks), begin_ms);
  session.begin();
  const int status = exit_status_of(wait_for_command(*command, session));
  session.end(status);
  return status;
}

}  // namespace

int run_command(int argc, const char* const* argv) {
  const std::span all(argv, static_cast<std::size_t>(argc));
  const auto dashes = std::ranges::find(all, std::string_view("--"),
                                        [](const char* word) { return std::string_view(word); });
  std::vector<std::string> words;
  if (dashes != all.end()) {
    words.assign(dashes + 1, all.end());
  }
  Options options;
  std::vector<std::string> misplaced;
  config::FlagSet flags("ceems_exporter run", std::string(kDescription));
  add_flags(flags, options, misplaced);
  const auto outcome = flags.parse(static_cast<int>(dashes - all.begin()) - 1, argv + 1);
  if (outcome.exit) {
    fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    return *outcome.exit;
  }
  log::configure(log::Level::kError, log::Format::kLogfmt);
  const auto interval = energy::parse_duration(
      "--interval", options.interval, std::chrono::milliseconds(100), std::chrono::seconds(60));
  if (!interval) {
    return complain(interval.error().message);
  }
  options.period = *interval;
  if (options.max_megabytes < 1) {
    return complain("--max-size: expected at least 1");
  }
  if (const std::string clash = clash_of(options, words, misplaced); !clash.empty()) {
    return complain(clash);
  }
  if (!options.merge.empty()) {
    return merge(options.merge);
  }
  Job job = this_job();
  if (!options.agent.empty()) {
    return run_agent(options, std::move(job));
  }
  if (!options.watch.empty()) {
    const auto watched = watch(options, job);
    return watched ? 0 : complain("--watch: " + watched.error().message);
  }
  if (options.start || options.stop) {
    const auto done = options.start ? start_in_background(options, std::move(job))
                                    : stop_in_background(options, job);
    return done ? 0
                : complain(fmt::format("{}: {}", options.start ? "--start" : "--stop",
                                       printable(done.error().message, 1024)));
  }
  if (words.empty() || !misplaced.empty()) {
    return complain(
        "write the command after '--', such as: ceems_exporter run -- ./a.out; see --help");
  }
  if (const auto fanout = choose_fanout(options.fanout, job); !fanout) {
    return complain(fanout.error().message);
  }
  if (!job.first_task) {
    become_command(words);
  }
  return run_words(options, words, std::move(job));
}

}  // namespace ceems::exporter::run
