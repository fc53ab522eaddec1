#include "tool/validate/meter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"
#include "base/time/rfc3339.h"
#include "exporter/ipmi/conversation.h"
#include "exporter/ipmi/dcmi.h"
#include "host/hwmon.h"
#include "host/powercap.h"
#include "host/read_file.h"
#include "tsdb/client.h"

namespace ceems::tool::validate {
namespace {

constexpr std::size_t kMaxShownLine = 80;

std::optional<double> time_of(std::string_view text) {
  if (const auto seconds = parse_double(text)) {
    return seconds;
  }
  const auto ms = parse_rfc3339_ms(text);
  return ms ? std::optional(static_cast<double>(*ms) / kSecondMs) : std::nullopt;
}

std::optional<WattReading> reading_of(std::string_view line) {
  const auto fields = split(line, line.find(';') == std::string_view::npos ? ',' : ';');
  if (fields.size() < 2) {
    return std::nullopt;
  }
  const auto time = time_of(trim(fields[0]));
  const auto watts = parse_double(trim(fields[1]));
  return time && watts ? std::optional(WattReading{.time = *time, .watts = *watts}) : std::nullopt;
}

namespace ipmi = exporter::ipmi;
namespace json = boost::json;

constexpr std::chrono::seconds kMeterTimeout{10};
constexpr std::size_t kMaxAnswer = std::size_t{4} << 20U;
constexpr double kMicro = 1e-6;
constexpr std::string_view kMeters = "ipmi, redfish, hwmon[:FILE], psys, csv:FILE or prometheus";

/// The BMC, by "Get Power Reading" of DCMI through the kernel's driver.
class IpmiMeter final : public ReferenceMeter {
 public:
  explicit IpmiMeter(std::string dev)
      : device_([dev = std::move(dev)] { return ipmi::open_ipmi(dev, 0, host::open_file); },
                kMeterTimeout) {}
  Result<> open() { return device_.open(); }
  Result<std::optional<double>> read() override {
    CEEMS_TRY_IN("IPMI", answer, device_.ask(ipmi::power_reading_request(), {}));
    CEEMS_TRY_IN("IPMI", power, ipmi::decode_power_reading(answer));
    CEEMS_TRY_IN("IPMI", watts, checked_watts(power.current));
    return std::optional(watts);
  }

 private:
  ipmi::Device device_;
};

class RedfishMeter final : public ReferenceMeter {
 public:
  RedfishMeter(std::string url, std::unique_ptr<net::Client> client)
      : url_(std::move(url)), client_(std::move(client)) {}
  Result<std::optional<double>> read() override {
    CEEMS_TRY_IN("Redfish", answer, client_->get(url_, {{"Accept", "application/json"}}));
    if (answer.status != 200) {
      return fail(ErrorCode::kUnavailable, "Redfish: HTTP status {}", answer.status);
    }
    CEEMS_TRY_IN("Redfish", watts, redfish_watts(answer.body));
    return std::optional(watts);
  }

 private:
  std::string url_;
  std::unique_ptr<net::Client> client_;
};

class HwmonMeter final : public ReferenceMeter {
 public:
  explicit HwmonMeter(std::string file) : file_(std::move(file)) {}
  Result<std::optional<double>> read() override {
    CEEMS_TRY(microwatts, host::read_hwmon_value(file_));
    CEEMS_TRY_IN(file_, watts, checked_watts(kMicro * static_cast<double>(microwatts)));
    return std::optional(watts);
  }

 private:
  std::string file_;
};

/// The energy counter of the platform, which some laptops and workstations have.
class PsysMeter final : public ReferenceMeter {
 public:
  PsysMeter(host::Powercap powercap, std::size_t zone, const Clock& clock)
      : powercap_(std::move(powercap)), zone_(zone), clock_(clock) {}
  Result<std::optional<double>> read() override {
    CEEMS_TRY(energy, powercap_.energy_uj(zone_));
    const auto time = clock_.steady_now();
    const std::uint64_t before = std::exchange(energy_, energy);
    const auto begin = std::exchange(time_, time);
    if (!begin || time <= *begin) {
      return std::optional<double>();
    }
    const std::uint64_t range = powercap_.zones().at(zone_).max_energy_range_uj;
    const std::uint64_t used = energy >= before ? energy - before : energy + (range - before);
    CEEMS_TRY_IN("psys", watts,
                 checked_watts(kMicro * static_cast<double>(used) /
                               std::chrono::duration<double>(time - *begin).count()));
    return std::optional(watts);
  }

