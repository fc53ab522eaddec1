#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/ipmi/conversation.h"
#include "exporter/ipmi/sdr.h"

namespace ceems::exporter::ipmi {

/// Which sensors are read.
struct SensorSelection {
  bool power_and_energy = false;      ///< those whose unit is watts or joules
  std::vector<std::uint8_t> numbers;  ///< and these

  [[nodiscard]] bool empty() const { return !power_and_energy && numbers.empty(); }
};

/// A reading that is above 0.
struct SensorReading {
  std::string name;   ///< with the sensor's number behind it if several sensors have the same name
  std::string units;  ///< such as "Watts"
  double value = 0;
  Clock::SteadyTime time{};  ///< when the sensor was read

  bool operator==(const SensorReading&) const = default;
};

/// Lists the sensors of a BMC from the records in its repository (IPMI 2.0, section 33: Get SDR
/// Repository Info, Reserve SDR Repository, Get SDR) and reads the selected ones (section 35: Get
/// Sensor Reading, Get Sensor Reading Factors). Sensors of other controllers than the BMC are left
/// out. Used by one thread at a time.
class SensorReader {
 public:
  /// A reading that is older than `max_age` is no longer returned.
  SensorReader(std::unique_ptr<Device> device,
               SensorSelection selection,
               std::chrono::nanoseconds max_age,
               const Clock& clock);

  /// The last good readings, sorted by the number of the sensor. The first call lists the sensors,
  /// which takes seconds with many of them; they are listed again when the BMC reports that the
  /// repository has changed. Errors: the BMC does not answer, has no repository, or none of the
  /// sensors has a reading. While it fails, readings that are not too old are kept for the next
  /// call.
  Result<std::vector<SensorReading>> read(const std::stop_token& stop);

  /// The selected sensors, sorted by number; for tests and logs.
  [[nodiscard]] std::vector<Sensor> sensors() const;

 private:
  struct Known {
    Sensor sensor;
    double value = 0;
    std::optional<Clock::SteadyTime> time;  ///< of the value; nothing if there was none
  };
  class Walk;

  Result<> list(const std::stop_token& stop);
  Result<> refresh(const std::stop_token& stop);
  void take(std::vector<Sensor> found);
  Result<double> value_of(const Sensor& sensor, const std::stop_token& stop);

  std::unique_ptr<Device> device_;
  SensorSelection selection_;
  std::chrono::nanoseconds max_age_;
  const Clock& clock_;
  std::vector<Known> known_;
  bool listed_ = false;
  Bytes repository_;  // answer to Get SDR Repository Info when the sensors were listed
  Clock::SteadyTime next_check_{};
};

}  // namespace ceems::exporter::ipmi
