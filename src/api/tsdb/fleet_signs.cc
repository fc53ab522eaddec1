// Signs of broken hardware of the last day.
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/tsdb/fleet.h"
#include "base/strings.h"
#include "tsdb/answer.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxSignSeries = 100'000;

/// Each gives numbers by host and sign; `{0}` stands for the matchers of the cluster, each after a
/// comma. Xids 13, 31, 43 and 45 come from programs. A series that a day ago was not there counts
/// as a whole: its exporter has counted from 0 since. The series of links have no hostname. An
/// older exporter has no seconds of reasons, but what held at each scrape. A lost GPU is known by
/// the only series that every GPU has, with or without permissions.
constexpr std::array<std::string_view, 3> kSignQueries{
    "label_replace(sum by (hostname) ((ceems_gpu_xid_errors_total{{xid!~\"13|31|43|45\"{0}}}"
    " unless ceems_gpu_xid_errors_total offset 1d)"
    " or increase(ceems_gpu_xid_errors_total{{xid!~\"13|31|43|45\"{0}}}[1d])),"
    " \"sign\", \"xid\", \"\", \"\")"
    " or label_replace(sum by (hostname) (increase("
    "ceems_gpu_ecc_errors_total{{type=\"uncorrected\"{0}}}[1d])), \"sign\", \"ecc\", \"\", \"\")",
    "label_replace(max by (hostname) (increase("
    "ceems_gpu_clock_reason_seconds_total{{reason=~\"hardware_thermal|power_brake\"{0}}}[1d]))"
    " or 86400 * max by (hostname) (avg_over_time("
    "ceems_gpu_clock_reason{{reason=~\"hardware_thermal|power_brake\"{0}}}[1d])),"
    " \"sign\", \"throttle\", \"\", \"\")"
    " or label_replace(sum by (hostname) ((increase("
    "ceems_infiniband_link_downed_total{{job!=\"\"{0}}}[1d]) + "
    "increase(ceems_infiniband_link_error_recovery_total{{job!=\"\"{0}}}[1d]))"
    " * on (job, instance) group_left (hostname)"
    " topk by (job, instance) (1, max by (job, instance, hostname)"
    " (ceems_node_info{{hostname!=\"\"{0}}}))),"
    " \"sign\", \"link\", \"\", \"\")",
    "label_replace(max_over_time(sum by (hostname) (max by (hostname, gpuuuid)"
    " (ceems_gpu_up{{hostname!=\"\"{0}}}))[1d:10m])"
    " - sum by (hostname) (max by (hostname, gpuuuid) (ceems_gpu_up{{hostname!=\"\"{0}}})),"
    " \"sign\", \"lost_gpu\", \"\", \"\")"};

}  // namespace

Result<HardSigns> Fleet::hard_signs(const std::string& cluster_id) const {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const std::string only =
      tsdb->cluster_label.empty()
          ? ""
          : fmt::format(",{}=\"{}\"", tsdb->cluster_label, tsdb::quote_text(cluster_id));
  HardSigns signs;
  for (const std::string_view text : kSignQueries) {
    CEEMS_TRY(answer, tsdb->client->query({.query = fmt::format(fmt::runtime(text), only),
                                           .time_ms = clock_->now_ms(),
                                           .timeout = kFleetTimeout,
                                           .max_series = kMaxSignSeries}));
    for (const tsdb::Series& series : answer.series) {
      const std::string host(series.labels.get("hostname"));
      if (host.empty() || series.samples.empty()) {
        continue;
      }
      const double value = series.samples.front().value;
      if (std::isfinite(value) && value > 0) {
        signs[host].emplace(series.labels.get("sign"), value);
      }
    }
  }
  return signs;
}

}  // namespace ceems::api
