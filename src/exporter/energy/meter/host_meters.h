#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "exporter/energy/meter/apu_power.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "exporter/energy/meter/held_power.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/energy/meter/socket_rails.h"
#include "host/counter_file.h"
#include "host/hwmon.h"
#include "host/paths.h"
#include "host/powercap.h"

namespace ceems::exporter::energy {

/// All meters that files below `paths` show, each listed once:
///
/// - powercap zones `package*` (kPackage) and `dram` (kDram). `core` and `uncore` are parts of
///   their package and left out. A zone that several control types show (intel-rapl through MSRs
///   and intel-rapl-mmio) is the same counter twice, so only one control type counts per zone name.
///   `psys` covers the platform with all packages and is a source of kNode.
/// - hwmon: `power_meter` (ACPI 4.0 power meter, kNode, unless it says that it measures a part of a
///   socket: socket_rails.h). If powercap shows no package, also
///   `fam15h_power` and the socket counters of `amd_energy` (kPackage).
/// - the power model, as the last one (power_model.h).
///
/// Counters are read through `opener`, which may raise a capability (host/counter_file.h). `clock`
/// must outlive the meters. Rails are added to `parts`, and its APUs decide whether packages count,
/// for those who measure the same otherwise.
Meters find_meters(const host::Paths& paths,
                   const Clock& clock,
                   const host::CounterFile::Opener& opener = {},
                   const SocketParts& parts = {});

/// One powercap zone.
class RaplMeter final : public EnergyMeter {
 public:
  /// `zone` is an index into powercap->zones(). `powercap` must not be scanned again.
  RaplMeter(std::shared_ptr<host::Powercap> powercap, std::size_t zone, SourceInfo source);

  [[nodiscard]] const SourceInfo& source() const override { return source_; }
  Result<Reading> read(const MeterContext& context) override;
  [[nodiscard]] std::optional<Rejected> rejected() const override { return counter_.rejected(); }

 private:
  std::shared_ptr<host::Powercap> powercap_;
  std::size_t zone_;
  SourceInfo source_;
  MeteredCounter counter_;
};

/// A power sensor. A read may take long (an ACPI method that asks the BMC), so the sensor is read
/// only if context.may_block, at most once per kMinPause, and for at most a twentieth of the time.
/// The last power holds between readings.
class HwmonPowerMeter final : public EnergyMeter {
 public:
  static constexpr auto kMinPause = std::chrono::milliseconds(900);
  static constexpr int kPausePerRead = 20;

  /// `capacity_watts`: see PowerReading.
  HwmonPowerMeter(std::string path,
                  SourceInfo source,
                  const Clock& clock,
                  std::optional<double> capacity_watts = {});

  [[nodiscard]] const SourceInfo& source() const override { return source_; }
  Result<Reading> read(const MeterContext& context) override;

 private:
  std::string path_;
  SourceInfo source_;
  const Clock& clock_;
  std::optional<double> capacity_watts_;
  HeldPower power_;
  Clock::SteadyTime next_{};
};

/// An energy sensor, which is a 64-bit counter. `amd_energy` shows it to root only, as powercap.
class HwmonEnergyMeter final : public EnergyMeter {
 public:
  HwmonEnergyMeter(host::CounterFile file, SourceInfo source);

  [[nodiscard]] const SourceInfo& source() const override { return source_; }
  Result<Reading> read(const MeterContext& context) override;
  [[nodiscard]] std::optional<Rejected> rejected() const override { return counter_.rejected(); }

 private:
  host::CounterFile file_;
  SourceInfo source_;
  MeteredCounter counter_;
};

}  // namespace ceems::exporter::energy
