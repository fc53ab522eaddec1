#include "exporter/collectors/ipmi_dcmi.h"

#include <linux/capability.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/collectors/power_series.h"
#include "exporter/energy/meter/held_power.h"
#include "exporter/ipmi/conversation.h"
#include "exporter/ipmi/power_command.h"
#include "exporter/source/privileged_open.h"
#include "exporter/source/slow_source.h"
#include "host/read_file.h"
#include "os/privileges.h"

namespace ceems::exporter {
namespace {

using ipmi::Power;

constexpr auto kDevicePeriod = std::chrono::seconds(5);
constexpr auto kCommandPeriod = std::chrono::seconds(10);  // starting a process costs more
constexpr int kCommandSaves = 5;                           // times the device's fresh_enough
constexpr int kSensorSaves = 5;

constexpr auto kSensorPeriod = std::chrono::seconds(10);  // there may be dozens
constexpr auto kDcmiMaxAge = std::chrono::minutes(5);

const metrics::Desc kSensorReading{
    "ceems_ipmi_sensor_reading_current",
    "Reading of a sensor of the BMC, in the unit of the label sensorunits.",
    metrics::Type::kGauge,
    {"hostname", "sensorname", "sensorunits"}};

/// How power is read; determined at the start.
struct PowerSetup {
  std::unique_ptr<ipmi::PowerReader> reader;
  std::unique_ptr<ipmi::SensorReader> sensors;  ///< null if none is wanted
  std::vector<os::Capability> capabilities;
  std::chrono::milliseconds period = kDevicePeriod;
  bool by_command = false;
  bool node_power = true;  ///< false: the tool reports the power of the whole system
};

class IpmiDcmiCollector final : public Collector {
 public:
  IpmiDcmiCollector(const CollectorContext& context,
                    PowerSetup setup,
                    const IpmiDcmiOptions& options)
      : clock_(*context.clock),
        hostname_(context.hostname),
        capabilities_(std::move(setup.capabilities)),
        series_(context.power_names,
                "ceems_ipmi_dcmi",
                {"Power of the node as its BMC reads it now.",
                 "Lowest power of the node in the sampling period of its BMC.",
                 "Highest power of the node in the sampling period of its BMC.",
                 "Average power of the node over the sampling period of its BMC."},
                {"hostname"}),
        reader_(std::move(setup.reader)),
        sensor_reader_(std::move(setup.sensors)),
        source_({.collector = "ipmi_dcmi",
                 .source = "ipmi",
                 .period = setup.period,
                 .max_age = kDcmiMaxAge,
                 .patience = options.patience,
                 .fresh_enough = setup.by_command ? kCommandSaves * options.fresh_enough
                                                  : options.fresh_enough},
                clock_,
                [this](const std::stop_token& stop) { return read(stop); }) {
    if (setup.node_power) {
      meter_ = std::make_shared<energy::PublishedPowerMeter>(
          energy::SourceInfo{.name = "ipmi_dcmi",
                             .domain = energy::Domain::kNode,
                             .method = energy::Method::kMeasured,
                             .rank = energy::kIpmiRank});
    }
    if (sensor_reader_) {
      sensors_.emplace(SlowSourceOptions{.collector = "ipmi_dcmi",
                                         .source = "ipmi_sensors",
                                         .period = kSensorPeriod,
                                         .max_age = kDcmiMaxAge,
                                         .patience = options.patience,
                                         .fresh_enough = kSensorSaves * options.fresh_enough},
                       clock_,
                       [this](const std::stop_token& stop) { return sensor_reader_->read(stop); });
    }
  }

  void start() override {
    source_.start();
    if (sensors_) {
      sensors_->start();
    }
  }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    source_.wait_first(deadline);
    if (sensors_) {
      sensors_->wait_first(deadline);
    }
  }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override { return capabilities_; }

  [[nodiscard]] Sources sources() const override {
    return meter_ ? Sources{.meters = {meter_}} : Sources{};
  }

  Result<> collect(metrics::Sink& sink) override {
    const bool has_sensors = add_sensors(sink);
    const auto value = source_.value();
    if (!value) {
      if (no_current_ || has_sensors) {
        return {};  // the BMC answers, but has no power reading
      }
      const std::string error = source_.last_error();
      return fail(ErrorCode::kNoData, "{}", error.empty() ? "no reading yet" : error);
    }
    const Power& power = value->value;
    series_.add(sink, {power.current, power.minimum, power.maximum, power.average}, {hostname_});
    return {};
  }

  [[nodiscard]] std::vector<SourceAge> source_ages() const override {
    auto ages = source_.ages();
    if (sensors_) {
      std::ranges::move(sensors_->ages(), std::back_inserter(ages));
    }
    return ages;
  }

 private:
  Result<Power> read(const std::stop_token& stop) {
    auto power = reader_->read(stop);
    if (!power) {
      no_current_ = false;
      return power;
    }
    no_current_ = power->current <= 0;
    if (no_current_) {
      return fail(ErrorCode::kNoData, "the BMC reports no current power");
    }
    if (meter_) {
      meter_->publish({.watts = power->current, .time = clock_.steady_now()});
    }
    return power;
  }

