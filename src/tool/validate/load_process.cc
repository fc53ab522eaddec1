#include "tool/validate/load_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "host/read_file.h"
#include "os/child.h"
#include "os/file.h"

namespace ceems::tool::validate {
namespace {

constexpr std::size_t kMatrix = 48;  // three of them take 54 KB
constexpr int kProducts = 40;        // a block
// Four times the share of a core in the last level of large caches, in doubles: 48 MiB.
constexpr std::size_t kBuffer = std::size_t{48} * 1024 * 1024 / sizeof(double);
constexpr std::size_t kCopies = 1;
constexpr int kChain = 2'000'000;

constexpr std::size_t kMaxShown = 3;
constexpr std::size_t kMaxName = 40;
constexpr double kMinPercent = 1;
constexpr int kWordsBeforeTimes = 11;  // from the state, field 3, to utime, field 14

/// utime and stime of the text after the name.
std::optional<std::uint64_t> ticks_of(std::string_view rest) {
  for (int i = 0; i < kWordsBeforeTimes; ++i) {
    take_word(rest);
  }
  const auto user = parse_int(take_word(rest));
  const auto system = parse_int(take_word(rest));
  return user && system ? std::optional(*user + *system) : std::nullopt;
}

namespace fs = std::filesystem;

constexpr const char* kParent = "ceems_validate";
constexpr int kStartMs = 20'000;  // the threads fill their buffers meanwhile, each once
constexpr int kRemovals = 50;     // a cgroup is busy for a moment after its last process
constexpr std::chrono::milliseconds kRemovalPause{20};
constexpr char kRuns = 'r';
constexpr char kNoCgroup = 'c';
constexpr char kNoCpu = 'a';

[[noreturn]] void leave(int answer, char why) {
  static_cast<void>(!::write(answer, &why, 1));
  ::_exit(1);
}

bool enter(const std::vector<std::string>& cgroups) {
  for (const std::string& cgroup : cgroups) {
    const int file = ::open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    const bool entered = file >= 0 && ::write(file, "0\n", 2) == 2;
    ::close(file);
    if (!entered) {
      return false;
    }
  }
  return true;
}

bool pin(int cpu) {
  cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cpu) + 1);
  const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpu) + 1);
  CPU_ZERO_S(size, set);
  CPU_SET_S(static_cast<std::size_t>(cpu), size, set);
  const bool pinned = ::sched_setaffinity(0, size, set) == 0;
  CPU_FREE(set);
  return pinned;
}

/// The life of the copied process. It never returns to the code that it was copied in.
[[noreturn]] void work(const std::vector<std::string>& cgroups,
                       const Assignment& load,
                       pid_t parent,
                       int answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(1);
  }
  if (!enter(cgroups)) {
    leave(answer, kNoCgroup);
  }
  std::atomic<std::size_t> running{0};
  std::atomic<double> sink{0};
  for (const int cpu : load.cpus) {
    std::thread([&, cpu] {
      if (!pin(cpu)) {
        leave(answer, kNoCpu);
      }
      Kernel kernel(load.load);
      sink = kernel.block();
      if (++running == load.cpus.size()) {
        static_cast<void>(!::write(answer, &kRuns, 1));
      }
      while (true) {
        sink = kernel.block();
      }
    }).detach();
  }
  while (true) {
    ::pause();
  }
}

/// The letter that the process sends when it runs or fails; 0 if it ends or hangs without one.
char answer_of(int pipe) {
  pollfd waits{.fd = pipe, .events = POLLIN, .revents = 0};
  while (true) {
    const int ready = ::poll(&waits, 1, kStartMs);
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    char letter = 0;
    return ready > 0 && ::read(pipe, &letter, 1) == 1 ? letter : '\0';
  }
}

void remove_cgroup(const std::string& path) {
  std::error_code error;
  for (int i = 0; i < kRemovals; ++i) {
    // Not remove_all(): the files of a cgroup go with its directory.
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) {
      break;
    }
    std::this_thread::sleep_for(kRemovalPause);
  }
  ::rmdir(fs::path(path).parent_path().c_str());  // as long as other loads run, it stays
}

}  // namespace

Kernel::Kernel(LoadClass load) : load_(load) {
  const std::size_t size = load == LoadClass::kMemory    ? kBuffer
                           : load == LoadClass::kCompute ? kMatrix * kMatrix
                                                         : 0;
  left_.assign(size, 1.25);
  right_.assign(size, 0.75);
  out_.assign(load == LoadClass::kCompute ? size : 0, 0);
}

double Kernel::block() {
  switch (load_) {
    case LoadClass::kScalar:
      return scalar();
    case LoadClass::kMemory:
      return memory();
    case LoadClass::kIdle:
    case LoadClass::kCompute:
    case LoadClass::kMixed:
      break;
  }
  return compute();
}

double Kernel::compute() {
  const double* right = right_.data();
  for (int product = 0; product < kProducts; ++product) {
    for (std::size_t i = 0; i < kMatrix; ++i) {
      double* row = &out_[i * kMatrix];
      for (std::size_t k = 0; k < kMatrix; ++k) {
        const double factor = left_[i * kMatrix + k];
        for (std::size_t j = 0; j < kMatrix; ++j) {
          row[j] = row[j] * 0.5 + factor * right[k * kMatrix + j];
        }
      }
    }
    left_[0] = out_[1];
  }
  return out_[kMatrix];
}

