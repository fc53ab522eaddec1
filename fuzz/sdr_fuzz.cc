// Sensor records, readings and whole repositories as the firmware of a BMC may return them: never a
// crash, an endless walk or an infinite value.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "exporter/ipmi/fake_port.h"
#include "exporter/ipmi/sdr.h"
#include "exporter/ipmi/sensor_reader.h"

namespace {

namespace ipmi = ceems::exporter::ipmi;

void check_record(std::span<const std::uint8_t> bytes) {
  static_cast<void>(ipmi::parse_reading(bytes));
  const auto sensor = ipmi::parse_sensor(bytes);
  if (!sensor) {
    return;
  }
  CEEMS_CHECK(!sensor->name.empty() && ceems::is_utf8(sensor->name));
  const auto factors = ipmi::parse_factors(bytes);
  for (unsigned raw = 0; raw <= 0xff; ++raw) {
    const auto value = ipmi::convert(*sensor, factors ? *factors : sensor->factors,
                                     static_cast<std::uint8_t>(raw));
    CEEMS_CHECK(!value || std::isfinite(*value));
  }
}

/// A BMC that answers each request with the next bytes of the input: a length, then that many.
void check_walk(std::span<const std::uint8_t> rest) {
  auto port = std::make_unique<ipmi::FakePort>([&rest](const ipmi::Request& request, long id) {
    if (rest.empty()) {
      return std::vector<ipmi::Message>{};
    }
    const std::size_t size = std::min<std::size_t>(rest.front(), rest.size() - 1);
    const auto data = rest.subspan(1, size);
    rest = rest.subspan(1 + size);
    return std::vector<ipmi::Message>{
        ipmi::answer_to(request, id, ipmi::Bytes(data.begin(), data.end()))};
  });
  ipmi::SensorReader reader(std::make_unique<ipmi::Device>(
                                [&port]() -> ceems::Result<std::unique_ptr<ipmi::Port>> {
                                  if (!port) {
                                    return ceems::fail(ceems::ErrorCode::kNotFound, "gone");
                                  }
                                  return std::move(port);
                                },
                                std::chrono::seconds(1)),
                            {.power_and_energy = true, .numbers = {1, 2, 3}},
                            std::chrono::minutes(5), ceems::real_clock());
  for (int i = 0; i < 2; ++i) {
    if (const auto readings = reader.read({})) {
      for (const ipmi::SensorReading& reading : *readings) {
        CEEMS_CHECK(reading.value > 0 && std::isfinite(reading.value));
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ceems::log::configure(ceems::log::Level::kError, ceems::log::Format::kLogfmt);
  check_record(std::span(data, size));
  check_walk(std::span(data, size));
  return 0;
}
