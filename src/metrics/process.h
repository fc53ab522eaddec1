#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "metrics/sink.h"

namespace ceems::metrics {

/// Metrics of the program's own process, with the names that Prometheus client libraries use
/// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics). Reads the real
/// /proc. Only one thread at a time may call add().
class ProcessMetrics {
 public:
  /// `program` is the name of the program in the help texts, e.g. "the exporter".
  explicit ProcessMetrics(std::string_view program);

  void add(Sink& sink);

 private:
  Desc cpu_, open_fds_, max_fds_, virtual_, virtual_max_, resident_, start_, received_, sent_;
  double start_time_ = 0;
  std::string buffer_;
};

/// InOctets and OutOctets of the IpExt lines in /proc/<pid>/net/netstat; 0 if missing.
struct NetworkOctets {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
};
NetworkOctets parse_netstat(std::string_view text);

}  // namespace ceems::metrics
