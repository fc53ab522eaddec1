#include "api/tsdb/stragglers_tsdb.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
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

/// `{0}` are the matchers of the unit, `{1}` is the range of a window. The label `of` keeps the
/// parts apart.
constexpr std::string_view kOwn =
    R"q(label_replace(max by (hostname, index, gpuuuid) (ceems_compute_unit_gpu_index_flag{{{0},gpuiid=""}} >= 1), "of", "gpu", "", ""))q"
    R"q( or label_replace(max by (hostname, index, gpuuuid) (rate(ceems_compute_unit_gpu_sm_seconds_total{{{0},gpuiid=""}}[{1}])), "of", "activity", "", ""))q"
    R"q( or label_replace(sum by (hostname) (rate(ceems_compute_unit_cpu_user_seconds_total{{{0}}}[{1}]) + rate(ceems_compute_unit_cpu_system_seconds_total{{{0}}}[{1}])) / sum by (hostname) (ceems_compute_unit_cpus{{{0}}}), "of", "cpu", "", ""))q"
    R"q( or label_replace(max by (hostname) (rate(ceems_compute_unit_energy_joules_total{{{0},domain="node"}}[{1}])), "of", "power", "", ""))q";
/// `{0}` are the matchers of the devices. Reasons are seconds, or, of an older exporter, what held
/// at each scrape.
constexpr std::string_view kOfDevices =
    R"q(label_replace(max by (gpuuuid) (avg_over_time(ceems_gpu_clock_hertz{{{0},clock="graphics"}}[{1}])), "of", "clock", "", ""))q"
    R"q( or label_replace(max by (gpuuuid) (avg_over_time(ceems_gpu_power_watts{{{0}}}[{1}])), "of", "power", "", ""))q"
    R"q( or label_replace(max by (gpuuuid, reason) (rate(ceems_gpu_clock_reason_seconds_total{{{0}}}[{1}])) or max by (gpuuuid, reason) (avg_over_time(ceems_gpu_clock_reason{{{0}}}[{1}])), "of", "reason", "", ""))q"
    R"q( or label_replace(sum by (gpuuuid) (increase(ceems_gpu_ecc_errors_total{{{0}}}[{1}])), "of", "ecc", "", ""))q"
    R"q( or label_replace(sum by (gpuuuid) (increase(ceems_gpu_xid_errors_total{{{0}}}[{1}])), "of", "xid", "", ""))q"
    R"q( or label_replace(max by (gpuuuid, name) (ceems_gpu_info{{{0}}}), "of", "class", "", ""))q";
/// `{0}` are the matchers of the nodes.
constexpr std::string_view kOfHosts =
    R"q(label_replace(sum by (hostname) (increase(ceems_infiniband_symbol_error_total{{{0}}}[{1}])), "of", "symbol_error", "", ""))q"
    R"q( or label_replace(sum by (hostname) (increase(ceems_infiniband_link_error_recovery_total{{{0}}}[{1}])), "of", "link_error_recovery", "", ""))q"
    R"q( or label_replace(sum by (hostname) (increase(ceems_infiniband_link_downed_total{{{0}}}[{1}])), "of", "link_downed", "", ""))q"
    R"q( or label_replace(sum by (hostname) (increase(ceems_infiniband_local_link_integrity_errors_total{{{0}}}[{1}])), "of", "local_link_integrity_errors", "", ""))q";

class Reader {
 public:
  Reader(const ClusterTsdb& tsdb, std::string_view cluster_id, const StragglerRequest& request)
      : client_(*tsdb.client), uuid_(request.uuid) {
    if (!tsdb.cluster_label.empty()) {
      cluster_ = fmt::format(",{}=\"{}\"", tsdb.cluster_label, tsdb::quote_text(cluster_id));
    }
    windows_.from_ms = request.running
                           ? std::max(request.started_ms, request.until_ms - kLookBackMs)
                           : request.started_ms;
    const auto settings = client_.settings();
    const std::int64_t span = request.until_ms - windows_.from_ms;
    const std::int64_t seconds = (span / kMaxWindows + kSecondMs - 1) / kSecondMs;
    const std::int64_t step_ms =
        std::max({kMinuteMs, std::int64_t{settings.scrape_interval.count()}, seconds * kSecondMs});
    windows_.step_ms = step_ms;
    range_ = tsdb::duration_text(std::max(milliseconds(step_ms), settings.rate_interval()));
    windows_.count = static_cast<std::size_t>(span / step_ms);
    options_.window_s = static_cast<double>(step_ms) / static_cast<double>(kSecondMs);
    // Later, a program has started long ago.
    options_.skipped = windows_.from_ms == request.started_ms
                           ? static_cast<std::size_t>((kStartMs + step_ms - 1) / step_ms)
                           : 0;
  }

