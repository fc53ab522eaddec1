#include "exporter/profile/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/flags.h"
#include "exporter/profile/format/flame_graph.h"
#include "exporter/profile/format/pprof.h"
#include "exporter/profile/format/profile.h"
#include "exporter/profile/sampler/profile_builder.h"
#include "exporter/profile/sampler/stack_sampler.h"
#include "exporter/profile/symbol/demangle.h"
#include "exporter/profile/symbol/symbolizer.h"
#include "host/cgroup/mount.h"
#include "host/read_file.h"
#include "os/daemon.h"
#include "os/file.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::size_t kMaxDirectories = 100'000;
constexpr std::size_t kShortestId = 8;  // an id that may be a part of a name

std::string with_underscores(std::string_view unit) {
  std::string text(unit);
  std::ranges::replace(text, '-', '_');
  return text;
}

constexpr std::string_view kDescription =
    "Samples the stacks of a unit (SLURM job, pod, VM, service) or of a process for some seconds "
    "and writes where its CPU time went: 'ceems_exporter profile 4711 --output job.html' makes a "
    "flame graph that opens in a browser. Needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and "
    "CAP_DAC_READ_SEARCH.";
constexpr std::chrono::milliseconds kDrainPause{200};
constexpr long kMaxSeconds = 3600;
constexpr long kMaxRate = 1000;

struct Options {
  long seconds = 30;
  long rate = 97;
  bool kernel = false;
  bool as_pid = false;
  std::string output;
  std::string format;
  std::string demangle = "simplified";
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string cgroup = "/sys/fs/cgroup";
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler sets it
std::atomic<bool> stopped = false;

/// The format for a file name: what its ending says, else a flame graph.
std::string format_of(const Options& options) {
  if (!options.format.empty()) {
    return options.format;
  }
  for (const auto& [ending, format] : {std::pair{".pb.gz", "pprof"},
                                       {".pprof", "pprof"},
                                       {".folded", "folded"},
                                       {".txt", "folded"}}) {
    if (options.output.ends_with(ending)) {
      return format;
    }
  }
  return options.output.empty() ? "folded" : "html";
}

Result<std::string> text_of(const Profile& profile,
                            const std::string& format,
                            const std::string& subject) {
  if (format == "pprof") {
    return pprof(profile, PprofUse::kFile);
  }
  return format == "folded" ? folded(profile) : flame_graph(profile, subject);
}

/// The units and processes to sample.
struct Subject {
  std::string text;
  std::optional<pid_t> pid = {};
  std::vector<std::uint64_t> cgroups = {};
  std::vector<pid_t> processes = {};  ///< now in these cgroups
  std::string controller = {};
};

Result<Subject> find_subject(const Options& options,
                             const host::Paths& paths,
                             const std::string& name) {
  const host::CgroupMount mount = host::detect_cgroup(paths.cgroup);
  const auto pid = parse_int<pid_t>(name);
  if (!options.as_pid) {
    std::string root = paths.cgroup.string();
    std::string controller;
    if (mount.mode == host::CgroupMode::kLegacy) {
      const auto hierarchy = host::find_v1_hierarchy(paths.cgroup, "cpuacct", true);
      if (hierarchy) {
        root += "/" + *hierarchy;
        controller = "cpuacct";
      }
    }
    const auto found = find_unit(root, name);
    if (!found.empty()) {
      Subject subject{.text = "unit " + name, .controller = std::move(controller)};
      for (const FoundCgroup& cgroup : found) {
        log::info("sampling a cgroup", {{"cgroup", printable(cgroup.path, 256)}});
        subject.cgroups.push_back(cgroup.id);
        std::ranges::copy(processes_in(root + cgroup.path), std::back_inserter(subject.processes));
      }
      return subject;
    }
  }
  if (pid && ::access((paths.proc / name).c_str(), F_OK) == 0) {
    return Subject{.text = "process " + name, .pid = pid};
  }
  return fail(ErrorCode::kNotFound, "no {} '{}' on this node",
              options.as_pid ? "process" : "unit or process", printable(name, 128));
}

/// Samples until the time is over or a signal stops it.
Result<Profile> sample(const Options& options, const host::Paths& paths, const Subject& subject) {
  const auto mode = demangle_mode(options.demangle);
  if (!mode) {
    return fail(ErrorCode::kInvalidArgument,
                "--demangle: expected none, simplified, templates or "
                "full");
  }
  CEEMS_TRY(sampler, StackSampler::create({.rate = static_cast<unsigned>(options.rate),
                                           .user = true,
                                           .kernel = options.kernel,
                                           .by_unit = !subject.pid,
                                           .controller = subject.controller},
                                          paths));
  std::optional<KernelSymbols> kernel;
  if (options.kernel) {
    if (auto symbols = read_kernel_symbols(paths)) {
      kernel = *std::move(symbols);
    } else {
      log::warn("functions of the kernel have no names", {{"err", symbols.error().message}});
    }
  }
  Symbolizer symbolizer(paths, {.demangle = *mode});
  ProfileBuilder builder(symbolizer, kernel ? &*kernel : nullptr,
                         static_cast<unsigned>(options.rate));
  for (const pid_t pid : subject.pid ? std::vector{*subject.pid} : subject.processes) {
    sampler->describe(pid);
  }
  const Result<> chosen = subject.pid ? sampler->set_processes(std::vector{*subject.pid})
                                      : sampler->set_units(subject.cgroups);
  if (!chosen) {
    return fail(chosen.error());
  }
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const auto started = real_clock().now();
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + std::chrono::seconds(options.seconds);
  std::uint64_t samples = 0;
  while (!stopped && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kDrainPause);
    sampler->drain([&](const Sample& one) {
      ++samples;
      builder.add(one);
    });
    symbolizer.next_round();
    if (terminal) {
      const auto passed = std::chrono::steady_clock::now() - begin;
      fmt::print(stderr, "\r{} of {} s, {} samples ",
                 std::chrono::duration_cast<std::chrono::seconds>(passed).count(), options.seconds,
                 samples);
    }
  }
  if (terminal) {
    fmt::print(stderr, "\n");
  }
  if (const std::uint64_t lost = sampler->lost(); lost > 0) {
    log::warn("some samples did not fit into the buffer", {{"lost", lost}});
  }
  Profile profile = builder.take_all();
  profile.started = started;
  profile.duration = std::chrono::steady_clock::now() - begin;
  return profile;
}

