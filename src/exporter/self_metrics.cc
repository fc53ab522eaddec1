#include "exporter/self_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>

#include "base/strings.h"
#include "base/version.h"
#include "host/cgroup_process.h"
#include "host/directory.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

using metrics::Desc;
using metrics::Type;

const Desc kBuildInfo{"ceems_exporter_build_info",
                      "Version of the program; the value is always 1.",
                      Type::kGauge,
                      {"branch", "goarch", "goos", "goversion", "revision", "tags", "version"}};
const Desc kRequests{"promhttp_metric_handler_requests_total",
                     "Scrapes that were answered, by HTTP status.",
                     Type::kCounter,
                     {"code"}};
const Desc kInFlight{"promhttp_metric_handler_requests_in_flight",
                     "Scrapes being served now, this one included.",
                     Type::kGauge,
                     {}};
const Desc kErrors{"promhttp_metric_handler_errors_total",
                   "Series or pages lost to an internal error, by cause.",
                   Type::kCounter,
                   {"cause"}};
const Desc kCpu{"process_cpu_seconds_total",
                "CPU time of the exporter in user and system mode, in seconds.",
                Type::kCounter,
                {}};
const Desc kOpenFds{
    "process_open_fds", "File descriptors that the exporter has open.", Type::kGauge, {}};
const Desc kMaxFds{
    "process_max_fds", "File descriptors that the exporter may open.", Type::kGauge, {}};
const Desc kVirtual{
    "process_virtual_memory_bytes", "Virtual memory of the exporter.", Type::kGauge, {}};
const Desc kVirtualMax{"process_virtual_memory_max_bytes",
                       "Virtual memory that the exporter may have.",
                       Type::kGauge,
                       {}};
const Desc kResident{
    "process_resident_memory_bytes", "Resident memory of the exporter.", Type::kGauge, {}};
const Desc kStart{"process_start_time_seconds",
                  "When the exporter was started, in seconds since the epoch.",
                  Type::kGauge,
                  {}};
const Desc kReceived{"process_network_receive_bytes_total",
                     "Bytes received over IP in the exporter's network namespace.",
                     Type::kCounter,
                     {}};
const Desc kSent{"process_network_transmit_bytes_total",
                 "Bytes sent over IP in the exporter's network namespace.",
                 Type::kCounter,
                 {}};

constexpr std::array<std::string_view, 3> kCodes{"200", "500", "503"};
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

SelfMetrics::SelfMetrics(bool full) : full_(full) {
  const auto pid_stat = host::read_file("/proc/self/stat");
  const auto stat = host::read_file("/proc/stat");
  if (pid_stat && stat) {
    start_time_ = static_cast<double>(host::parse_boot_time(*stat).value_or(0)) +
                  static_cast<double>(host::parse_start_ticks(*pid_stat).value_or(0)) /
                      static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
}

void SelfMetrics::request_finished(int status) {
  in_flight_.fetch_sub(1);
  finished_.at(status == 200 ? 0 : status == 503 ? 2 : 1).fetch_add(1);
}

void SelfMetrics::add(metrics::Sink& sink) {
  const Version& v = version();
  std::string_view platform = v.platform;
  const std::string_view system = take_until(platform, '/');
  sink.add(kBuildInfo, 1, {v.branch, platform, system, "", v.revision, "", v.version});
  if (!full_) {
    return;
  }
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    sink.add(kRequests, static_cast<double>(finished_.at(i).load()), {kCodes.at(i)});
  }
  sink.add(kInFlight, static_cast<double>(in_flight_.load()));
  sink.add(kErrors, static_cast<double>(gathering_errors_.load()), {"gathering"});
  sink.add(kErrors, 0, {"encoding"});
  add_process(sink);
}

void SelfMetrics::add_process(metrics::Sink& sink) {
  // Always the real /proc: --path.procfs is where the node's is mounted, maybe another one.
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    sink.add(kCpu, seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  if (const auto open = host::list_directory("/proc/self/fd")) {
    sink.add(kOpenFds, static_cast<double>(open->size() - 1));  // without the listing's own
  }
  sink.add(kMaxFds, limit_of(RLIMIT_NOFILE));
  sink.add(kVirtualMax, limit_of(RLIMIT_AS));
  if (host::read_file("/proc/self/statm", buffer_)) {
    std::string_view rest = buffer_;
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    const auto size = parse_int(take_word(rest));
    const auto resident = parse_int(take_word(rest));
    if (size && resident) {
      sink.add(kVirtual, static_cast<double>(*size) * page);
      sink.add(kResident, static_cast<double>(*resident) * page);
    }
  }
  if (start_time_ > 0) {
    sink.add(kStart, start_time_);
  }
  if (host::read_file("/proc/self/net/netstat", buffer_)) {
    const NetworkOctets octets = parse_netstat(buffer_);
    sink.add(kReceived, static_cast<double>(octets.received));
    sink.add(kSent, static_cast<double>(octets.sent));
  }
}

}  // namespace ceems::exporter
