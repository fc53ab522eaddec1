#include "exporter/collectors/amd_hsmp.h"

#include <linux/capability.h>

#include <array>
#include <string>
#include <utility>

#include "base/log.h"
#include "exporter/source/privileged_open.h"
#include "exporter/source/slow_source.h"
#include "os/privileges.h"

namespace ceems::exporter {
namespace {

using hsmp::Socket;

constexpr const char* kDevice = "/dev/hsmp";

metrics::Desc hsmp_desc(const char* name, const char* help) {
  return {name, help, metrics::Type::kGauge, {"hostname", "socket"}};
}

/// A metric and the member of a socket that it shows.
struct HsmpQuantity {
  metrics::Desc desc;
  std::optional<double> Socket::* value;
};

const std::array kQuantities{
    HsmpQuantity{hsmp_desc("ceems_amd_hsmp_power_watts", "Average power of the package."),
                 &Socket::power_watts},
    HsmpQuantity{hsmp_desc("ceems_amd_hsmp_power_cap_watts", "Limit of the package's power."),
                 &Socket::power_cap_watts},
    HsmpQuantity{hsmp_desc("ceems_amd_hsmp_power_cap_max_watts",
                           "Highest limit of the package's power that can be set."),
                 &Socket::power_cap_max_watts},
    HsmpQuantity{hsmp_desc("ceems_amd_hsmp_c0_residency_percent",
                           "Average part of the time that the cores are in C0, in percent."),
                 &Socket::c0_percent},
    HsmpQuantity{
        hsmp_desc("ceems_amd_hsmp_ddr_max_bw_gbps",
                  "Highest possible bandwidth of the memory, in the unit of the interface."),
        &Socket::ddr_max_gbps},
    HsmpQuantity{hsmp_desc("ceems_amd_hsmp_ddr_utilized_bw_gbps",
                           "Bandwidth of the memory that is in use, in the unit of the interface."),
                 &Socket::ddr_utilized_gbps},
    HsmpQuantity{hsmp_desc("ceems_amd_hsmp_fclk_mhz", "Clock of the fabric, in MHz."),
                 &Socket::fclk_mhz},
    HsmpQuantity{hsmp_desc("ceems_amd_hsmp_mclk_mhz", "Clock of the memory, in MHz."),
                 &Socket::mclk_mhz},
    HsmpQuantity{hsmp_desc("ceems_amd_hsmp_cclk_limit_mhz",
                           "Highest clock that the cores may have at present, in MHz."),
                 &Socket::cclk_limit_mhz}};

class AmdHsmpCollector final : public Collector {
 public:
  AmdHsmpCollector(const CollectorContext& context,
                   std::unique_ptr<hsmp::Reader> reader,
                   const AmdHsmpOptions& options)
      : hostname_(context.hostname),
        reader_(std::move(reader)),
        source_({.collector = "amd_hsmp",
                 .source = "hsmp",
                 .patience = options.patience,
                 .fresh_enough = options.fresh_enough},
                *context.clock,
                [this](const std::stop_token& stop) { return reader_->read(stop); }) {}

  void start() override { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    source_.wait_first(deadline);
  }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return {CAP_DAC_READ_SEARCH};  // to open a device that appears later
  }

  Result<> collect(metrics::Sink& sink) override {
    const auto value = source_.value();
    if (!value) {
      const std::string error = source_.last_error();
      return fail(ErrorCode::kNoData, "{}", error.empty() ? "no reading yet" : error);
    }
    for (const Socket& socket : value->value) {
      const std::string number = std::to_string(socket.number);
      for (const HsmpQuantity& quantity : kQuantities) {
        if (const auto& shown = socket.*quantity.value) {
          sink.add(quantity.desc, *shown, {hostname_, number});
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<SourceAge> source_ages() const override { return source_.ages(); }

 private:
  std::string hostname_;
  std::unique_ptr<hsmp::Reader> reader_;
  SlowSource<std::vector<Socket>>
      source_;  // declared last: destroyed before everything its thread uses
};

}  // namespace

std::unique_ptr<Collector> make_amd_hsmp_collector(const CollectorContext& context,
                                                   const AmdHsmpOptions& options) {
  auto reader = std::make_unique<hsmp::Reader>(options.open);
  // Opened now, while the process has the privileges of its start.
  if (const auto opened = reader->open(); !opened) {
    log::warn("no HSMP device yet", {{"collector", "amd_hsmp"}, {"err", opened.error().message}});
  }
  return std::make_unique<AmdHsmpCollector>(context, std::move(reader), options);
}

/// --collector.amd_hsmp: power, clocks and memory bandwidth of AMD EPYC sockets from their
/// management units. Each message may take half a second, so they are sent by a thread.
CollectorSpec amd_hsmp_collector() {
  return {.name = "amd_hsmp",
          .help =
              "Enable the amd_hsmp collector (power, clocks and memory bandwidth of AMD EPYC "
              "sockets)",
          .create = [](const CollectorContext& context,
                       const Sources&) -> Result<std::unique_ptr<Collector>> {
            return make_amd_hsmp_collector(
                context, {.open = [] { return hsmp::open_hsmp(kDevice, open_privileged); }});
          }};
}

}  // namespace ceems::exporter