 private:
  host::Powercap powercap_;
  std::size_t zone_;
  const Clock& clock_;
  std::uint64_t energy_ = 0;
  std::optional<Clock::SteadyTime> time_;
};

class CsvMeter final : public ReferenceMeter {
 public:
  CsvMeter(std::string file, double offset) : file_(std::move(file)), offset_(offset) {}
  Result<std::optional<double>> read() override { return std::optional<double>(); }
  Result<std::vector<WattReading>> late() override {
    CEEMS_TRY(text, host::read_file(file_));
    CEEMS_TRY_IN(file_, readings, parse_csv_readings(text, offset_));
    return readings;
  }

 private:
  std::string file_;
  double offset_;
};

/// A series of a PDU or of another exporter.
class PrometheusMeter final : public ReferenceMeter {
 public:
  PrometheusMeter(std::string url,
                  std::unique_ptr<tsdb::Transport> transport,
                  std::string query,
                  const Clock& clock)
      : client_(std::move(url), std::move(transport), clock),
        query_(std::move(query)),
        clock_(clock) {}
  Result<std::optional<double>> read() override {
    CEEMS_TRY_IN("--meter.query", answer,
                 client_.query({.query = query_, .time_ms = clock_.now_ms()}));
    if (answer.series.size() != 1) {
      return fail(ErrorCode::kNoData, "--meter.query: expected one series, got {}",
                  answer.series.size());
    }
    CEEMS_TRY_IN("--meter.query", watts,
                 checked_watts(answer.series.front().samples.front().value));
    return std::optional(watts);
  }

 private:
  tsdb::Client client_;
  std::string query_;
  const Clock& clock_;
};

/// The sensors of ACPI power meters.
std::vector<std::string> power_meters(const std::string& sys) {
  std::vector<std::string> files;
  const auto sensors = host::find_hwmon_sensors(sys);
  for (const auto& sensor : sensors.value_or(std::vector<host::HwmonSensor>())) {
    if (sensor.chip_name == "power_meter" && sensor.file.type == host::HwmonType::kPower) {
      files.push_back(sensor.path);
    }
  }
  return files;
}

Result<std::string> only_power_meter(const std::string& sys) {
  const auto files = power_meters(sys);
  if (files.empty()) {
    return fail(ErrorCode::kNotFound, "--meter: no ACPI power meter below {}/class/hwmon", sys);
  }
  if (files.size() > 1) {
    return fail(ErrorCode::kInvalidArgument,
                "--meter: {} power meters, of which some may be parts of the node: name one, such "
                "as hwmon:{}",
                files.size(), files.front());
  }
  return files.front();
}

Result<std::unique_ptr<ReferenceMeter>> open_psys(const std::string& sys, const Clock& clock) {
  host::Powercap powercap(sys);
  CEEMS_TRY(powercap.scan());
  const auto& zones = powercap.zones();
  const auto zone = std::ranges::find(zones, "psys", &host::PowercapZone::name);
  if (zone == zones.end()) {
    return fail(ErrorCode::kNotFound, "--meter: no zone 'psys' below {}/class/powercap", sys);
  }
  const auto index = static_cast<std::size_t>(zone - zones.begin());
  CEEMS_TRY(powercap.energy_uj(index));
  return std::make_unique<PsysMeter>(std::move(powercap), index, clock);
}

Result<> require(const std::string& value, std::string_view meter, std::string_view flag) {
  if (value.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--meter {} needs {}", meter, flag);
  }
  return {};
}

Result<std::unique_ptr<ReferenceMeter>> open_redfish(const MeterOptions& options) {
  CEEMS_TRY(
      require(options.url, "redfish", "--meter.url, of a Power or EnvironmentMetrics resource"));
  net::ClientOptions client_options = options.client;
  client_options.timeout = kMeterTimeout;
  client_options.max_response_bytes = kMaxAnswer;
  CEEMS_TRY(client, net::Client::create(std::move(client_options)));
  return std::make_unique<RedfishMeter>(options.url, std::move(client));
}

Result<std::unique_ptr<ReferenceMeter>> open_prometheus(const MeterOptions& options,
                                                        const Clock& clock) {
  CEEMS_TRY(require(options.url, "prometheus", "--meter.url"));
  CEEMS_TRY(require(options.query, "prometheus", "--meter.query"));
  net::ClientOptions client_options = options.client;
  client_options.timeout = kMeterTimeout;
  CEEMS_TRY(transport, tsdb::http_transport(std::move(client_options)));
  return std::make_unique<PrometheusMeter>(options.url, std::move(transport), options.query, clock);
}

}  // namespace

Result<double> checked_watts(double watts) {
  if (!(watts > 0 && watts <= kMaxMeterWatts)) {
    return fail(ErrorCode::kParse, "expected watts above 0 and up to {}, got {}", kMaxMeterWatts,
                watts);
  }
  return watts;
}

Result<std::vector<WattReading>> parse_csv_readings(std::string_view text, double offset) {
  std::vector<WattReading> readings;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = trim(take_until(text, '\n'));
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const auto reading = reading_of(line);
    if (!reading && number == 1) {
      continue;
    }
    if (!reading) {
      return fail(ErrorCode::kParse, "line {}: expected 'time,watts', got '{}'", number,
                  printable(line, kMaxShownLine));
    }
    CEEMS_TRY_IN(fmt::format("line {}", number), watts, checked_watts(reading->watts));
    readings.push_back({.time = reading->time + offset, .watts = watts});
  }
  if (readings.empty()) {
    return fail(ErrorCode::kParse, "no readings");
  }
  std::ranges::stable_sort(readings, {}, &WattReading::time);
  return readings;
}