Result<> write(const Options& options, const std::string& text) {
  if (options.output.empty() || options.output == "-") {
    return os::write_all(STDOUT_FILENO, text);
  }
  std::FILE* const file = std::fopen(options.output.c_str(), "wbe");
  if (file == nullptr) {
    return fail(ErrorCode::kInternal, "open {}: {}", options.output,
                std::generic_category().message(errno));
  }
  const bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !good) {
    return fail(ErrorCode::kInternal, "write {}: {}", options.output,
                std::generic_category().message(errno));
  }
  return {};
}

void add_flags(config::FlagSet& flags, Options& options, std::vector<std::string>& names) {
  flags.positionals("unit|pid", names,
                    "Identifier of a unit, e.g. of a SLURM job, or of a process");
  flags.add("seconds", options.seconds, {.help = "How long to sample"});
  flags.add("output", options.output,
            {.help = "File to write; without it, folded stacks are printed"});
  flags.add_enum("format", options.format, {"", "html", "pprof", "folded"},
                 {.help = "html: a flame graph for a browser; pprof: for 'go tool pprof' and "
                          "Pyroscope; folded: a line for each stack. Without it, the ending of the "
                          "file decides"});
  flags.add("rate", options.rate, {.help = "Samples per second of CPU time"});
  flags.add("kernel", options.kernel, {.help = "Show functions of the kernel, too"});
  flags.add("pid", options.as_pid,
            {.help = "The argument is a process, even if a unit has that name"});
  flags.add("demangle", options.demangle,
            {.help = "How much of C++ and Rust names is shown: none, simplified, templates, full"});
  flags.add("path.procfs", options.proc, {.help = "Mount point of procfs", .hidden = true});
  flags.add("path.sysfs", options.sys, {.help = "Mount point of sysfs", .hidden = true});
  flags.add("path.cgroupfs", options.cgroup, {.help = "Mount point of cgroupfs", .hidden = true});
}