  Result<std::vector<fleet::Straggler>> read() {
    CEEMS_TRY(read_own());
    if (hosts_.size() < fleet::kLeastNodes && gpus_.size() < fleet::kLeastDevices) {
      return std::vector<fleet::Straggler>{};
    }
    CEEMS_TRY(read_devices());
    CEEMS_TRY(read_hosts());
    std::vector<JobMember> members;
    members.reserve(gpus_.size() + hosts_.size());
    for (auto& [uuid, gpu] : gpus_) {
      members.push_back(std::move(gpu));
    }
    for (auto& [host, node] : hosts_) {
      members.push_back(std::move(node));
    }
    std::ranges::stable_sort(
        members, {}, [](const JobMember& member) { return std::tie(member.node, member.device); });
    return fleet::find_stragglers(members, options_);
  }

 private:
  template <typename Take>
  Result<> ask(std::string_view text, const std::string& matchers, const Take& take) {
    CEEMS_TRY(answer, client_.query_range(fmt::format(fmt::runtime(text), matchers, range_),
                                          windows_.first_ms(), windows_.last_ms(),
                                          milliseconds(windows_.step_ms)));
    if (answer.series.size() > kMaxStragglerSeries) {
      return fail(ErrorCode::kUnavailable, "the TSDB has more than {} series of one unit",
                  kMaxStragglerSeries);
    }
    for (const tsdb::Series& series : answer.series) {
      take(series, series.labels.get("of"));
    }
    return {};
  }

  [[nodiscard]] WindowValues values_of(const tsdb::Series& series) const {
    return windows_.values_of(series);
  }

  Result<> read_own() {
    std::map<std::string, WindowValues, std::less<>> activity;
    CEEMS_TRY(ask(kOwn, fmt::format("uuid=\"{}\"{}", tsdb::quote_text(uuid_), cluster_),
                  [&](const tsdb::Series& series, std::string_view of) {
                    const std::string host(series.labels.get("hostname"));
                    const std::string gpu(series.labels.get("gpuuuid"));
                    if (host.empty()) {
                      return;
                    }
                    JobMember& node = hosts_[host];
                    node.node = host;
                    if (of == "gpu" && !gpu.empty()) {
                      gpus_[gpu].node = host;
                      gpus_[gpu].device = series.labels.get("index");
                    } else if (of == "activity") {
                      activity[gpu] = values_of(series);
                    } else if (of == "cpu") {
                      node.activity = values_of(series);
                    } else if (of == "power") {
                      node.power = values_of(series);
                    }
                  }));
    for (auto& [uuid, gpu] : gpus_) {
      if (gpu.device.empty()) {
        gpu.device = uuid;
      }
      if (const auto found = activity.find(uuid); found != activity.end()) {
        gpu.activity = std::move(found->second);
      }
    }
    return {};
  }

  Result<> read_devices() {
    if (gpus_.empty()) {
      return {};
    }
    return ask(kOfDevices, matchers_of("gpuuuid", gpus_),
               [&](const tsdb::Series& series, std::string_view of) {
                 const auto found = gpus_.find(series.labels.get("gpuuuid"));
                 if (found == gpus_.end()) {
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
               });
  }

  Result<> read_hosts() {
    return ask(kOfHosts, matchers_of("hostname", hosts_),
               [&](const tsdb::Series& series, std::string_view of) {
                 const auto found = hosts_.find(series.labels.get("hostname"));
                 if (found != hosts_.end() && !of.empty()) {
                   found->second.errors[std::string(of)] = values_of(series);
                 }
               });
  }

  template <typename ByName>
  [[nodiscard]] std::string matchers_of(std::string_view label, const ByName& all) const {
    std::vector<std::string> names;
    names.reserve(all.size());
    for (const auto& [name, member] : all) {
      names.push_back(name);
    }
    return fmt::format("{}=~\"{}\"{}", label, tsdb::quote_text(tsdb::exact_regex(names)), cluster_);
  }

  tsdb::Client& client_;
  std::string uuid_;
  std::string cluster_;  // a matcher after a comma, or empty
  std::string range_;
  Windows windows_;
  fleet::StragglerOptions options_;
  std::map<std::string, JobMember, std::less<>> gpus_;   // by UUID
  std::map<std::string, JobMember, std::less<>> hosts_;  // by name
};

}  // namespace

Result<std::vector<fleet::Straggler>> read_stragglers(const ClusterTsdb& tsdb,
                                                      std::string_view cluster_id,
                                                      const StragglerRequest& request) {
  if (request.until_ms - request.started_ms < kLeastRunMs) {
    return std::vector<fleet::Straggler>{};
  }
  return Reader(tsdb, cluster_id, request).read();
}

}  // namespace ceems::api
