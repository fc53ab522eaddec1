#include "api/tsdb/stragglers_tsdb.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/tsdb/windows.h"
#include "base/time/durations.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

using fleet::JobMember;
using fleet::WindowValues;
using std::chrono::milliseconds;

constexpr std::int64_t kLeastRunMs = 15 * kMinuteMs;
constexpr std::int64_t kStartMs = 5 * kMinuteMs;
constexpr std::int64_t kLookBackMs = 2 * kHourMs;
constexpr std::int64_t kMaxWindows = 120;
constexpr std::size_t kMaxStragglerSeries = 50'000;
constexpr std::int64_t kRecentMs = 20 * kMinuteMs;  // of all units
constexpr std::size_t kMaxWideUnits = 1000;
constexpr std::size_t kMaxWideSeries = 500'000;
/// Names in a matcher. More are not worth a longer query than all series of the cluster.
constexpr std::size_t kMaxNamed = 1000;
constexpr std::string_view kWorthReading = " > 0.01";

/// `{0}` are the matchers of the units, `{1}` is the range of a window. The label `of` keeps the
/// parts apart.
constexpr std::string_view kOwn =
    R"q(label_replace(max by (uuid, hostname, index, gpuuuid) (ceems_compute_unit_gpu_index_flag{{{0},gpuiid=""}} >= 1), "of", "gpu", "", ""))q"
    R"q( or label_replace(max by (uuid, hostname, index, gpuuuid) (rate(ceems_compute_unit_gpu_sm_seconds_total{{{0},gpuiid=""}}[{1}])), "of", "activity", "", ""))q"
    R"q( or label_replace(sum by (uuid, hostname) (rate(ceems_compute_unit_cpu_user_seconds_total{{{0}}}[{1}]) + rate(ceems_compute_unit_cpu_system_seconds_total{{{0}}}[{1}])) / sum by (uuid, hostname) (ceems_compute_unit_cpus{{{0}}}), "of", "cpu", "", ""))q"
    R"q( or label_replace(max by (uuid, hostname) (rate(ceems_compute_unit_energy_joules_total{{{0},domain="node"}}[{1}])), "of", "power", "", ""))q";
/// `{0}` are the matchers of the devices, `{2}` may leave out small values of reasons and errors.
/// Reasons are seconds, or, of an older exporter, what held at each scrape.
constexpr std::string_view kOfDevices =
    R"q(label_replace(max by (gpuuuid) (avg_over_time(ceems_gpu_clock_hertz{{{0},clock="graphics"}}[{1}])), "of", "clock", "", ""))q"
    R"q( or label_replace(max by (gpuuuid) (avg_over_time(ceems_gpu_power_watts{{{0}}}[{1}])), "of", "power", "", ""))q"
    R"q( or label_replace((max by (gpuuuid, reason) (rate(ceems_gpu_clock_reason_seconds_total{{{0}}}[{1}])) or max by (gpuuuid, reason) (avg_over_time(ceems_gpu_clock_reason{{{0}}}[{1}]))){2}, "of", "reason", "", ""))q"
    R"q( or label_replace(sum by (gpuuuid) (increase(ceems_gpu_ecc_errors_total{{{0}}}[{1}])){2}, "of", "ecc", "", ""))q"
    R"q( or label_replace(sum by (gpuuuid) (increase(ceems_gpu_xid_errors_total{{{0}}}[{1}])){2}, "of", "xid", "", ""))q"
    R"q( or label_replace(max by (gpuuuid, name) (ceems_gpu_info{{{0}}}), "of", "class", "", ""))q";
/// `{0}` are the matchers of the nodes, `{1}` is the range, `{2}` the cluster. The series of links
/// have no hostname of their own. Where an instance has two, as after a rename, one is taken.
constexpr std::string_view kOfHosts =
    R"q(label_replace(sum by (hostname) (increase(ceems_infiniband_symbol_error_total{{{2}}}[{1}]) * on (job, instance) group_left (hostname) topk by (job, instance) (1, max by (job, instance, hostname) (ceems_node_info{{{0}}}))) > 0, "of", "symbol_error", "", ""))q"
    R"q( or label_replace(sum by (hostname) (increase(ceems_infiniband_link_error_recovery_total{{{2}}}[{1}]) * on (job, instance) group_left (hostname) topk by (job, instance) (1, max by (job, instance, hostname) (ceems_node_info{{{0}}}))) > 0, "of", "link_error_recovery", "", ""))q"
    R"q( or label_replace(sum by (hostname) (increase(ceems_infiniband_link_downed_total{{{2}}}[{1}]) * on (job, instance) group_left (hostname) topk by (job, instance) (1, max by (job, instance, hostname) (ceems_node_info{{{0}}}))) > 0, "of", "link_downed", "", ""))q"
    R"q( or label_replace(sum by (hostname) (increase(ceems_infiniband_local_link_integrity_errors_total{{{2}}}[{1}]) * on (job, instance) group_left (hostname) topk by (job, instance) (1, max by (job, instance, hostname) (ceems_node_info{{{0}}}))) > 0, "of", "local_link_integrity_errors", "", ""))q";
