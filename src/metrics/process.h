#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "metrics/sink.h"

namespace ceems::metrics {

/// What a program says about its own process, by the names that client libraries of Prometheus use
/// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics). Reads the real
/// /proc. add() is called from one thread at a time.
class ProcessFigures {
 public:
  /// `program` is how the help texts call it, e.g. "the exporter".
  explicit ProcessFigures(std::string_view program);

  void add(Sink& sink);

 private:
  Desc cpu_, open_fds_, max_fds_, virtual_, virtual_max_, resident_, start_, received_, sent_;
  double start_time_ = 0;
  std::string buffer_;
};

/// InOctets and OutOctets of the lines IpExt of /proc/<pid>/net/netstat; 0 where they are missing.
struct NetworkOctets {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
};
NetworkOctets parse_netstat(std::string_view text);

}  // namespace ceems::metrics
