#include "exporter/collectors/redfish.h"

#include <linux/capability.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/log.h"
#include "config/environment.h"
#include "exporter/collectors/power_series.h"
#include "exporter/energy/meter/held_power.h"
#include "exporter/ipmi/conversation.h"
#include "exporter/options.h"
#include "exporter/redfish/reader.h"
#include "exporter/source/privileged_open.h"
#include "exporter/source/slow_source.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

using redfish::ChassisReading;
using redfish::Readings;

constexpr auto kRedfishMaxAge = std::chrono::minutes(5);
constexpr std::size_t kMaxConfig = std::size_t{1} << 20U;
constexpr std::chrono::milliseconds kBmcTimeout{2000};

/// How to reach the service.
struct Place {
  bool reads_files = false;  ///< each request may read files
  std::string address;       ///< of a BMC whose name is still to be looked up
  redfish::NameOf name_of;   ///< empty if the name is known
};

class RedfishCollector final : public Collector {
 public:
  RedfishCollector(const CollectorContext& context,
                   std::unique_ptr<redfish::Reader> reader,
                   Place place,
                   const RedfishOptions& options)
      : clock_(*context.clock),
        hostname_(context.hostname),
        series_(context.power_names,
                "ceems_redfish",
                {"Power of the chassis now, in watts.",
                 "Lowest power of the chassis in its BMC's interval.",
                 "Highest power of the chassis in its BMC's interval.",
                 "Average power of the chassis in its BMC's interval."},
                {"hostname", "chassis"}),
        reader_(std::move(reader)),
        place_(std::move(place)),
        meter_(std::make_shared<energy::PublishedPowerMeter>(
            energy::SourceInfo{.name = "redfish",
                               .domain = energy::Domain::kNode,
                               .method = energy::Method::kMeasured,
                               .rank = energy::kRedfishRank})),
        source_({.collector = "redfish",
                 .source = "redfish",
                 .period = options.period,
                 .max_age = kRedfishMaxAge,
                 .patience = options.patience,
                 .fresh_enough = options.fresh_enough},
                clock_,
                [this](const std::stop_token& stop) { return read(stop); }) {}

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return place_.reads_files ? std::vector<os::Capability>{CAP_DAC_READ_SEARCH}
                              : std::vector<os::Capability>{};
  }

  void start() override { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    source_.wait_first(deadline);
  }

  [[nodiscard]] Sources sources() const override { return {.meters = {meter_}}; }

  Result<> collect(metrics::Sink& sink) override {
    const auto value = source_.value();
    if (!value) {
      const std::string error = source_.last_error();
      return fail(ErrorCode::kNoData, "{}", error.empty() ? "no reading yet" : error);
    }
    const auto now = clock_.steady_now();
    for (const ChassisReading& chassis : value->value.chassis) {
      if (now - chassis.time <= kRedfishMaxAge) {
        const redfish::Watts& watts = chassis.watts;
        series_.add(sink, {watts.current, watts.minimum, watts.maximum, watts.average},
                    {hostname_, chassis.label});
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<SourceAge> source_ages() const override { return source_.ages(); }

 private:
  Result<Readings> read(const std::stop_token& stop) {
    if (place_.name_of) {
      const std::string name =
          redfish::bmc_name(place_.address, std::exchange(place_.name_of, nullptr));
      log::info("name of the BMC found", {{"collector", "redfish"}, {"bmc", name}});
      reader_->set_hostname(name);
    }
    auto readings = reader_->read(stop);
    const std::optional<double> watts = readings ? readings->node_watts : std::nullopt;
    if (watts) {
      meter_->publish({.watts = *watts, .time = clock_.steady_now()});
    }
    return readings;
  }

  const Clock& clock_;
  std::string hostname_;
  PowerSeries series_;
  std::unique_ptr<redfish::Reader> reader_;
  Place place_;  // name_of is used by the thread only
  std::shared_ptr<energy::PublishedPowerMeter> meter_;
  SlowSource<Readings> source_;  // declared last: destroyed before everything its thread uses
};

Result<redfish::Config> load_config(const RedfishOptions& options) {
  if (options.config_file.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--collector.redfish.config.file is not given");
  }
  auto text = host::read_file(options.config_file, kMaxConfig);
  if (!text) {
    return fail(std::move(text).error());
  }
  if (options.expand_environment) {
    text = config::expand_environment(*text, options.context.environment);
    if (!text) {
      return fail(std::move(text).error().with_context(options.config_file));
    }
  }
  return redfish::parse_config(*text, options.config_file, options.context);
}

/// Values of the flags.
struct RedfishFlags {
  std::string config_file;
  bool expand_environment = false;
};

Result<std::string> find_local_bmc(std::chrono::milliseconds timeout) {
  CEEMS_TRY(port, ipmi::open_ipmi("/dev", 0, open_privileged));
  return redfish::find_bmc_address(*port, timeout);
}

Result<std::unique_ptr<Collector>> create_redfish(const RedfishFlags& flags,
                                                  const CollectorContext& context) {
  std::string file = flags.config_file;
  if (!file.empty()) {
    file = std::filesystem::absolute(file).lexically_normal().string();
  }
  return make_redfish_collector(
      context, {.config_file = std::move(file),
                .expand_environment = flags.expand_environment,
                .context = {.node_name = node_name(false),
                            .environment =
                                [](const std::string& name) {
                                  const char* value = ::getenv(name.c_str());
                                  return std::string(value == nullptr ? "" : value);
                                }},
                .find_bmc = find_local_bmc,
                .name_of = redfish::name_by_dns});
}

}  // namespace

Result<std::unique_ptr<Collector>> make_redfish_collector(const CollectorContext& context,
                                                          const RedfishOptions& options) {
  CEEMS_TRY(config, load_config(options));
  Place place{.reads_files = config.reads_files(), .address = {}, .name_of = {}};
  if (config.hostname.empty()) {
    CEEMS_TRY_IN(
        options.config_file + ": hostname is empty and the BMC does not report its address", found,
        options.find_bmc(context.start_patience(kBmcTimeout)));
    config.hostname = std::move(found);
    place.address = config.hostname;
    place.name_of = options.name_of;
  }
  log::info("power is read from Redfish", {{"collector", "redfish"}, {"bmc", config.bmc_url()}});
  redfish::ReaderOptions reader_options{.node_chassis = config.node_chassis,
                                        .max_age = kRedfishMaxAge};
  CEEMS_TRY_IN(options.config_file, session, redfish::Session::create(std::move(config)));
  return std::make_unique<RedfishCollector>(
      context,
      std::make_unique<redfish::Reader>(std::move(session), std::move(reader_options),
                                        *context.clock),
      std::move(place), options);
}

/// --collector.redfish: power of the chassis from a Redfish service. Provides that of the node as a
/// meter.
CollectorSpec redfish_collector() {
  const auto flags = std::make_shared<RedfishFlags>();
  return {.name = "redfish",
          .help = "Enable the redfish collector (power of the chassis from a Redfish service)",
          .add_flags =
              [flags](config::FlagSet& set) {
                set.add("collector.redfish.config.file", flags->config_file,
                        {.help = "File with the address of the Redfish service and the login",
                         .env = "CEEMS_EXPORTER_REDFISH_COLL_CONFIG_FILE"});
                set.add("collector.redfish.config.file.expand-env-vars", flags->expand_environment,
                        {.help = "Expand $NAME and ${NAME} in the configuration file"});
              },
          .create = [flags](const CollectorContext& context,
                            const Sources&) { return create_redfish(*flags, context); }};
}

}  // namespace ceems::exporter