/// Units with enough nodes or GPUs for a comparison, by the number of these. `{0}` is the cluster
/// after a comma.
constexpr std::string_view kWide =
    R"q(count by (uuid) (count by (uuid, hostname) (ceems_compute_unit_cpus{{uuid!="",hostname!=""{0}}})) >= {1})q"
    R"q( or count by (uuid) (count by (uuid, gpuuuid) (ceems_compute_unit_gpu_index_flag{{uuid!="",gpuiid=""{0}}} >= 1)) >= {2})q";

/// The nodes by name and the GPUs by UUID of a unit.
struct UnitMembers {
  std::map<std::string, JobMember, std::less<>> gpus, hosts;
  std::size_t first = std::numeric_limits<std::size_t>::max();  ///< window in which it was seen

  [[nodiscard]] bool wide() const {
    return hosts.size() >= fleet::kLeastNodes || gpus.size() >= fleet::kLeastDevices;
  }
};

/// The first window with a value; beyond all if there is none.
std::size_t first_of(const WindowValues& values) {
  const auto found = std::ranges::find_if(values, [](const auto& value) { return bool(value); });
  return found == values.end() ? std::numeric_limits<std::size_t>::max()
                               : static_cast<std::size_t>(found - values.begin());
}

/// Reads members of units in some windows.
class Reader {
 public:
  Reader(const ClusterTsdb& tsdb, std::string_view cluster_id) : client_(*tsdb.client) {
    if (!tsdb.cluster_label.empty()) {
      cluster_ = fmt::format(",{}=\"{}\"", tsdb.cluster_label, tsdb::quote_text(cluster_id));
    }
  }

  /// The windows from one time to the other, at most so many.
  void choose_windows(std::int64_t from_ms, std::int64_t to_ms) {
    const auto settings = client_.settings();
    const std::int64_t span = to_ms - from_ms;
    const std::int64_t seconds = (span / kMaxWindows + kSecondMs - 1) / kSecondMs;
    windows_.from_ms = from_ms;
    windows_.step_ms =
        std::max({kMinuteMs, std::int64_t{settings.scrape_interval.count()}, seconds * kSecondMs});
    range_ =
        tsdb::duration_text(std::max(milliseconds(windows_.step_ms), settings.rate_interval()));
    windows_.count = static_cast<std::size_t>(span / windows_.step_ms);
  }

  Result<std::vector<fleet::Straggler>> read_one(const StragglerRequest& request) {
    const std::int64_t from_ms = request.running
                                     ? std::max(request.started_ms, request.until_ms - kLookBackMs)
                                     : request.started_ms;
    choose_windows(from_ms, request.until_ms);
    CEEMS_TRY(read({request.uuid}));
    const auto unit = units_.find(request.uuid);
    if (unit == units_.end()) {
      return std::vector<fleet::Straggler>{};
    }
    // Later, a program has started long ago.
    return stragglers_of(unit->second, from_ms == request.started_ms ? start_windows() : 0);
  }

  Result<std::vector<StragglersOfUnit>> read_all(std::int64_t now_ms) {
    all_ = true;
    CEEMS_TRY(uuids, wide_units(now_ms));
    std::vector<StragglersOfUnit> found;
    if (uuids.empty()) {
      return found;
    }
    choose_windows(now_ms - kRecentMs, now_ms);
    // Of exporters that are scraped seldom, more time is needed.
    if (const std::size_t least = fleet::kJudged + start_windows(); windows_.count < least) {
      choose_windows(now_ms - static_cast<std::int64_t>(least) * windows_.step_ms, now_ms);
    }
    CEEMS_TRY(read(uuids));
    for (auto& [uuid, unit] : units_) {
      // Of a unit that was there before, it is not known when it began.
      const std::size_t skipped = unit.first + start_windows();
      if (unit.first < windows_.count && skipped + fleet::kJudged <= windows_.count) {
        if (auto rows = stragglers_of(unit, skipped); !rows.empty()) {
          found.push_back({.uuid = uuid, .rows = std::move(rows)});
        }
      }
    }
    return found;
  }

