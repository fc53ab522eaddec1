#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// Identifies the CPU, by the first processor in /proc/cpuinfo.
struct CpuIdentity {
  std::string vendor;                ///< x86: "GenuineIntel"; ARM: implementer, "0x41"
  int family = -1;                   ///< x86
  int model = -1;                    ///< x86; ARM: part number
  int stepping = -1;                 ///< x86
  bool hypervisor = false;           ///< the machine is virtual
  bool one_thread_per_core = false;  ///< "siblings" equals "cpu cores"
};

/// Parses the text of /proc/cpuinfo (x86 and ARM). Values that are missing or not a number stay
/// unknown. Never fails.
CpuIdentity parse_cpu_identity(std::string_view text);

/// Power of one server: a row of data/power-models/cpus.csv.
struct CpuPower {
  std::string_view name;
  std::string_view match;
  double idle_watts = 0;
  double full_watts = 0;
  double threads = 0;
  double threads_per_core = 1;
  int year = 0;
  std::string_view system;
};

/// Parses the table. The rows point into `text`. kParse with the line number for a row that does
/// not match the description in the file.
Result<std::vector<CpuPower>> parse_power_table(std::string_view text);

/// The text of data/power-models/cpus.csv, compiled in.
extern const std::string_view kCpusCsv;

/// The first row that matches the CPU, or null.
const CpuPower* find_power(const std::vector<CpuPower>& table, const CpuIdentity& cpu);

/// Power as a linear function of the CPUs' utilisation, from idle to full load.
struct PowerModel {
  double idle_watts = 0;
  double full_watts = 0;
  std::string basis;  ///< the data it is based on, for the log
};

/// The model for this machine. The watts of the row are divided evenly among its hardware threads,
/// and this machine gets those of the `cpus` it sees. A virtual machine thus gets its slice of such
/// a host, and bare metal a server with the same number of threads. Bare metal with SMT off counts
/// each core with all its threads. A row for the exact family is used first; otherwise, on bare
/// metal, `tdp_watts` of all sockets (the long-term limit that powercap shows to every user) if it
/// is known; otherwise the vendor's fallback row.
PowerModel make_power_model(const std::vector<CpuPower>& table,
                            const CpuIdentity& cpu,
                            double cpus,
                            std::optional<double> tdp_watts);

/// The model as a source of kNode. The energy of an interval is the power at its mean utilisation.
/// An interval with unknown utilisation is an error and counts nothing.
class ModelMeter final : public EnergyMeter {
 public:
  explicit ModelMeter(PowerModel model);

  [[nodiscard]] const SourceInfo& source() const override { return source_; }
  Result<Reading> read(const MeterContext& context) override;

 private:
  SourceInfo source_;
  PowerModel model_;
  std::optional<Clock::SteadyTime> last_;
};

}  // namespace ceems::exporter::energy
