#include "exporter/ipmi/sensor_reader.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "exporter/ipmi/dcmi.h"

namespace ceems::exporter::ipmi {
namespace {

constexpr std::uint8_t kBmc = 0x20;      // slave address
constexpr std::uint8_t kStorage = 0x0a;  // netfn
constexpr std::uint8_t kGetRepositoryInfo = 0x20;
constexpr std::uint8_t kReserveRepository = 0x22;
constexpr std::uint8_t kGetRecord = 0x23;
constexpr std::uint8_t kSensorEvent = 0x04;  // netfn
constexpr std::uint8_t kGetFactors = 0x23;
constexpr std::uint8_t kGetReading = 0x2d;
constexpr std::uint8_t kReservationCancelled = 0xc5;
constexpr std::uint16_t kFirst = 0x0000;
constexpr std::uint16_t kLast = 0xffff;
constexpr std::size_t kMaxRecords = 4096;  // more than any BMC has
constexpr int kMaxReservations = 8;        // of one walk
constexpr std::size_t kMaxPart = 32;       // bytes of a record in one request
constexpr std::size_t kSmallestPart = 8;
constexpr auto kCheckPeriod = std::chrono::minutes(10);

std::uint16_t word(std::uint8_t low, std::uint8_t high) {
  return static_cast<std::uint16_t>(low | (static_cast<unsigned>(high) << 8U));
}
std::uint8_t low(std::uint16_t value) {
  return static_cast<std::uint8_t>(value & 0xffU);
}
std::uint8_t high(std::uint16_t value) {
  return static_cast<std::uint8_t>(value >> 8U);
}

/// Completion codes of a BMC that cannot return a part of this size (table 5-2): the
/// request is then repeated for less.
bool means_too_large(std::uint8_t code) {
  return code == 0xc7 || code == 0xc8 || code == 0xca || code == 0xff;
}

}  // namespace

/// Visits the records of the repository, each once.
class SensorReader::Walk {
 public:
  Walk(Device& device, const std::stop_token& stop) : device_(device), stop_(stop) {}

  Result<std::vector<Sensor>> sensors() {
    CEEMS_TRY(reserve());
    std::vector<Sensor> found;
    std::set<std::uint16_t> visited;
    for (std::uint16_t id = kFirst; id != kLast;) {
      if (!visited.insert(id).second || visited.size() > kMaxRecords) {
        log::warn("the list of sensors of the BMC has no end; the sensors found so far are used",
                  {{"collector", "ipmi_dcmi"}, {"records", visited.size()}});
        break;
      }
      CEEMS_TRY_IN(fmt::format("record {}", id), header, part(id, 0, kSdrHeaderSize));
      const std::uint16_t next = next_;
      if (auto sensor = rest(id, std::move(header))) {
        if (*sensor) {
          found.push_back(**std::move(sensor));
        }
      } else if (transport_failed_) {
        return fail(std::move(sensor).error().with_context(fmt::format("record {}", id)));
      } else {
        log::debug("record of a sensor left out",
                   {{"collector", "ipmi_dcmi"}, {"record", id}, {"err", sensor.error().message}});
      }
      id = next;
    }
    return found;
  }

 private:
  Result<Bytes> ask(const Request& request) {
    auto answer = device_.ask(request, stop_);
    transport_failed_ = !answer;
    return answer;
  }

  Result<> reserve() {
    reservation_ = 0;
    CEEMS_TRY(answer, ask({.netfn = kStorage, .command = kReserveRepository, .data = {}}));
    // A BMC without this command needs no reservation.
    if (answer.size() >= 3 && answer.front() == 0) {
      reservation_ = word(answer[1], answer[2]);
    }
    return {};
  }