 private:
  [[nodiscard]] std::size_t start_windows() const {
    return static_cast<std::size_t>((kStartMs + windows_.step_ms - 1) / windows_.step_ms);
  }

  /// The widest ones.
  Result<std::vector<std::string>> wide_units(std::int64_t now_ms) {
    CEEMS_TRY(answer, client_.query({.query = fmt::format(fmt::runtime(kWide), cluster_,
                                                          fleet::kLeastNodes, fleet::kLeastDevices),
                                     .time_ms = now_ms,
                                     .timeout = milliseconds(10'000),
                                     .max_series = kMaxWideSeries}));
    std::vector<std::pair<double, std::string>> sized;
    for (const tsdb::Series& series : answer.series) {
      const std::string_view uuid = series.labels.get("uuid");
      if (!uuid.empty() && !series.samples.empty() && std::isfinite(series.samples.front().value)) {
        sized.emplace_back(-series.samples.front().value, uuid);
      }
    }
    std::ranges::sort(sized);
    sized.resize(std::min(sized.size(), kMaxWideUnits));
    std::vector<std::string> uuids;
    uuids.reserve(sized.size());
    for (auto& [size, uuid] : sized) {
      uuids.push_back(std::move(uuid));
    }
    return uuids;
  }

  /// Fills units_, devices_ and hosts_, unless no unit is wide enough.
  Result<> read(const std::vector<std::string>& uuids) {
    CEEMS_TRY(read_own(uuids));
    std::erase_if(units_, [](const auto& one) { return !one.second.wide(); });
    for (const auto& [uuid, unit] : units_) {
      for (const auto& [gpu, member] : unit.gpus) {
        devices_[gpu];
      }
      for (const auto& [host, member] : unit.hosts) {
        hosts_[host];
      }
    }
    if (units_.empty()) {
      return {};
    }
    CEEMS_TRY(read_devices());
    return read_hosts();
  }

  template <typename Take>
  Result<> ask(std::string_view text,
               const std::string& matchers,
               const Take& take,
               std::string_view more = {}) {
    CEEMS_TRY(answer, client_.query_range(fmt::format(fmt::runtime(text), matchers, range_, more),
                                          windows_.first_ms(), windows_.last_ms(),
                                          milliseconds(windows_.step_ms)));
    const std::size_t most = all_ ? kMaxWideSeries : kMaxStragglerSeries;
    if (answer.series.size() > most) {
      return fail(ErrorCode::kUnavailable, "the TSDB has more than {} series of {}", most,
                  all_ ? "all units" : "one unit");
    }
    for (const tsdb::Series& series : answer.series) {
      take(series, series.labels.get("of"));
    }
    return {};
  }

  [[nodiscard]] WindowValues values_of(const tsdb::Series& series) const {
    return windows_.values_of(series);
  }

  Result<> read_own(const std::vector<std::string>& uuids) {
    const std::string matchers =
        all_ ? matchers_of("uuid", uuids)
             : fmt::format("uuid=\"{}\"{}", tsdb::quote_text(uuids.front()), cluster_);
    std::map<std::pair<std::string, std::string>, WindowValues> activity;  // by unit and GPU
    CEEMS_TRY(ask(kOwn, matchers, [&](const tsdb::Series& series, std::string_view of) {
      const std::string uuid = all_ ? std::string(series.labels.get("uuid")) : uuids.front();
      const std::string host(series.labels.get("hostname"));
      const std::string gpu(series.labels.get("gpuuuid"));
      if (host.empty() || uuid.empty()) {
        return;
      }
      UnitMembers& unit = units_[uuid];
      JobMember& node = unit.hosts[host];
      node.node = host;
      WindowValues values = values_of(series);
      unit.first = std::min(unit.first, first_of(values));
      if (of == "gpu" && !gpu.empty()) {
        JobMember& member = unit.gpus[gpu];
        member.node = host;
        member.device = series.labels.get("index");
        if (member.device.empty()) {
          member.device = gpu;
        }
      } else if (of == "activity") {
        activity[{uuid, gpu}] = std::move(values);
      } else if (of == "cpu") {
        node.activity = std::move(values);
      } else if (of == "power") {
        node.power = std::move(values);
      }
    }));
    for (auto& [uuid, unit] : units_) {
      for (auto& [gpu, member] : unit.gpus) {
        if (const auto found = activity.find({uuid, gpu}); found != activity.end()) {
          member.activity = std::move(found->second);
        }
      }
    }
    return {};
  }

  Result<> read_devices() {
    if (devices_.empty()) {
      return {};
    }
    return ask(
        kOfDevices, matchers_of("gpuuuid", names_of(devices_)),
        [&](const tsdb::Series& series, std::string_view of) {
          const auto found = devices_.find(series.labels.get("gpuuuid"));
          if (found == devices_.end()) {
            return;
          }
          JobMember& gpu = found->second;
          if (of == "clock") {
            gpu.clock = values_of(series);
          } else if (of == "power") {
            gpu.power = values_of(series);
          } else if (of == "reason") {
            gpu.throttled[std::string(series.labels.get("reason"))] = values_of(series);
          } else if (of == "class") {
            gpu.device_class = series.labels.get("name");
          } else if (of == "ecc" || of == "xid") {
            gpu.errors[std::string(of)] = values_of(series);
          }
        },
        all_ ? kWorthReading : "");
  }

  Result<> read_hosts() {
    return ask(
        kOfHosts, matchers_of("hostname", names_of(hosts_)),
        [&](const tsdb::Series& series, std::string_view of) {
          const auto found = hosts_.find(series.labels.get("hostname"));
          if (found != hosts_.end() && !of.empty()) {
            found->second.errors[std::string(of)] = values_of(series);
          }
        },
        cluster_.empty() ? "" : std::string_view(cluster_).substr(1));
  }

  [[nodiscard]] std::vector<fleet::Straggler> stragglers_of(UnitMembers& unit,
                                                            std::size_t skipped) const {
    std::vector<JobMember> members;
    members.reserve(unit.gpus.size() + unit.hosts.size());
    for (auto& [uuid, gpu] : unit.gpus) {
      const JobMember& device = devices_.find(uuid)->second;
      gpu.clock = device.clock;
      gpu.power = device.power;
      gpu.device_class = device.device_class;
      gpu.throttled = device.throttled;
      gpu.errors = device.errors;
      members.push_back(std::move(gpu));
    }
    if (all_) {
      fill_reasons(members);
    }
    for (auto& [host, node] : unit.hosts) {
      node.errors = hosts_.find(host)->second.errors;
      members.push_back(std::move(node));
    }
    std::ranges::stable_sort(
        members, {}, [](const JobMember& member) { return std::tie(member.node, member.device); });
    return fleet::find_stragglers(
        members,
        {.window_s = static_cast<double>(windows_.step_ms) / kSecondMs, .skipped = skipped});
  }

  /// Reasons that were not worth reading held for no time.
  static void fill_reasons(std::vector<JobMember>& gpus) {
    std::set<std::string> reasons;
    for (const JobMember& gpu : gpus) {
      for (const auto& [reason, values] : gpu.throttled) {
        reasons.insert(reason);
      }
    }
    for (JobMember& gpu : gpus) {
      for (const std::string& reason : reasons) {
        WindowValues& values = gpu.throttled[reason];
        values.resize(gpu.clock.size());
        for (std::size_t window = 0; window < values.size(); ++window) {
          if (!values[window] && gpu.clock[window]) {
            values[window] = 0;
          }
        }
      }
    }
  }

  template <typename ByName>
  static std::vector<std::string> names_of(const ByName& all) {
    std::vector<std::string> names;
    names.reserve(all.size());
    for (const auto& [name, member] : all) {
      names.push_back(name);
    }
    return names;
  }
  [[nodiscard]] std::string matchers_of(std::string_view label,
                                        const std::vector<std::string>& names) const {
    if (all_ && names.size() > kMaxNamed) {
      return fmt::format("{}!=\"\"{}", label, cluster_);
    }
    return fmt::format("{}=~\"{}\"{}", label, tsdb::quote_text(tsdb::exact_regex(names)), cluster_);
  }

  tsdb::Client& client_;
  std::string cluster_;  // a matcher after a comma, or empty
  std::string range_;
  Windows windows_;
  bool all_ = false;  // units rather than one
  std::map<std::string, UnitMembers> units_;
  std::map<std::string, JobMember, std::less<>> devices_, hosts_;  // what does not depend on units
};

}  // namespace

Result<std::vector<fleet::Straggler>> read_stragglers(const ClusterTsdb& tsdb,
                                                      std::string_view cluster_id,
                                                      const StragglerRequest& request) {
  if (request.until_ms - request.started_ms < kLeastRunMs) {
    return std::vector<fleet::Straggler>{};
  }
  return Reader(tsdb, cluster_id).read_one(request);
}

Result<std::vector<StragglersOfUnit>> read_all_stragglers(const ClusterTsdb& tsdb,
                                                          std::string_view cluster_id,
                                                          std::int64_t now_ms) {
  return Reader(tsdb, cluster_id).read_all(now_ms);
}

}  // namespace ceems::api
