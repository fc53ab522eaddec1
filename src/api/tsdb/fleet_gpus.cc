// What units did on GPUs.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "api/tsdb/fleet.h"
#include "base/strings.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxGpuSeries = 100'000;

/// `{0}` is the matcher of the cluster, `{1}` the period. The label `kind` keeps the parts apart;
/// rates are shares of the whole period, also of units that ran during a part of it.
constexpr std::string_view kQuery =
    "label_replace(max by (hostname, index, gpuiid, uuid)"
    " (rate(ceems_compute_unit_gpu_busy_seconds_total{{{0}}}[{1}s])), \"kind\", \"busy\", \"\", "
    "\"\")"
    " or label_replace(max by (hostname, index, gpuiid, uuid)"
    " (rate(ceems_compute_unit_gpu_sm_seconds_total{{{0}}}[{1}s])), \"kind\", \"sm\", \"\", \"\")"
    " or label_replace(max by (hostname, index, gpuiid)"
    " (count_over_time(ceems_gpu_utilization_ratio{{{0}}}[{1}s])), \"kind\", \"gpu\", \"\", \"\")";

/// Host, index and instance, in the order of the rows: numbers by their value.
using RowKey = std::tuple<std::string, std::int64_t, std::string, std::string>;

RowKey key_of(const tsdb::Labels& labels) {
  constexpr std::int64_t kNotANumber = 1'000'000;
  const std::string_view index = labels.get("index");
  return {std::string(labels.get("hostname")), parse_int<std::int64_t>(index).value_or(kNotANumber),
          std::string(index), std::string(labels.get("gpuiid"))};
}

GpuPart& part_of(GpuRow::Cell& cell, std::string_view uuid) {
  const auto found = std::ranges::find(cell.parts, uuid, &GpuPart::uuid);
  return found != cell.parts.end() ? *found
                                   : cell.parts.emplace_back(GpuPart{.uuid = std::string(uuid)});
}

void add_series(const tsdb::Series& series, std::int64_t first_ms, std::vector<GpuRow::Cell>& to) {
  const std::string_view kind = series.labels.get("kind");
  const std::string_view uuid = series.labels.get("uuid");
  for (const tsdb::Sample& sample : series.samples) {
    const std::int64_t place = (sample.time_ms - first_ms + kGpuPeriodMs / 2) / kGpuPeriodMs;
    if (sample.time_ms < first_ms - kGpuPeriodMs / 2 || std::cmp_greater_equal(place, to.size()) ||
        !std::isfinite(sample.value)) {
      continue;
    }
    GpuRow::Cell& cell = to[static_cast<std::size_t>(place)];
    cell.seen = true;
    if (kind == "gpu" || uuid.empty()) {
      continue;
    }
    GpuPart& part = part_of(cell, uuid);
    (kind == "sm" ? part.sm : part.busy) = std::clamp(sample.value, 0.0, 1.0);
  }
}

/// Removes GPUs that are in the list by their instances, too.
void drop_divided(std::map<RowKey, std::vector<GpuRow::Cell>>& rows) {
  std::erase_if(rows, [&rows](const auto& row) {
    const auto& [host, number, index, instance] = row.first;
    if (!instance.empty() ||
        std::ranges::any_of(row.second, [](const auto& cell) { return !cell.parts.empty(); })) {
      return false;
    }
    const auto next = rows.upper_bound(row.first);
    return next != rows.end() && std::get<0>(next->first) == host &&
           std::get<2>(next->first) == index;
  });
}

}  // namespace

Result<std::shared_ptr<const GpuBoard>> Fleet::gpus(const std::string& cluster_id,
                                                    std::int64_t now_ms) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const std::int64_t end_ms = now_ms / kMinuteMs * kMinuteMs;
  {
    const MutexLock lock(mutex_);
    const auto found = kept_gpus_.find(cluster_id);
    if (found != kept_gpus_.end() && found->second->ends_ms.back() == end_ms) {
      return found->second;
    }
  }
  const std::int64_t first_ms = end_ms - static_cast<std::int64_t>(kGpuPeriods - 1) * kGpuPeriodMs;
  const std::string matcher =
      tsdb->cluster_label.empty()
          ? std::string()
          : fmt::format("{}=\"{}\"", tsdb->cluster_label, tsdb::quote_text(cluster_id));
  CEEMS_TRY(answer, tsdb->client->query_range(
                        fmt::format(fmt::runtime(kQuery), matcher, kGpuPeriodMs / 1000), first_ms,
                        end_ms, milliseconds(kGpuPeriodMs)));
  if (answer.series.size() > kMaxGpuSeries) {
    return fail(ErrorCode::kUnavailable, "the TSDB has more than {} series of GPUs", kMaxGpuSeries);
  }
  std::map<RowKey, std::vector<GpuRow::Cell>> rows;
  for (const tsdb::Series& series : answer.series) {
    RowKey key = key_of(series.labels);
    if (!std::get<0>(key).empty()) {
      auto& cells = rows[std::move(key)];
      cells.resize(kGpuPeriods);
      add_series(series, first_ms, cells);
    }
  }
  drop_divided(rows);
  auto board = std::make_shared<GpuBoard>();
  for (std::size_t i = 0; i < kGpuPeriods; ++i) {
    board->ends_ms.push_back(first_ms + static_cast<std::int64_t>(i) * kGpuPeriodMs);
  }
  board->rows.reserve(rows.size());
  for (auto& [key, cells] : rows) {
    board->rows.push_back({.host = std::get<0>(key),
                           .index = std::get<2>(key),
                           .instance = std::get<3>(key),
                           .cells = std::move(cells)});
  }
  const MutexLock lock(mutex_);
  kept_gpus_[cluster_id] = board;
  return std::shared_ptr<const GpuBoard>(std::move(board));
}

}  // namespace ceems::api
