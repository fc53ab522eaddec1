#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exporter/ebpf/layout.h"

namespace ceems::exporter::ebpf {

/// The counters of a value, which consists of nothing else.
template <class Value>
using Counters = std::array<std::uint64_t, sizeof(Value) / sizeof(std::uint64_t)>;

/// The sum of two values, counter by counter.
template <class Value>
Value add(const Value& a, const Value& b) {
  auto sum = std::bit_cast<Counters<Value>>(a);
  const auto other = std::bit_cast<Counters<Value>>(b);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += other[i];
  }
  return std::bit_cast<Value>(sum);
}

template <class Key, class Value>
using Rows = std::vector<std::pair<Key, Value>>;

/// What the programs have counted, summed over the CPUs. The order of rows has no meaning.
struct Readings {
  Rows<ebpf_file_key, ebpf_file_value> files = {};
  Rows<ebpf_file_key, ebpf_file_time> file_times = {};
  Rows<std::uint64_t, ebpf_name_value> names = {};
  Rows<ebpf_latency_key, ebpf_latency_value> latencies = {};
  Rows<ebpf_traffic_key, ebpf_traffic_value> traffic = {};
  /// Connections that exist now. Their traffic is added to `traffic` when they end.
  std::vector<ebpf_open_connection> open = {};
  ebpf_lost lost{};
  std::uint64_t skipped = 0;  ///< events at which the kernel did not run a program
};

/// The tables of the programs in the kernel. Not thread-safe.
class Tables {
 public:
  virtual ~Tables() = default;
  /// Errors: kPermissionDenied, kInternal.
  virtual Result<Readings> read() = 0;
  /// Nothing if the kernel has forgotten it.
  virtual std::optional<ebpf_cgroup> cgroup(std::uint64_t id) = 0;
  /// All cgroups that the kernel knows. One may be listed twice, for files and for connections.
  virtual Rows<std::uint64_t, ebpf_cgroup> cgroups() = 0;
  virtual std::optional<ebpf_place> place(const ebpf_file_key& key) = 0;
  /// Delete rows that were read and have not changed for long. The kernel makes a new one at the
  /// next event. Only files: false, and nothing is done, while a CPU may count there without a new
  /// row.
  virtual bool forget_file(const ebpf_file_key& key) = 0;
  virtual void forget_names(std::uint64_t cgroup) = 0;
  virtual void forget_latency(const ebpf_latency_key& key) = 0;
  virtual void forget_traffic(const ebpf_traffic_key& key) = 0;
  virtual void forget_cgroup(std::uint64_t id) = 0;
};

}  // namespace ceems::exporter::ebpf