  /// `size` bytes of a record from `offset` on, or fewer, but at least one. Sets next_.
  Result<Bytes> part(std::uint16_t id, std::size_t offset, std::size_t size) {
    while (true) {
      CEEMS_TRY(answer, ask({.netfn = kStorage,
                             .command = kGetRecord,
                             .data = {low(reservation_), high(reservation_), low(id), high(id),
                                      static_cast<std::uint8_t>(offset),
                                      static_cast<std::uint8_t>(size)}}));
      const std::uint8_t code = answer.front();
      if (code == kReservationCancelled && ++reservations_ < kMaxReservations) {
        CEEMS_TRY(reserve());
        continue;
      }
      if (means_too_large(code) && size > kSmallestPart) {
        size = std::max(size / 2, kSmallestPart);
        part_size_ = std::min(part_size_, size);
        continue;
      }
      CEEMS_TRY(check_completion_code(answer));
      if (answer.size() < 4) {
        return fail(ErrorCode::kParse, "expected a part of a record, got {} bytes", answer.size());
      }
      next_ = word(answer[1], answer[2]);
      answer.erase(answer.begin(), answer.begin() + 3);
      if (answer.size() > size) {
        answer.resize(size);
      }
      return answer;
    }
  }

  /// The sensor of the record; nothing if it describes none.
  Result<std::optional<Sensor>> rest(std::uint16_t id, Bytes record) {
    CEEMS_TRY(header, parse_sdr_header(record));
    if (!describes_sensor(header.type)) {
      return std::nullopt;
    }
    const std::size_t whole = kSdrHeaderSize + header.length;
    while (record.size() < whole && record.size() <= 0xff) {
      CEEMS_TRY(more, part(id, record.size(), std::min(part_size_, whole - record.size())));
      record.insert(record.end(), more.begin(), more.end());
    }
    CEEMS_TRY(sensor, parse_sensor(record));
    return sensor;
  }

