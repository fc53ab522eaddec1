#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/energy/account/idle_power.h"
#include "exporter/energy/meter/meter.h"
#include "host/paths.h"

namespace ceems::exporter::energy {

/// Identifies the CPU, by the first processor in /proc/cpuinfo.
struct CpuIdentity {
  std::string vendor = {};           ///< x86: "GenuineIntel"; ARM: implementer, "0x41"
  int family = -1;                   ///< x86
  int model = -1;                    ///< x86; ARM: part number
  int stepping = -1;                 ///< x86
  bool hypervisor = false;           ///< the machine is virtual
  bool one_thread_per_core = false;  ///< "siblings" equals "cpu cores"
  std::size_t sockets = 0;           ///< distinct "physical id" of all processors; 0 if unknown
};

/// Parses the text of /proc/cpuinfo (x86 and ARM). Values that are missing or not a number stay
/// unknown. Never fails.
CpuIdentity parse_cpu_identity(std::string_view text);

/// How power grows from idle (0) to full load (1) at utilisations of 0, 10, 20, ... 100 %.
using PowerShape = std::array<double, 11>;

/// Smallest and largest error in percent.
struct ErrorRange {
  double low = 0;
  double high = 0;
};

/// Power of one server: a row of data/power-models/cpus.csv.
struct CpuPower {
  std::string_view name;
  std::string_view match;
  double sockets = 1;
  double threads = 0;
  double threads_per_core = 1;
  double memory_gb = 0;
  double idle_watts = 0;
  double full_watts = 0;
  std::optional<PowerShape>
      shape;  ///< nothing if the watts between idle and full are not published
  double rest_watts = 0;
  std::optional<ErrorRange> idle_error, full_error;  ///< of the family's published results
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

/// The mean of the shapes of all families in the table, for rows that have none.
PowerShape typical_shape(const std::vector<CpuPower>& table);

/// What the model needs to know of a machine.
struct Machine {
  CpuIdentity cpu = {};
  double cpus = 1;                  ///< online
  double memory_gb = 0;             ///< installed, in 2^30 bytes; 0 if unknown
  std::optional<double> tdp_watts;  ///< of all sockets, which powercap shows to every user
};

/// Two readings of a wattmeter (--collector.energy.model-watts).
struct ModelWatts {
  double idle = 0;
  double full = 0;
};

/// Power as a function of the CPUs' utilisation: a line through eleven levels.
struct PowerModel {
  double idle_watts = 0;
  double full_watts = 0;
  PowerShape shape{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
  std::string family = {};  ///< whose published result it is; empty: of no family
  std::string basis = {};   ///< the data it is based on, for the log
  bool calibrated = false;
  std::optional<ErrorRange> idle_error = {};  ///< of the published results of the CPU family
  std::optional<ErrorRange> full_error = {};

  /// Watts at a utilisation, which is limited to 0...1.
  [[nodiscard]] double watts(double utilisation) const;
};

/// Watts that memory adds for each GB beyond that of the reference system.
inline constexpr double kIdleWattsPerGb = 0.07;
inline constexpr double kFullWattsPerGb = 0.19;

/// The model for this machine (docs/energy.md).
///
/// A virtual machine gets the slice of the row's server that its CPUs are of the server's hardware
/// threads. Bare metal draws idle power by its sockets, and at full load half by its sockets and
/// half by its threads; where the sockets are unknown, all by its threads. With SMT off, a core
/// counts with all its threads. Memory beyond that of the row's server (of its slice) and
/// `rest_watts` are added. A row for the exact family is used first; otherwise, on bare metal,
/// `tdp_watts` if it is known; otherwise the vendor's fallback row.
PowerModel make_power_model(const std::vector<CpuPower>& table, const Machine& machine);

/// `model` with its watts replaced by the two readings. Its shape stays.
PowerModel calibrated(PowerModel model, const ModelWatts& readings);

/// Idle power as a fraction of that at full load, by the model if it is that of the machine's CPU
/// family or calibrated (docs/energy.md). The packages' is taken to be that of the whole machine.
AssumedIdle assumed_idle(const PowerModel& model);

/// The model for the host below `paths`. kUnavailable and the errors of reading if /proc/stat does
/// not list the CPUs; everything else may be missing.
Result<PowerModel> host_power_model(const host::Paths& paths, std::optional<double> tdp_watts);

/// The model as a source of kNode. The energy of an interval is the power at its mean utilisation.
/// An interval with unknown utilisation is an error and counts nothing.
class ModelMeter final : public EnergyMeter {
 public:
  explicit ModelMeter(PowerModel model);

  [[nodiscard]] const SourceInfo& source() const override { return source_; }
  [[nodiscard]] const PowerModel& model() const { return model_; }
  Result<Reading> read(const MeterContext& context) override;

 private:
  SourceInfo source_;
  PowerModel model_;
  std::optional<Clock::SteadyTime> last_;
};

/// The model among the meters, or null.
const ModelMeter* find_model(const Meters& meters);

/// Replaces the model among the meters by one calibrated with `readings`, and logs it. Adds one
/// with a straight line if there is none.
void calibrate(Meters& meters, const ModelWatts& readings);

}  // namespace ceems::exporter::energy
