#include "metrics/process.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/cgroup/process.h"
#include "host/read_file.h"

namespace ceems::metrics {
namespace {

constexpr double kUnlimited = 18446744073709551615.0;

double limit_of(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return kUnlimited;
  }
  return static_cast<double>(limit.rlim_cur);
}

double seconds(const timeval& time) {
  constexpr double kMicroPerSecond = 1e6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / kMicroPerSecond;
}

/// Since Linux 6.2, the size of the directory is the number of files, which need not be listed
/// then: an exporter of 1,000 units keeps 10,000 open.
std::optional<double> count_open_files() {
  constexpr const char* kPath = "/proc/self/fd";
  struct stat info{};
  if (::stat(kPath, &info) == 0 && info.st_size > 0) {
    return static_cast<double>(info.st_size);
  }
  const auto open = host::list_directory(kPath);
  return open ? std::optional(static_cast<double>(open->size()) - 1)  // without the one that lists
              : std::nullopt;
}

}  // namespace

NetworkOctets parse_netstat(std::string_view text) {
  NetworkOctets octets;
  while (!text.empty()) {
    std::string_view names = take_until(text, '\n');
    if (!names.starts_with("IpExt:")) {
      continue;
    }
    std::string_view values = take_until(text, '\n');
    while (true) {
      const std::string_view name = take_word(names);
      const std::string_view value = take_word(values);
      if (name.empty() || value.empty()) {
        return octets;
      }
      if (name == "InOctets") {
        octets.received = parse_int(value).value_or(0);
      } else if (name == "OutOctets") {
        octets.sent = parse_int(value).value_or(0);
      }
    }
  }
  return octets;
}

ProcessMetrics::ProcessMetrics(std::string_view program)
    : cpu_{"process_cpu_seconds_total",
           fmt::format("CPU time of {} in user and system mode, in seconds.", program),
           Type::kCounter,
           {}},
      open_fds_{"process_open_fds",
                fmt::format("File descriptors that {} has open.", program),
                Type::kGauge,
                {}},
      max_fds_{"process_max_fds",
               fmt::format("File descriptors that {} may open.", program),
               Type::kGauge,
               {}},
      virtual_{"process_virtual_memory_bytes",
               fmt::format("Virtual memory of {}.", program),
               Type::kGauge,
               {}},
      virtual_max_{"process_virtual_memory_max_bytes",
                   fmt::format("Virtual memory that {} may have.", program),
                   Type::kGauge,
                   {}},
      resident_{"process_resident_memory_bytes",
                fmt::format("Resident memory of {}.", program),
                Type::kGauge,
                {}},
      start_{"process_start_time_seconds",
             fmt::format("When {} was started, in seconds since the epoch.", program),
             Type::kGauge,
             {}},
      received_{"process_network_receive_bytes_total",
                fmt::format("Bytes received over IP in the network namespace of {}.", program),
                Type::kCounter,
                {}},
      sent_{"process_network_transmit_bytes_total",
            fmt::format("Bytes sent over IP in the network namespace of {}.", program),
            Type::kCounter,
            {}} {
  const auto pid_stat = host::read_file("/proc/self/stat");
  const auto stat = host::read_file("/proc/stat");
  if (pid_stat && stat) {
    start_time_ = static_cast<double>(host::parse_boot_time(*stat).value_or(0)) +
                  static_cast<double>(host::parse_start_ticks(*pid_stat).value_or(0)) /
                      static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
}

void ProcessMetrics::add(Sink& sink) {
  // Always read the real /proc. --path.procfs is that of the node, which may be another one.
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    sink.add(cpu_, seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  if (const auto open = count_open_files()) {
    sink.add(open_fds_, *open);
  }
  sink.add(max_fds_, limit_of(RLIMIT_NOFILE));
  sink.add(virtual_max_, limit_of(RLIMIT_AS));
  if (host::read_file("/proc/self/statm", buffer_)) {
    std::string_view rest = buffer_;
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    const auto size = parse_int(take_word(rest));
    const auto resident = parse_int(take_word(rest));
    if (size && resident) {
      sink.add(virtual_, static_cast<double>(*size) * page);
      sink.add(resident_, static_cast<double>(*resident) * page);
    }
  }
  if (start_time_ > 0) {
    sink.add(start_, start_time_);
  }
  if (host::read_file("/proc/self/net/netstat", buffer_)) {
    const NetworkOctets octets = parse_netstat(buffer_);
    sink.add(received_, static_cast<double>(octets.received));
    sink.add(sent_, static_cast<double>(octets.sent));
  }
}

}  // namespace ceems::metrics