Result<> run(const Options& options, const std::vector<std::string>& names) {
  if (names.size() != 1) {
    return fail(ErrorCode::kInvalidArgument, "expected one unit or process, see --help");
  }
  if (options.seconds < 1 || options.seconds > kMaxSeconds || options.rate < 1 ||
      options.rate > kMaxRate) {
    return fail(ErrorCode::kInvalidArgument, "--seconds is 1 to {} and --rate 1 to {}", kMaxSeconds,
                kMaxRate);
  }
  const host::Paths paths{.proc = options.proc, .sys = options.sys, .cgroup = options.cgroup};
  CEEMS_TRY(subject, find_subject(options, paths, names.front()));
  CEEMS_TRY(profile, sample(options, paths, subject));
  if (!shows_code(profile)) {
    return fail(ErrorCode::kNoData, "{} used no CPU time in {} s", subject.text, options.seconds);
  }
  CEEMS_TRY(text, text_of(profile, format_of(options), subject.text));
  return write(options, text);
}

}  // namespace

bool names_unit(std::string_view directory, std::string_view unit) {
  if (unit.empty()) {
    return false;
  }
  const std::string name(unit);
  for (const std::string& whole : {name, "job_" + name, name + ".service", name + ".scope"}) {
    if (directory == whole) {
      return true;
    }
  }
  // kubepods-burstable-podUID.slice with '_' for '-', machine-qemu-…-instance-00000001.scope
  return unit.size() >= kShortestId &&
         (directory.contains("pod" + with_underscores(unit)) || directory.contains("pod" + name) ||
          directory.contains("-" + name));
}

std::vector<FoundCgroup> find_unit(const std::string& root, std::string_view unit) {
  std::vector<FoundCgroup> found;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(root, error);
  std::size_t seen = 0;
  for (;
       !error && entry != std::filesystem::recursive_directory_iterator() && seen < kMaxDirectories;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored)) {
      continue;
    }
    ++seen;
    if (!names_unit(entry->path().filename().string(), unit)) {
      continue;
    }
    struct stat info{};
    if (::stat(entry->path().c_str(), &info) == 0) {
      found.push_back({.path = entry->path().string().substr(root.size()), .id = info.st_ino});
    }
    entry.disable_recursion_pending();
  }
  return found;
}

std::vector<pid_t> processes_in(const std::string& directory) {
  std::vector<pid_t> pids;
  const auto add = [&](const std::filesystem::path& folder) {
    if (const auto text = host::read_file((folder / "cgroup.procs").string())) {
      for (const std::string_view line : split(*text, '\n')) {
        if (const auto pid = parse_int<pid_t>(line)) {
          pids.push_back(*pid);
        }
      }
    }
  };
  add(directory);
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      add(entry->path());
    }
  }
  return pids;
}

int run_command(int argc, const char* const* argv) {
  Options options;
  std::vector<std::string> names;
  config::FlagSet flags("ceems_exporter profile", std::string(kDescription));
  add_flags(flags, options, names);
  const auto outcome = flags.parse(argc - 1, argv + 1);
  if (outcome.exit) {
    fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    return *outcome.exit;
  }
  static_cast<void>(log::configure(log::Level::kWarn, log::Format::kLogfmt));
  std::signal(SIGINT, [](int) { stopped = true; });
  std::signal(SIGTERM, [](int) { stopped = true; });
  if (auto done = run(options, names); !done) {
    return os::give_up(done.error());
  }
  return 0;
}

}  // namespace ceems::exporter::profile
