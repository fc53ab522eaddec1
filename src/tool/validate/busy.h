#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace ceems::tool::validate {

/// Tells which processes use the CPUs, from /proc/N/stat (proc_pid_stat(5)). Not thread-safe.
class BusyProcesses {
 public:
  /// `ticks_per_second` is sysconf(_SC_CLK_TCK).
  BusyProcesses(std::string proc, double ticks_per_second)
      : proc_(std::move(proc)), ticks_per_second_(ticks_per_second) {}

  /// The three processes that used most CPU time since the last call, which was `seconds` ago:
  /// "75 % of a CPU by make (process 17), ...". Empty if none used a hundredth of a CPU.
  std::string since_last(double seconds);

 private:
  struct Use {
    std::string name;
    std::uint64_t ticks = 0;
  };
  [[nodiscard]] std::map<int, Use> read() const;

  std::string proc_;
  double ticks_per_second_;
  std::map<int, Use> last_;  ///< by the number of the process
};

}  // namespace ceems::tool::validate
