#include "exporter/ipmi/sdr.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/ipmi/dcmi.h"

namespace ceems::exporter::ipmi {
namespace {

using View = std::span<const std::uint8_t>;

constexpr std::uint8_t kFullRecord = 0x01;
constexpr std::uint8_t kCompactRecord = 0x02;
// Offsets from 0; the tables of the standard count from 1.
constexpr std::size_t kFullName = 47;
constexpr std::size_t kCompactName = 31;
constexpr std::uint8_t kWatts = 6;
constexpr std::uint8_t kJoules = 7;

/// Table 43-15, sensor unit type codes.
constexpr std::array<std::string_view, 93> kUnits{"unspecified",
                                                  "degrees C",
                                                  "degrees F",
                                                  "degrees K",
                                                  "Volts",
                                                  "Amps",
                                                  "Watts",
                                                  "Joules",
                                                  "Coulombs",
                                                  "VA",
                                                  "Nits",
                                                  "lumen",
                                                  "lux",
                                                  "Candela",
                                                  "kPa",
                                                  "PSI",
                                                  "Newton",
                                                  "CFM",
                                                  "RPM",
                                                  "Hz",
                                                  "microseconds",
                                                  "milliseconds",
                                                  "seconds",
                                                  "minutes",
                                                  "hours",
                                                  "days",
                                                  "weeks",
                                                  "mil",
                                                  "inches",
                                                  "feet",
                                                  "cu in",
                                                  "cu feet",
                                                  "mm",
                                                  "cm",
                                                  "m",
                                                  "cu cm",
                                                  "cu m",
                                                  "liters",
                                                  "fluid ounces",
                                                  "radians",
                                                  "steradians",
                                                  "revolutions",
                                                  "cycles",
                                                  "gravities",
                                                  "ounces",
                                                  "pounds",
                                                  "ft-lb",
                                                  "oz-in",
                                                  "gauss",
                                                  "gilberts",
                                                  "henry",
                                                  "millihenry",
                                                  "farad",
                                                  "microfarad",
                                                  "ohms",
                                                  "siemens",
                                                  "moles",
                                                  "becquerel",
                                                  "PPM",
                                                  "reserved",
                                                  "Decibels",
                                                  "DbA",
                                                  "DbC",
                                                  "gray",
                                                  "sievert",
                                                  "color temp deg K",
                                                  "bits",
                                                  "kilobits",
                                                  "megabits",
                                                  "gigabits",
                                                  "bytes",
                                                  "kilobytes",
                                                  "megabytes",
                                                  "gigabytes",
                                                  "words",
                                                  "dwords",
                                                  "qwords",
                                                  "lines",
                                                  "hits",
                                                  "misses",
                                                  "retries",
                                                  "resets",
                                                  "overruns",
                                                  "underruns",
                                                  "collisions",
                                                  "packets",
                                                  "messages",
                                                  "characters",
                                                  "errors",
                                                  "correctable errors",
                                                  "uncorrectable errors",
                                                  "fatal errors",
                                                  "grams"};

/// Table 43-1, byte 21, bits 5 to 3.
constexpr std::array<std::string_view, 8> kRates{
    "", "/microsecond", "/millisecond", "/second", "/minute", "/hour", "/day", ""};

std::string_view unit_name(std::uint8_t code) {
  return code < kUnits.size() ? kUnits.at(code) : std::string_view("unknown");
}

std::string units_of(std::uint8_t units1, std::uint8_t base, std::uint8_t modifier) {
  std::string text = (units1 & 1U) != 0 ? "% " : "";
  text += unit_name(base);
  const unsigned how = (units1 >> 1U) & 3U;
  if (how == 1) {
    text += fmt::format("/{}", unit_name(modifier));
  } else if (how == 2) {
    text += fmt::format("*{}", unit_name(modifier));
  }
  text += kRates.at((units1 >> 3U) & 7U);
  return text;
}

/// A number of `bits` bits in two's complement.
int signed_of(unsigned value, unsigned bits) {
  const unsigned sign = 1U << (bits - 1);
  return static_cast<int>(value & (sign - 1)) - static_cast<int>(value & sign);
}

/// M and B have their low bits in one byte and two high bits at the top of the next.
int ten_bits(std::uint8_t low, std::uint8_t high) {
  return signed_of(low | ((high & 0xC0U) << 2U), 10);
}

Factors factors_at(View bytes) {  // M, M and tolerance, B, B and accuracy, accuracy, exponents
  return {.m = ten_bits(bytes[0], bytes[1]),
          .b = ten_bits(bytes[2], bytes[3]),
          .b_exponent = signed_of(bytes[5] & 0x0FU, 4),
          .r_exponent = signed_of(bytes[5] >> 4U, 4)};
}

void append_latin1(std::string& text, std::uint8_t byte) {
  if (byte < 0x80) {
    text.push_back(static_cast<char>(byte));
  } else {
    text.push_back(static_cast<char>(0xC0U | (byte >> 6U)));
    text.push_back(static_cast<char>(0x80U | (byte & 0x3FU)));
  }
}

/// The ID string of a record that has its type and length byte at `at` (section 43.15). A string
/// that is longer than the record is cut.
std::string id_string(View record, std::size_t at) {
  const std::uint8_t head = record[at];
  const std::size_t characters = head & 0x1FU;
  const View data = record.subspan(at + 1);
  std::string text;
  switch (head >> 6U) {
    case 1: {  // BCD plus: two characters in a byte, the first in the high bits
      constexpr std::string_view kDigits = "0123456789 -.:,_";
      for (std::size_t i = 0; i < characters && i / 2 < data.size(); ++i) {
        text.push_back(kDigits.at((data[i / 2] >> (i % 2 == 0 ? 4U : 0U)) & 0x0FU));
      }
      break;
    }
    case 2: {  // 6-bit ASCII, packed, with the low bits first
      for (std::size_t i = 0; i < characters && (i * 6 + 5) / 8 < data.size(); ++i) {
        const std::size_t bit = i * 6;
        unsigned pair = data[bit / 8];
        if (bit / 8 + 1 < data.size()) {
          pair |= static_cast<unsigned>(data[bit / 8 + 1]) << 8U;
        }
        text.push_back(static_cast<char>(0x20U + ((pair >> (bit % 8)) & 0x3FU)));
      }
      break;
    }
    default:  // 8-bit ASCII and Latin 1; "Unicode" without a stated encoding is in practice the
              // same
      for (std::size_t i = 0; i < characters && i < data.size() && data[i] != 0; ++i) {
        append_latin1(text, data[i]);
      }
  }
  return printable(trim(text));
}

double linearized(std::uint8_t linearization, double x) {
  switch (linearization) {
    case 0x01:
      return std::log(x);
    case 0x02:
      return std::log10(x);
    case 0x03:
      return std::log2(x);
    case 0x04:
      return std::exp(x);
    case 0x05:
      return std::pow(10.0, x);
    case 0x06:
      return std::exp2(x);
    case 0x07:
      return 1.0 / x;
    case 0x08:
      return x * x;
    case 0x09:
      return x * x * x;
    case 0x0a:
      return std::sqrt(x);
    case 0x0b:
      return std::cbrt(x);
    default:  // linear, or linear with the factors of this reading
      return x;
  }
}

}  // namespace

bool Sensor::is_power_or_energy() const {
  return (base_unit == kWatts || base_unit == kJoules) && !percentage;
}

Result<SdrHeader> parse_sdr_header(View bytes) {
  if (bytes.size() < kSdrHeaderSize) {
    return fail(ErrorCode::kParse, "expected a record of at least {} bytes, got {}", kSdrHeaderSize,
                bytes.size());
  }
  return SdrHeader{.type = bytes[3], .length = bytes[4]};
}

bool describes_sensor(std::uint8_t record_type) {
  return record_type == kFullRecord || record_type == kCompactRecord;
}

Result<Sensor> parse_sensor(View record) {
  CEEMS_TRY(header, parse_sdr_header(record));
  if (!describes_sensor(header.type)) {
    return fail(ErrorCode::kParse, "expected a full or compact sensor record, got type {:#04x}",
                header.type);
  }
  const bool full = header.type == kFullRecord;
  const std::size_t name_at = full ? kFullName : kCompactName;
  record = record.first(std::min(record.size(), kSdrHeaderSize + header.length));
  if (record.size() <= name_at) {
    return fail(ErrorCode::kParse, "expected a sensor record of at least {} bytes, got {}",
                name_at + 1, record.size());
  }
  const std::uint8_t units1 = record[20];
  Sensor sensor{.owner = record[5],
                .lun = static_cast<std::uint8_t>(record[6] & 3U),
                .number = record[7],
                .name = id_string(record, name_at),
                .units = units_of(units1, record[21], record[22]),
                .base_unit = record[21],
                .percentage = (units1 & 1U) != 0,
                .factors = {}};
  if (sensor.name.empty()) {
    sensor.name = fmt::format("sensor {}", sensor.number);
  }
  if (full) {
    sensor.format = static_cast<AnalogFormat>(units1 >> 6U);
    sensor.linearization = record[23] & 0x7FU;
    sensor.factors = factors_at(record.subspan(24));
  }
  return sensor;
}

Result<Factors> parse_factors(View answer) {
  CEEMS_TRY(check_completion_code(answer));
  constexpr std::size_t kSize = 8;
  if (answer.size() < kSize) {
    return fail(ErrorCode::kParse, "expected reading factors of {} bytes, got {}", kSize,
                answer.size());
  }
  return factors_at(answer.subspan(2));
}

Result<std::uint8_t> parse_reading(View answer) {
  CEEMS_TRY(check_completion_code(answer));
  constexpr std::uint8_t kScanning = 0x40;
  constexpr std::uint8_t kUnavailable = 0x20;
  if (answer.size() < 3) {
    return fail(ErrorCode::kParse, "expected a reading of at least 3 bytes, got {}", answer.size());
  }
  if ((answer[2] & kScanning) == 0 || (answer[2] & kUnavailable) != 0) {
    return fail(ErrorCode::kUnavailable, "the sensor has no reading at present (state {:#04x})",
                answer[2]);
  }
  return answer[1];
}

std::optional<double> convert(const Sensor& sensor, const Factors& factors, std::uint8_t raw) {
  int x = raw;
  switch (sensor.format) {
    case AnalogFormat::kUnsigned:
      break;
    case AnalogFormat::kOnesComplement:
      x = (raw & 0x80U) != 0 ? -static_cast<int>(~raw & 0x7FU) : raw;
      break;
    case AnalogFormat::kTwosComplement:
      x = signed_of(raw, 8);
      break;
    case AnalogFormat::kNone:
      return std::nullopt;
  }
  // y = L[(M x + B 10^K1) 10^K2]
  const double y = linearized(sensor.linearization,
                              (factors.m * x + factors.b * std::pow(10.0, factors.b_exponent)) *
                                  std::pow(10.0, factors.r_exponent));
  return std::isfinite(y) ? std::optional(y) : std::nullopt;
}

}  // namespace ceems::exporter::ipmi