  /// Whether there are readings of sensors.
  bool add_sensors(metrics::Sink& sink) {
    const auto readings = sensors_ ? sensors_->value() : std::nullopt;
    if (!readings) {
      return false;
    }
    const auto now = clock_.steady_now();
    for (const ipmi::SensorReading& reading : readings->value) {
      if (now - reading.time > kDcmiMaxAge) {
        continue;
      }
      sink.add(kSensorReading, reading.value, {hostname_, reading.name, reading.units});
    }
    return true;
  }

  const Clock& clock_;
  std::string hostname_;
  std::vector<os::Capability> capabilities_;
  PowerSeries series_;
  std::unique_ptr<ipmi::PowerReader> reader_;
  std::unique_ptr<ipmi::SensorReader> sensor_reader_;  // may be null
  std::shared_ptr<energy::PublishedPowerMeter> meter_;
  std::atomic<bool> no_current_ = false;  // of the last reading
  // Declared last: destroyed before everything their threads use.
  SlowSource<Power> source_;
  std::optional<SlowSource<std::vector<ipmi::SensorReading>>> sensors_;
};

constexpr auto kStartTimeout = std::chrono::milliseconds(1000);

std::unique_ptr<ipmi::PowerCommand> make_command(ipmi::PowerProgram program,
                                                 const IpmiDcmiOptions& options,
                                                 PowerSetup& setup) {
  log::info("power is read by a command", {{"collector", "ipmi_dcmi"}, {"program", program.path}});
  if (!options.test_mode) {
    setup.capabilities = {CAP_SETUID, CAP_SETGID};
  }
  setup.period = kCommandPeriod;
  setup.by_command = true;
  setup.node_power = program.format != ipmi::Format::kCapmc;
  return std::make_unique<ipmi::PowerCommand>(
      ipmi::PowerCommandOptions{.program = std::move(program),
                                .only_self = options.test_mode,
                                .search_path = options.search_path,
                                .may_become_root = options.may_become_root},
      *options.runner);
}

/// With a command flag: that command. Otherwise the device if it returns a reading now, or else a
/// tool with the device as the second choice, or else the device alone in case it appears. With
/// tools_first: a tool if one is installed.
Result<PowerSetup> find_setup(const CollectorContext& context, const IpmiDcmiOptions& options) {
  PowerSetup setup;
  const auto use_device = [&](std::unique_ptr<ipmi::NativePower> native) {
    setup.capabilities.push_back(CAP_DAC_READ_SEARCH);  // to open a device that reappears
    return native;
  };
  if (!options.command.empty() && !options.force_native) {
    auto program = ipmi::program_of(options.command, options.search_path);
    if (!program) {
      // As with a command that fails: this collector has no data, and the others run.
      log::error("the power command does not exist",
                 {{"collector", "ipmi_dcmi"}, {"err", program.error().message}});
      program = ipmi::PowerProgram{.path = options.command, .arguments = {}};
    }
    auto command = make_command(*std::move(program), options, setup);
    setup.reader = std::make_unique<ipmi::PowerReader>(std::move(command), nullptr);
    return setup;
  }
  if (options.tools_first && !options.force_native) {
    if (auto program = ipmi::search_program(options.search_path)) {
      auto command = make_command(*std::move(program), options, setup);
      setup.reader = std::make_unique<ipmi::PowerReader>(std::move(command), nullptr);
      return setup;
    }
  }
  auto native = std::make_unique<ipmi::NativePower>(options.open_device, options.device_timeout);
  const auto opened = native->open();
  if (options.force_native) {
    if (!opened) {
      return fail(Error(opened.error()).with_context("native mode"));
    }
    setup.reader = std::make_unique<ipmi::PowerReader>(nullptr, use_device(std::move(native)));
    return setup;
  }
  std::string refusal;
  if (opened) {
    ipmi::NativePower trial(options.open_device, std::min(context.start_patience(kStartTimeout),
                                                          options.device_timeout));
    const auto power = trial.read({});
    if (power) {
      log::info("power is read through the IPMI device", {{"collector", "ipmi_dcmi"}});
      setup.reader = std::make_unique<ipmi::PowerReader>(nullptr, use_device(std::move(native)));
      return setup;
    }
    refusal = power.error().message;
  } else {
    refusal = opened.error().message;
  }
  std::unique_ptr<ipmi::PowerCommand> command;
  if (auto program = ipmi::search_program(options.search_path)) {
    command = make_command(*std::move(program), options, setup);
  } else {
    log::warn("no power reading through the IPMI device and no IPMI tool is installed",
              {{"collector", "ipmi_dcmi"}, {"err", refusal}});
  }
  if (opened || !command) {
    native = use_device(std::move(native));
  } else {
    native.reset();
  }
  setup.reader = std::make_unique<ipmi::PowerReader>(std::move(command), std::move(native));
  return setup;
}

/// Prepares the reading of sensors through a second descriptor of the device, which is opened now
/// if possible. A missing device is not an error, because it may appear later.
void prepare_sensors(const IpmiDcmiOptions& options, const Clock& clock, PowerSetup& setup) {
  if (options.sensors.empty()) {
    return;
  }
  if (!options.force_native) {
    log::warn(
        "sensors are read through the kernel's IPMI device; CEEMS requires "
        "--collector.ipmi.force-native-mode for that",
        {{"collector", "ipmi_dcmi"}});
  }
  auto device = std::make_unique<ipmi::Device>(options.open_device, options.device_timeout);
  if (const auto opened = device->open(); !opened) {
    log::warn("no IPMI device for the sensors yet",
              {{"collector", "ipmi_dcmi"}, {"err", opened.error().message}});
  }
  setup.capabilities.push_back(CAP_DAC_READ_SEARCH);  // to open a device that reappears
  setup.sensors =
      std::make_unique<ipmi::SensorReader>(std::move(device), options.sensors, kDcmiMaxAge, clock);
}

/// Values of the flags.
struct DcmiFlags {
  std::string command;
  long device_number = 0;
  bool power_sensors = false;
  std::vector<std::string> sensor_ids;
  bool force_native = false;
  bool test_mode = false;
};

Result<ipmi::SensorSelection> selection_of(const DcmiFlags& flags) {
  ipmi::SensorSelection selection{.power_and_energy = flags.power_sensors, .numbers = {}};
  for (const std::string& text : flags.sensor_ids) {
    const auto number = parse_int<std::uint8_t>(text);
    if (!number) {
      return fail(ErrorCode::kInvalidArgument,
                  "--collector.ipmi.sensor-id: expected the number of a sensor, 0 to 255, got '{}'",
                  printable(text));
    }
    selection.numbers.push_back(*number);
  }
  return selection;
}

Result<std::unique_ptr<Collector>> create_dcmi(const DcmiFlags& flags,
                                               const CollectorContext& context) {
  if (flags.device_number < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "--collector.ipmi_dcmi.dev-num: expected the number of an IPMI "
                "device, got {}",
                flags.device_number);
  }
  CEEMS_TRY(sensors, selection_of(flags));
  const char* path = ::secure_getenv("PATH");
  return make_ipmi_dcmi_collector(
      context,
      {.command = flags.command,
       .force_native = flags.force_native,
       .sensors = std::move(sensors),
       .test_mode = flags.test_mode,
       .tools_first = !host::is_own_sysfs(context.paths.sys.string()),
       .search_path = path == nullptr ? "" : path,
       .open_device =
           [number = flags.device_number] {
             return ipmi::open_ipmi("/dev", number, open_privileged);
           },
       .runner = &os::real_runner(),
       .may_become_root = [] { return os::may_raise(CAP_SETUID) && os::may_raise(CAP_SETGID); }});
}

}  // namespace

