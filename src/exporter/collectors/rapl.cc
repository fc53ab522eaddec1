#include <linux/capability.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "exporter/collector.h"
#include "exporter/source/privileged_open.h"
#include "host/powercap.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr double kRaplMicroPerUnit = 1e6;
constexpr std::string_view kEnergyHelp =
    "Energy counter of a RAPL zone as the hardware has it, in joules.";
constexpr std::string_view kLimitHelp = "Long-term power limit of a RAPL zone in watts.";

/// One zone with its labels, created when the zones change.
struct Zone {
  metrics::Desc joules;
  metrics::Desc limit;
  std::string index;
  std::string path;
  std::string name;
};

class RaplCollector final : public Collector {
 public:
  RaplCollector(const CollectorContext& context, bool zone_label)
      : powercap_(context.paths.sys, open_privileged),
        hostname_(context.hostname),
        zone_label_(zone_label) {
    open_counters();
  }

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(powercap_.scan());
    name_zones();
    if (zones_.empty()) {
      return fail(ErrorCode::kNoData, "no zone in the powercap directory");
    }
    std::size_t series = 0;
    std::optional<Error> unreadable;
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      if (const auto energy = powercap_.energy_uj(i)) {
        add(sink, zones_[i].joules, zones_[i], static_cast<double>(*energy) / kRaplMicroPerUnit);
        ++series;
      } else if (!unreadable) {
        unreadable = energy.error();
      }
      if (const auto limit = powercap_.power_limit_uw(i)) {
        add(sink, zones_[i].limit, zones_[i], static_cast<double>(*limit) / kRaplMicroPerUnit);
        ++series;
      }
    }
    report(unreadable);
    if (series == 0 && unreadable) {
      return fail(ErrorCode::kNoData, "{}", unreadable->message);
    }
    return {};
  }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return {CAP_DAC_READ_SEARCH};
  }

 private:
  /// Opens the counters while the process still has the privileges of the user who started it.
  void open_counters() {
    if (powercap_.scan()) {
      for (std::size_t i = 0; i < powercap_.zones().size(); ++i) {
        // The scrape reports a refusal.
        static_cast<void>(powercap_.energy_uj(i).has_value());
      }
    }
  }

  void name_zones() {
    const auto& found = powercap_.zones();
    if (std::ranges::equal(zones_, found, {}, &Zone::path, &host::PowercapZone::path)) {
      return;
    }
    zones_.clear();
    std::vector<std::string> labels{"hostname", "index", "path"};
    if (zone_label_) {
      labels.emplace_back("rapl_zone");
    }
    for (const host::PowercapZone& zone : found) {
      const std::string stem =
          zone_label_ ? "ceems_rapl" : "ceems_rapl_" + metrics::sanitize_name(zone.name);
      zones_.push_back({metrics::Desc(stem + "_joules_total", std::string(kEnergyHelp),
                                      metrics::Type::kCounter, labels),
                        // The reference exports this limit as a counter, by its name and its
                        // type, and dashboards rely on that.
                        metrics::Desc(stem + "_power_limit_watts_total", std::string(kLimitHelp),
                                      metrics::Type::kCounter, labels),
                        std::to_string(zone.index), zone.path, zone.name});
    }
  }

  void add(metrics::Sink& sink, const metrics::Desc& desc, const Zone& zone, double value) const {
    if (zone_label_) {
      sink.add(desc, value, {hostname_, zone.index, zone.path, zone.name});
    } else {
      sink.add(desc, value, {hostname_, zone.index, zone.path});
    }
  }

  /// Logs one line when counters become unreadable and one when all can be read again. This
  /// collector is on by default, so counters that never could be read are no more than a line at
  /// debug level; `doctor` says what to do about them.
  void report(const std::optional<Error>& unreadable) {
    if (!unreadable) {
      readable_ = true;
    }
    if (unreadable.has_value() == unreadable_) {
      return;
    }
    unreadable_ = unreadable.has_value();
    if (unreadable && readable_) {
      log::error("energy counters can no longer be read; their series are missing",
                 {{"collector", "rapl"}, {"err", unreadable->message}});
    } else if (unreadable) {
      log::debug("energy counters cannot be read; their series are missing",
                 {{"collector", "rapl"}, {"err", unreadable->message}});
    } else {
      log::info("energy counters can be read again", {{"collector", "rapl"}});
    }
  }

  host::Powercap powercap_;
  std::string hostname_;
  bool zone_label_;          // one metric name with the zone in the label rapl_zone
  bool unreadable_ = false;  // at the last scrape
  bool readable_ = false;    // at some scrape
  std::vector<Zone> zones_;
};

}  // namespace

/// --collector.rapl: energy counters and power limits of all powercap zones.
CollectorSpec rapl_collector() {
  auto zone_label = std::make_shared<bool>(false);
  return {.name = "rapl",
          .help = "Enable the rapl collector (energy counters of CPU packages and memory)",
          .enabled_by_default = true,
          .add_flags =
              [zone_label](config::FlagSet& flags) {
                flags.add(
                    "collector.rapl.enable-zone-label", *zone_label,
                    {.help = "One metric name with the zone in the label rapl_zone instead of "
                             "one name per zone"});
              },
          .create = [zone_label](const CollectorContext& context,
                                 const Sources&) -> Result<std::unique_ptr<Collector>> {
            const std::string sys = context.paths.sys;
            if (!host::is_directory(sys)) {
              return fail(ErrorCode::kInvalidArgument, "--path.sysfs: {} is not a directory", sys);
            }
            return std::make_unique<RaplCollector>(context, *zone_label);
          }};
}

}  // namespace ceems::exporter
