#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace ceems::exporter::ipmi {

// Sensor data records (IPMI 2.0, section 43) and the conversion of readings (section 36.3). These
// are pure functions of bytes. Records come from the firmware of the BMC and may be anything.

/// The key and header of a record (section 43, "SDR record header").
struct SdrHeader {
  std::uint8_t type = 0;
  std::size_t length = 0;  ///< bytes that follow the header, at most 255
};
inline constexpr std::size_t kSdrHeaderSize = 5;
/// kParse: fewer bytes than a header has.
Result<SdrHeader> parse_sdr_header(std::span<const std::uint8_t> bytes);

/// Whether records of this type can describe a sensor with readings: full (01h) and compact (02h)
/// ones. Event-only records (03h), locators and records of vendors do not.
bool describes_sensor(std::uint8_t record_type);

/// How a sensor returns its reading (table 43-1, "Sensor Units 1").
enum class AnalogFormat : std::uint8_t { kUnsigned, kOnesComplement, kTwosComplement, kNone };

/// The constants of the conversion formula.
struct Factors {
  int m = 1;
  int b = 0;
  int b_exponent = 0;
  int r_exponent = 0;

  bool operator==(const Factors&) const = default;
};

/// What a record says of its sensor.
struct Sensor {
  std::uint8_t owner = 0;  ///< slave address of its controller; 20h is the BMC
  std::uint8_t lun = 0;
  std::uint8_t number = 0;
  std::string name;            ///< printable UTF-8
  std::string units;           ///< such as "Watts" or "RPM"
  std::uint8_t base_unit = 0;  ///< table 43-15
  bool percentage = false;     ///< the reading is a percentage of something in that unit
  AnalogFormat format = AnalogFormat::kNone;
  std::uint8_t linearization = 0;
  Factors factors;

  /// The reading is a power or an energy.
  [[nodiscard]] bool is_power_or_energy() const;
  /// Its factors depend on the reading, so they are requested with it (linearization 70h to 7Fh).
  [[nodiscard]] bool has_factors_by_reading() const { return linearization >= 0x70; }
};

/// Parses a full (section 43.1) or compact (section 43.2) sensor record, with its header. A compact
/// one has no factors and therefore the format kNone. kParse: another type of record, or one that
/// is too short.
Result<Sensor> parse_sensor(std::span<const std::uint8_t> record);

/// The answer to "Get Sensor Reading Factors" (section 35.5). kUnavailable, kParse.
Result<Factors> parse_factors(std::span<const std::uint8_t> answer);

/// The raw reading of the answer to "Get Sensor Reading" (section 35.14). kUnavailable also if the
/// sensor is switched off or has no reading at present. kParse.
Result<std::uint8_t> parse_reading(std::span<const std::uint8_t> answer);

/// The value of a raw reading in the units of the sensor. Nothing if the sensor has no analog
/// readings or the result is not finite.
std::optional<double> convert(const Sensor& sensor, const Factors& factors, std::uint8_t raw);

}  // namespace ceems::exporter::ipmi