  Device& device_;
  const std::stop_token& stop_;
  std::uint16_t reservation_ = 0;
  std::uint16_t next_ = kLast;
  int reservations_ = 0;
  std::size_t part_size_ = kMaxPart;
  bool transport_failed_ = false;  // the last exchange had no answer
};

SensorReader::SensorReader(std::unique_ptr<Device> device,
                           SensorSelection selection,
                           std::chrono::nanoseconds max_age,
                           const Clock& clock)
    : device_(std::move(device)),
      selection_(std::move(selection)),
      max_age_(max_age),
      clock_(clock) {}

std::vector<Sensor> SensorReader::sensors() const {
  std::vector<Sensor> all;
  for (const Known& known : known_) {
    all.push_back(known.sensor);
  }
  return all;
}

Result<std::vector<SensorReading>> SensorReader::read(const std::stop_token& stop) {
  CEEMS_TRY_IN("list of sensors", listed_ ? refresh(stop) : list(stop));
  std::optional<Error> error;
  bool any = false;
  for (Known& known : known_) {
    const auto value = value_of(known.sensor, stop);
    if (value) {
      known.value = *value;
      known.time = clock_.steady_now();
      any = true;
      continue;
    }
    if (!error) {
      error = Error(value.error()).with_context("sensor " + known.sensor.name);
    }
    if (value.error().code == ErrorCode::kTimeout || stop.stop_requested()) {
      break;  // the others would wait as long
    }
  }
  if (!any) {
    return fail(error ? *std::move(error)
                      : Error{ErrorCode::kNoData, "the BMC has none of the selected sensors"});
  }
  std::vector<SensorReading> readings;
  const auto now = clock_.steady_now();
  for (const Known& known : known_) {
    if (known.value > 0 && known.time && now - *known.time <= max_age_) {
      readings.push_back({known.sensor.name, known.sensor.units, known.value, *known.time});
    }
  }
  return readings;
}

/// Reads all records.
Result<> SensorReader::list(const std::stop_token& stop) {
  CEEMS_TRY(info,
            device_->ask({.netfn = kStorage, .command = kGetRepositoryInfo, .data = {}}, stop));
  CEEMS_TRY(check_completion_code(info));
  CEEMS_TRY(found, Walk(*device_, stop).sensors());
  take(std::move(found));
  repository_ = info;
  listed_ = true;
  next_check_ = clock_.steady_now() + kCheckPeriod;
  return {};
}

/// Lists the sensors again if the repository has changed. If that fails, the old list is used.
Result<> SensorReader::refresh(const std::stop_token& stop) {
  if (clock_.steady_now() < next_check_) {
    return {};
  }
  next_check_ = clock_.steady_now() + kCheckPeriod;
  const auto info =
      device_->ask({.netfn = kStorage, .command = kGetRepositoryInfo, .data = {}}, stop);
  if (info && check_completion_code(*info) && *info != repository_) {
    if (const auto listed = list(stop); !listed) {
      log::warn("sensors of the BMC cannot be listed again; the known ones are used",
                {{"collector", "ipmi_dcmi"}, {"err", listed.error().message}});
    }
  }
  return {};
}

/// Keeps the selected sensors, and the readings of those that were known before.
void SensorReader::take(std::vector<Sensor> found) {
  std::ranges::stable_sort(
      found, {}, [](const Sensor& sensor) { return std::pair(sensor.number, sensor.lun); });
  std::vector<Known> chosen;
  std::set<std::pair<std::string, std::string>> names;
  for (Sensor& sensor : found) {
    const bool named =
        std::ranges::find(selection_.numbers, sensor.number) != selection_.numbers.end();
    const bool wanted = named || (selection_.power_and_energy && sensor.is_power_or_energy());
    if (!wanted || sensor.owner != kBmc || sensor.format == AnalogFormat::kNone) {
      if (named) {
        log::warn("sensor has no readings that can be exported",
                  {{"collector", "ipmi_dcmi"}, {"number", sensor.number}, {"name", sensor.name}});
      }
      continue;
    }
    const auto same = [&](const Known& other) {
      return other.sensor.number == sensor.number && other.sensor.lun == sensor.lun;
    };
    if (std::ranges::any_of(chosen, same)) {
      continue;
    }
    if (!names.emplace(sensor.name, sensor.units).second) {
      sensor.name += fmt::format(" #{}", sensor.number);
      names.emplace(sensor.name, sensor.units);
    }
    const auto before = std::ranges::find_if(known_, same);
    Known known = before != known_.end() && before->sensor.name == sensor.name ? *before : Known{};
    known.sensor = std::move(sensor);
    chosen.push_back(std::move(known));
  }
  for (const std::uint8_t number : selection_.numbers) {
    if (std::ranges::none_of(found,
                             [&](const Sensor& sensor) { return sensor.number == number; })) {
      log::warn("the BMC has no sensor with this number",
                {{"collector", "ipmi_dcmi"}, {"number", number}});
    }
  }
  known_ = std::move(chosen);
  log::info("sensors of the BMC found",
            {{"collector", "ipmi_dcmi"}, {"sensors", found.size()}, {"selected", known_.size()}});
}

Result<double> SensorReader::value_of(const Sensor& sensor, const std::stop_token& stop) {
  const auto answer = device_->ask(
      {.netfn = kSensorEvent, .command = kGetReading, .data = {sensor.number}, .lun = sensor.lun},
      stop);
  CEEMS_TRY(raw, answer ? parse_reading(*answer) : fail(answer.error()));
  Factors factors = sensor.factors;
  if (sensor.has_factors_by_reading()) {
    const auto reply = device_->ask({.netfn = kSensorEvent,
                                     .command = kGetFactors,
                                     .data = {sensor.number, raw},
                                     .lun = sensor.lun},
                                    stop);
    CEEMS_TRY(of_reading, reply ? parse_factors(*reply) : fail(reply.error()));
    factors = of_reading;
  }
  const auto value = convert(sensor, factors, raw);
  if (!value) {
    return fail(ErrorCode::kParse, "the reading {:#04x} has no finite value", raw);
  }
  return *value;
}

}  // namespace ceems::exporter::ipmi
