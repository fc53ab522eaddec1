#include "exporter/collectors/ipmi_dcmi.h"

#include <linux/capability.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/log.h"
#include "exporter/energy/meter/held_power.h"
#include "exporter/ipmi/open_ipmi.h"
#include "exporter/ipmi/power_command.h"
#include "exporter/ipmi/power_reader.h"
#include "exporter/source/privileged_open.h"
#include "exporter/source/slow_source.h"
#include "host/directory.h"
#include "os/privileges.h"

namespace ceems::exporter {
namespace {

using ipmi::Power;

constexpr auto kDevicePeriod = std::chrono::seconds(5);
constexpr auto kCommandPeriod = std::chrono::seconds(10);  // starting a process costs more
constexpr int kCommandSaves = 5;                           // times the device's fresh_enough

metrics::Desc make_desc(const char* name, const char* help) {
  return {name, help, metrics::Type::kGauge, {"hostname"}};
}

/// How power is read; determined at the start.
struct PowerSetup {
  std::unique_ptr<ipmi::PowerReader> reader;
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
        reader_(std::move(setup.reader)),
        source_({.collector = "ipmi_dcmi",
                 .source = "ipmi",
                 .period = setup.period,
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
  }

  void start() override { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    source_.wait_first(deadline);
  }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override { return capabilities_; }

  [[nodiscard]] Sources sources() const override {
    return meter_ ? Sources{.meters = {meter_}} : Sources{};
  }

  Result<> collect(metrics::Sink& sink) override {
    const auto value = source_.value();
    if (!value) {
      if (no_current_) {
        return {};  // the BMC answers, but has no power reading
      }
      const std::string error = source_.last_error();
      return fail(ErrorCode::kNoData, "{}", error.empty() ? "no reading yet" : error);
    }
    add(sink, current_, value->value.current);
    add(sink, minimum_, value->value.minimum);
    add(sink, maximum_, value->value.maximum);
    add(sink, average_, value->value.average);
    return {};
  }

  [[nodiscard]] std::vector<SourceAge> source_ages() const override { return source_.ages(); }

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

  void add(metrics::Sink& sink, const metrics::Desc& desc, double watts) const {
    if (watts > 0) {
      sink.add(desc, watts, {hostname_});
    }
  }

  const Clock& clock_;
  std::string hostname_;
  std::vector<os::Capability> capabilities_;
  std::unique_ptr<ipmi::PowerReader> reader_;
  std::shared_ptr<energy::PublishedPowerMeter> meter_;
  std::atomic<bool> no_current_ = false;  // of the last reading
  SlowSource<Power> source_;              // declared after all that its thread uses

  const metrics::Desc current_ =
      make_desc("ceems_ipmi_dcmi_current_watts", "Power of the node as its BMC reads it now.");
  const metrics::Desc minimum_ = make_desc(
      "ceems_ipmi_dcmi_min_watts", "Lowest power of the node in the sampling period of its BMC.");
  const metrics::Desc maximum_ = make_desc(
      "ceems_ipmi_dcmi_max_watts", "Highest power of the node in the sampling period of its BMC.");
  const metrics::Desc average_ =
      make_desc("ceems_ipmi_dcmi_avg_watts",
                "Average power of the node over the sampling period of its BMC.");
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

/// Values of the flags.
struct Flags {
  std::string command;
  std::string deprecated_command;
  long device_number = 0;
  bool force_native = false;
  bool test_mode = false;
};

Result<std::unique_ptr<Collector>> create(const Flags& flags, const CollectorContext& context) {
  if (!flags.deprecated_command.empty()) {
    log::warn(
        "flag --collector.ipmi.dcmi.cmd is deprecated, use --collector.ipmi_dcmi.cmd, or none: "
        "power is read through the kernel's IPMI device if there is one");
  }
  if (flags.device_number < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "--collector.ipmi_dcmi.dev-num: expected the number of an IPMI "
                "device, got {}",
                flags.device_number);
  }
  const char* path = ::secure_getenv("PATH");
  return make_ipmi_dcmi_collector(
      context,
      {.command = flags.deprecated_command.empty() ? flags.command : flags.deprecated_command,
       .force_native = flags.force_native,
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
  auto setup = find_setup(context, options);
  if (!setup) {
    return fail(std::move(setup).error());
  }
  return std::make_unique<IpmiDcmiCollector>(context, *std::move(setup), options);
}

/// --collector.ipmi_dcmi: power of the node from its BMC. Provides it as a meter.
CollectorSpec ipmi_dcmi_collector() {
  const auto flags = std::make_shared<Flags>();
  return {
      .name = "ipmi_dcmi",
      .help = "Enable the ipmi_dcmi collector (power of the node from its BMC)",
      .add_flags =
          [flags](config::FlagSet& set) {
            set.add("collector.ipmi.dcmi.cmd", flags->deprecated_command,
                    {.help = "Deprecated: --collector.ipmi_dcmi.cmd", .hidden = true});
            set.add("collector.ipmi_dcmi.cmd", flags->command,
                    {.help = "Command that prints the power of the node; empty: the kernel's IPMI "
                             "device, or else the first of ipmi-dcmi, ipmitool, ipmiutil, capmc"});
            set.add("collector.ipmi_dcmi.dev-num", flags->device_number,
                    {.help = "Number of the IPMI device, 0 for /dev/ipmi0"});
            set.add("collector.ipmi_dcmi.force-native-mode", flags->force_native,
                    {.help = "Use the kernel's IPMI device and never a command"});
            set.add("collector.ipmi_dcmi.test-mode", flags->test_mode,
                    {.help = "Run the command as the exporter's own user only", .hidden = true});
          },
      .create = [flags](const CollectorContext& context,
                        const Sources&) { return create(*flags, context); }};
}

}  // namespace ceems::exporter
