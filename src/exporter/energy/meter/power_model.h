#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// Which CPU this is, of the first processor in /proc/cpuinfo.
struct CpuIdentity {
  std::string vendor;                ///< x86: "GenuineIntel"; ARM: implementer, "0x41"
  int family = -1;                   ///< x86
  int model = -1;                    ///< x86; ARM: part number
  int stepping = -1;                 ///< x86
  bool hypervisor = false;           ///< we run in a virtual machine
  bool one_thread_per_core = false;  ///< "siblings" equals "cpu cores"
};

/// Parses the text of /proc/cpuinfo (x86 and ARM). Values that are missing or no number stay
/// unknown; never fails.
CpuIdentity parse_cpu_identity(std::string_view text);

/// Power of one server, a row of data/power-models/cpus.csv.
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

/// Parses the table; the rows point into `text`. kParse with the line number on a row that is not
/// as described in the file.
Result<std::vector<CpuPower>> parse_power_table(std::string_view text);

/// The text of data/power-models/cpus.csv, compiled in.
std::string_view power_table_text();

/// The first row that matches the CPU, or null.
const CpuPower* find_power(const std::vector<CpuPower>& table, const CpuIdentity& cpu);

/// A line from idle to full load over the utilisation of the CPUs.
struct PowerModel {
  double idle_watts = 0;
  double full_watts = 0;
  std::string basis;  ///< what it rests on, for the log
};

/// The model for this machine. The watts of the row are shared out evenly over its hardware
/// threads; this machine gets those of the `cpus` it sees. A virtual machine thus gets its slice of
/// a host of this kind, bare metal a server with the same number of threads; bare metal with SMT
/// switched off counts each core with all its threads.
/// A row for the exact family wins; else, on bare metal, `tdp_watts` of all sockets (the long-term
/// limit that powercap shows to everybody) where it is known; else the vendor's last resort.
PowerModel make_power_model(const std::vector<CpuPower>& table,
                            const CpuIdentity& cpu,
                            double cpus,
                            std::optional<double> tdp_watts);

/// The model as a source of kNode. Energy of an interval: power at its mean
/// utilisation; an interval of unknown utilisation gives an error and counts nothing.
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