double Kernel::scalar() {
  std::uint64_t odd = 0;
  for (int i = 0; i < kChain; ++i) {  // xorshift (Marsaglia 2003), whose branch cannot be predicted
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    odd = (state_ & 1U) != 0 ? odd * 3 + 1 : odd / 2 + state_;
  }
  return static_cast<double>(odd);
}

double Kernel::memory() {
  for (std::size_t i = 0; i < kCopies; ++i) {
    std::memcpy(left_.data(), right_.data(), right_.size() * sizeof(double));
    std::swap(left_, right_);
    left_[0] = right_[1];
  }
  return right_[kBuffer / 2] + left_[0];
}

std::map<int, BusyProcesses::Use> BusyProcesses::read() const {
  std::map<int, Use> found;
  const auto names = host::list_directory(proc_);
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const auto pid = parse_int<int>(name);
    if (!pid) {
      continue;
    }
    const auto text = host::read_file(proc_ + "/" + name + "/stat");
    if (!text) {
      continue;  // it has ended
    }
    const std::size_t begin = text->find('(');
    const std::size_t end = text->rfind(')');  // the name may contain brackets
    if (begin == std::string::npos || end == std::string::npos || end < begin) {
      continue;
    }
    if (const auto ticks = ticks_of(std::string_view(*text).substr(end + 1))) {
      found[*pid] = {.name = text->substr(begin + 1, end - begin - 1), .ticks = *ticks};
    }
  }
  return found;
}

std::string BusyProcesses::since_last(double seconds) {
  std::map<int, Use> now = read();
  std::vector<std::pair<double, std::string>> busy;
  for (const auto& [pid, use] : now) {
    const auto before = last_.find(pid);
    const std::uint64_t ticks =
        before == last_.end() || before->second.ticks > use.ticks ? 0 : before->second.ticks;
    const double percent =
        100 * static_cast<double>(use.ticks - ticks) / ticks_per_second_ / std::max(1e-3, seconds);
    if (percent >= kMinPercent) {
      busy.emplace_back(percent, fmt::format("{:.0f} % of a CPU by {} (process {})", percent,
                                             printable(use.name, kMaxName), pid));
    }
  }
  last_ = std::move(now);
  std::ranges::sort(busy, std::greater());
  busy.resize(std::min(busy.size(), kMaxShown));
  std::vector<std::string> shown;
  shown.reserve(busy.size());
  for (auto& [percent, text] : busy) {
    shown.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

Result<std::vector<std::string>> cgroup_roots(const std::string& root) {
  if (fs::exists(root + "/cgroup.controllers")) {
    return std::vector{root};
  }
  std::set<std::string> roots;  // cpu and cpuacct are often one
  for (const char* controller : {"cpu", "cpuacct", "memory"}) {
    std::error_code error;
    const fs::path path = fs::canonical(fs::path(root) / controller, error);
    if (!error && fs::is_directory(path, error)) {
      roots.insert(path.string());
    }
  }
  if (roots.empty()) {
    return fail(ErrorCode::kNotFound, "no cgroups below {}", root);
  }
  return std::vector<std::string>(roots.begin(), roots.end());
}

Result<LoadProcess> LoadProcess::start(const std::vector<std::string>& roots,
                                       const std::string& name,
                                       const Assignment& load) {
  std::vector<std::string> cgroups;
  cgroups.reserve(roots.size());
  for (const std::string& root : roots) {
    cgroups.push_back(fmt::format("{}/{}/{}", root, kParent, name));
  }
  LoadProcess process(cgroups);
  for (const std::string& cgroup : cgroups) {
    std::error_code error;
    if (fs::create_directories(cgroup, error); error) {
      return fail(ErrorCode::kPermissionDenied, "cannot make the cgroup {}: {}; run this as root",
                  cgroup, error.message());
    }
  }
  CEEMS_TRY(pipe, os::make_pipe());
  const pid_t parent = ::getpid();
  process.pid_ = ::fork();
  if (process.pid_ == 0) {
    work(cgroups, load, parent, pipe.write.get());
  }
  if (process.pid_ < 0) {
    return fail(ErrorCode::kUnavailable, "cannot start a load: {}",
                std::generic_category().message(errno));
  }
  pipe.write.reset();
  switch (answer_of(pipe.read.get())) {
    case kRuns:
      return process;
    case kNoCgroup:
      return fail(ErrorCode::kPermissionDenied,
                  "a load cannot enter its cgroup {}; run this as root", cgroups.front());
    case kNoCpu:
      return fail(ErrorCode::kUnavailable, "a load may not run on one of its CPUs ({})",
                  fmt::join(load.cpus, ", "));
    default:
      return fail(ErrorCode::kUnavailable,
                  "a load of {} threads did not start; each needs 100 MB of memory",
                  load.cpus.size());
  }
}

bool LoadProcess::ended() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

LoadProcess::~LoadProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const std::string& cgroup : cgroups_) {
    remove_cgroup(cgroup);
  }
}

}  // namespace ceems::tool::validate