Result<std::unique_ptr<Collector>> make_ipmi_dcmi_collector(const CollectorContext& context,
                                                            const IpmiDcmiOptions& options) {
  CEEMS_TRY(setup, find_setup(context, options));
  prepare_sensors(options, *context.clock, setup);
  return std::make_unique<IpmiDcmiCollector>(context, std::move(setup), options);
}

/// --collector.ipmi_dcmi, which CEEMS 0.11 and later call --collector.ipmi: power of the node from
/// its BMC. Provides it as a meter.
CollectorSpec ipmi_dcmi_collector() {
  const auto flags = std::make_shared<DcmiFlags>();
  return {
      .name = "ipmi_dcmi",
      .help =
          "Enable the ipmi_dcmi collector (power of the node from its BMC); also called "
          "--collector.ipmi",
      .add_flags =
          [flags](config::FlagSet& set) {
            set.add("collector.ipmi_dcmi.cmd", flags->command,
                    {.help = "Command that prints the power of the node; empty: the kernel's IPMI "
                             "device, or else the first of ipmi-dcmi, ipmitool, ipmiutil, capmc"});
            set.add("collector.ipmi_dcmi.dev-num", flags->device_number,
                    {.help = "Number of the IPMI device, 0 for /dev/ipmi0"});
            set.add("collector.ipmi_dcmi.force-native-mode", flags->force_native,
                    {.help = "Use the kernel's IPMI device and never a command"});
            set.add("collector.ipmi.power-energy-sensor-readings", flags->power_sensors,
                    {.help = "Export the readings of the BMC's sensors of power and energy, read "
                             "through the IPMI device"});
            set.add("collector.ipmi.sensor-id", flags->sensor_ids,
                    {.help = "Export the readings of the sensor with this number, too; may be "
                             "repeated"});
            set.add("collector.ipmi_dcmi.test-mode", flags->test_mode,
                    {.help = "Run the command as the exporter's own user only", .hidden = true});
          },
      .create = [flags](const CollectorContext& context,
                        const Sources&) { return create_dcmi(*flags, context); }};
}

}  // namespace ceems::exporter