std::string_view kind_of_meter(std::string_view meter) {
  return meter.substr(0, meter.find(':'));
}

Result<std::unique_ptr<ReferenceMeter>> open_meter(const MeterOptions& options,
                                                   const Clock& clock) {
  const std::string_view kind = kind_of_meter(options.meter);
  const std::string argument =
      kind.size() < options.meter.size() ? options.meter.substr(kind.size() + 1) : "";
  if (kind == "ipmi" && argument.empty()) {
    auto meter = std::make_unique<IpmiMeter>(options.dev);
    CEEMS_TRY(meter->open());
    return meter;
  }
  if (kind == "redfish" && argument.empty()) {
    return open_redfish(options);
  }
  if (kind == "hwmon") {
    CEEMS_TRY(file,
              argument.empty() ? only_power_meter(options.sys) : Result<std::string>(argument));
    return std::make_unique<HwmonMeter>(std::move(file));
  }
  if (kind == "psys" && argument.empty()) {
    return open_psys(options.sys, clock);
  }
  if (kind == "csv" && !argument.empty()) {
    return std::make_unique<CsvMeter>(argument, options.csv_offset);
  }
  if (kind == "prometheus" && argument.empty()) {
    return open_prometheus(options, clock);
  }
  return fail(ErrorCode::kInvalidArgument, "--meter: expected {}, got '{}'", kMeters,
              printable(options.meter));
}

std::vector<std::string> meters_of_node(const MeterOptions& options) {
  std::vector<std::string> found;
  for (const char* meter : {"ipmi", "hwmon", "psys"}) {
    MeterOptions asked = options;
    asked.meter = meter;
    if (open_meter(asked, real_clock())) {
      found.emplace_back(meter);
    }
  }
  return found;
}

bool is_independent(std::string_view meter, const std::vector<EnergySource>& sources) {
  const std::string_view kind = kind_of_meter(meter);
  const bool of_bmc = kind == "ipmi" || kind == "redfish" || kind == "hwmon";
  return std::ranges::none_of(sources, [&](const EnergySource& source) {
    if (source.domain != "node") {
      return false;
    }
    const bool bmc = source.kind.starts_with("ipmi") || source.kind.starts_with("redfish") ||
                     source.kind == "hwmon";
    return (of_bmc && bmc) || (kind == "psys" && source.kind == "rapl");
  });
}

Result<double> redfish_watts(std::string_view text) {
  boost::system::error_code failed;
  const json::value document = json::parse(json::string_view(text.data(), text.size()), failed);
  if (failed || !document.is_object()) {
    return fail(ErrorCode::kParse, "expected a JSON object");
  }
  const auto at = [](const json::value* value, const char* key) -> const json::value* {
    const json::object* object = value == nullptr ? nullptr : value->if_object();
    return object == nullptr ? nullptr : object->if_contains(key);
  };
  std::vector<const json::value*> candidates;
  if (const json::value* control = at(&document, "PowerControl");
      control != nullptr && control->is_array()) {
    for (const json::value& entry : control->get_array()) {
      candidates.push_back(at(&entry, "PowerConsumedWatts"));
    }
  }
  candidates.push_back(at(at(&document, "PowerWatts"), "Reading"));
  candidates.push_back(at(&document, "Reading"));
  for (const json::value* candidate : candidates) {
    if (candidate != nullptr && candidate->is_number()) {
      return checked_watts(candidate->to_number<double>(failed));
    }
  }
  return fail(
      ErrorCode::kNoData,
      "the resource has no PowerControl[].PowerConsumedWatts, PowerWatts.Reading or Reading");
}

}  // namespace ceems::tool::validate
