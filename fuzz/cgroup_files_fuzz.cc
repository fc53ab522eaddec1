// All parsers of files in a cgroup's directory and of /proc/PID, on the same text.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/process.h"

using namespace ceems::host;  // NOLINT(google-build-using-namespace): one short file

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto quoted = [](const auto& result) {
    CEEMS_CHECK(result.has_value() || (result.error().code == ceems::ErrorCode::kParse &&
                                       result.error().message.size() < 1024));
  };
  quoted(parse_cgroup_value(text));
  quoted(parse_cgroup_cpu_stat(text));
  quoted(parse_cpuacct_stat(text));
  quoted(parse_memory_stat_v1(text));
  quoted(parse_memory_stat_v2(text));
  quoted(parse_memory_events(text));
  quoted(parse_pressure(text));
  quoted(parse_blkio(text));
  quoted(count_cpu_list(text));
  quoted(parse_block_devices(text));
  CEEMS_CHECK(parse_io_stat(text).size() <= size);
  CEEMS_CHECK(parse_rdma(text).size() <= size);
  std::vector<int> pids;
  parse_cgroup_procs(text, pids);
  for (const int pid : pids) {
    CEEMS_CHECK(pid > 0);
  }
  static_cast<void>(parse_cpu_max(text));
  static_cast<void>(parse_populated(text));
  static_cast<void>(parse_memory_totals(text));
  static_cast<void>(parse_status_uid(text));
  static_cast<void>(parse_start_ticks(text));
  static_cast<void>(parse_boot_time(text));
  static_cast<void>(parse_slurmstepd_job(text));
  CEEMS_CHECK(find_user_name(text, 1000).size() <= size);
  return 0;
}
