#include "exporter/perf/kernel.h"

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <utility>

#include "base/fd.h"
#include "exporter/perf/events.h"
#include "os/privileges.h"

namespace ceems::exporter::perf {
namespace {

ErrorCode code_of(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case EOPNOTSUPP:
      return ErrorCode::kNotFound;
    case ESRCH:
    case ENODEV:
    case ENXIO:
      return ErrorCode::kNoData;
    case EACCES:
    case EPERM:
      return ErrorCode::kPermissionDenied;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EBUSY:
      return ErrorCode::kUnavailable;
    case EINVAL:
    case EBADF:
      return ErrorCode::kInvalidArgument;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

std::uint64_t growth(const Reading& before, const Reading& now) {
  const Reading base = now.value < before.value ? Reading{} : before;
  const std::uint64_t value = now.value - base.value;
  const std::uint64_t enabled =
      now.enabled >= base.enabled ? now.enabled - base.enabled : now.enabled;
  const std::uint64_t running =
      now.running >= base.running ? now.running - base.running : now.running;
  if (running == 0 || running >= enabled) {
    return value;
  }
  const double scaled = std::round(static_cast<double>(enabled) / static_cast<double>(running) *
                                   static_cast<double>(value));
  constexpr double kTooLarge = 0x1p64;
  return scaled < kTooLarge ? static_cast<std::uint64_t>(scaled)
                            : std::numeric_limits<std::uint64_t>::max();
}

std::vector<std::string> unsupported_events(Kernel& kernel,
                                            std::span<const std::size_t> events,
                                            bool exclude_kernel) {
  std::vector<std::string> missing;
  for (const std::size_t event : events) {
    const Event& wanted = all_events()[event];
    const auto handle = kernel.open(wanted, {.thread = ::getpid()}, exclude_kernel);
    if (handle) {
      kernel.close(*handle);
    } else if (handle.error().code == ErrorCode::kNotFound) {
      missing.emplace_back(wanted.profiler);
    }
  }
  return missing;
}

Result<int> RealKernel::open(const Event& event, const Target& target, bool exclude_kernel) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.exclude_hv = 1;
  attributes.exclude_kernel = exclude_kernel ? 1 : 0;
  const bool cgroup = target.thread < 0;
  attributes.inherit = cgroup ? 0 : 1;
  unsigned long flags = PERF_FLAG_FD_CLOEXEC;
  if (cgroup) {
    flags |= PERF_FLAG_PID_CGROUP;
  }
  long handle = -1;
  int error = 0;
  {
    const os::RaisedCapabilities raised({CAP_PERFMON});
    handle = ::syscall(SYS_perf_event_open, &attributes, cgroup ? target.cgroup_fd : target.thread,
                       target.cpu, -1, flags);
    error = errno;
  }
  if (handle < 0) {
    Error failure = errno_error(error, "perf_event_open");
    failure.code = code_of(error);
    return fail(std::move(failure));
  }
  return static_cast<int>(handle);
}

std::optional<Reading> RealKernel::read(int handle) {
  std::array<std::uint64_t, 3> words{};
  const ssize_t size = ::read(handle, words.data(), sizeof(words));
  if (size != static_cast<ssize_t>(sizeof(words))) {
    return std::nullopt;
  }
  return Reading{words[0], words[1], words[2]};
}

void RealKernel::close(int handle) {
  const UniqueFd closed(handle);
}

}  // namespace ceems::exporter::perf
