// What a process controls: command line, environment, /proc/PID/stat. Also lists of CPUs.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "exporter/unit/process_filter.h"
#include "host/cgroup/process.h"
#include "host/cpu_topology.h"

using namespace ceems::exporter;  // NOLINT(google-build-using-namespace): one short file

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string command = command_line_text(text);
  CEEMS_CHECK(command.size() <= size && command.find('\0') == std::string::npos);
  static_cast<void>(is_manager_process("slurm", command));
  const std::vector<std::string> prefixes{"A", "PROFILE="};
  static_cast<void>(environment_matches(text, prefixes));
  static_cast<void>(ceems::host::parse_process_origin(text));
  if (const auto cpus = ceems::host::parse_cpu_list(text)) {
    for (const int cpu : *cpus) {
      CEEMS_CHECK(cpu >= 0 && cpu < 65536);
    }
  }
  return 0;
}
