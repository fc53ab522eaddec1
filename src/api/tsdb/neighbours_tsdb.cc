#include "api/tsdb/neighbours_tsdb.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/tsdb/windows.h"
#include "base/time/durations.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

using fleet::NodeUnit;
using fleet::WindowValues;
using std::chrono::milliseconds;

constexpr std::int64_t kNeighbourSpanMs = 2 * kHourMs;
constexpr std::size_t kMaxNeighbourSeries = 50'000;
constexpr std::size_t kTopOfFileSystem = 10;

/// `{0}` are matchers, `{1}` is the range of rates. The label `of` keeps the parts apart. Block
/// devices count where eBPF does not.
constexpr std::string_view kOnNodes =
    R"q(label_replace(sum by (hostname, uuid) (rate(ceems_compute_unit_cpu_user_seconds_total{{{0}}}[{1}]) + rate(ceems_compute_unit_cpu_system_seconds_total{{{0}}}[{1}])), "of", "cpus", "", ""))q"
    R"q( or label_replace(sum by (hostname, uuid) (rate(ceems_perf_cpucycles_total{{{0}}}[{1}])) / sum by (hostname, uuid) (rate(ceems_perf_instructions_total{{{0}}}[{1}])), "of", "cpi", "", ""))q"
    R"q( or label_replace(max by (hostname, uuid) (rate(ceems_compute_unit_pressure_seconds_total{{resource="io",kind="some",{0}}}[{1}])), "of", "io", "", ""))q"
    R"q( or label_replace(max by (hostname, uuid) (rate(ceems_compute_unit_memory_psi_seconds{{{0}}}[{1}])), "of", "memory", "", ""))q"
    R"q( or label_replace(sum by (hostname, uuid) (label_replace(rate(ceems_ebpf_read_bytes_total{{{0}}}[{1}]), "part", "r", "", "") or label_replace(rate(ceems_ebpf_write_bytes_total{{{0}}}[{1}]), "part", "w", "", "")))q"
    R"q( or sum by (hostname, uuid) (label_replace(rate(ceems_compute_unit_blkio_read_total_bytes{{{0}}}[{1}]), "part", "r", "", "") or label_replace(rate(ceems_compute_unit_blkio_write_total_bytes{{{0}}}[{1}]), "part", "w", "", "")), "of", "bytes", "", ""))q"
    R"q( or label_replace(sum by (hostname, uuid) (label_replace(rate(ceems_ebpf_read_requests_total{{{0}}}[{1}]), "part", "r", "", "") or label_replace(rate(ceems_ebpf_write_requests_total{{{0}}}[{1}]), "part", "w", "", "") or label_replace(rate(ceems_ebpf_open_requests_total{{{0}}}[{1}]), "part", "o", "", ""))q"
    R"q( or label_replace(rate(ceems_ebpf_create_requests_total{{{0}}}[{1}]), "part", "c", "", "") or label_replace(rate(ceems_ebpf_unlink_requests_total{{{0}}}[{1}]), "part", "u", "", "")))q"
    R"q( or sum by (hostname, uuid) (label_replace(rate(ceems_compute_unit_blkio_read_total_requests{{{0}}}[{1}]), "part", "r", "", "") or label_replace(rate(ceems_compute_unit_blkio_write_total_requests{{{0}}}[{1}]), "part", "w", "", "")), "of", "requests", "", ""))q";

/// What units ask of file systems, with the labels filesystem, uuid and part. `{0}` are matchers of
/// the cluster, each after a comma.
struct FileSystemKind {
  std::string_view name, query;
};
constexpr std::array<FileSystemKind, 3> kFileSystemKinds{{
    {"bytes",
     R"q(label_replace(rate(ceems_lustre_job_read_bytes_total{{uuid!=""{0}}}[{1}]), "part", "r", "", "") or label_replace(rate(ceems_lustre_job_write_bytes_total{{uuid!=""{0}}}[{1}]), "part", "w", "", ""))q"
     R"q( or label_replace(label_replace(rate(ceems_ebpf_read_bytes_total{{uuid!="",mountpoint!~"{2}"{0}}}[{1}]), "filesystem", "$1", "mountpoint", "(.+)"), "part", "r", "", ""))q"
     R"q( or label_replace(label_replace(rate(ceems_ebpf_write_bytes_total{{uuid!="",mountpoint!~"{2}"{0}}}[{1}]), "filesystem", "$1", "mountpoint", "(.+)"), "part", "w", "", ""))q"},
    {"requests",
     R"q(rate(ceems_lustre_job_operations_total{{uuid!="",operation=~"read|write"{0}}}[{1}]))q"
     R"q( or label_replace(label_replace(rate(ceems_ebpf_read_requests_total{{uuid!="",mountpoint!~"{2}"{0}}}[{1}]), "filesystem", "$1", "mountpoint", "(.+)"), "part", "r", "", ""))q"
     R"q( or label_replace(label_replace(rate(ceems_ebpf_write_requests_total{{uuid!="",mountpoint!~"{2}"{0}}}[{1}]), "filesystem", "$1", "mountpoint", "(.+)"), "part", "w", "", ""))q"},
    {"metadata",
     R"q(rate(ceems_lustre_job_operations_total{{uuid!="",operation!~"read|write"{0}}}[{1}]))q"
     R"q( or label_replace(rate(ceems_ebpf_open_requests_total{{uuid!=""{0}}}[{1}]), "part", "o", "", ""))q"
     R"q( or label_replace(rate(ceems_ebpf_create_requests_total{{uuid!=""{0}}}[{1}]), "part", "c", "", ""))q"
     R"q( or label_replace(rate(ceems_ebpf_unlink_requests_total{{uuid!=""{0}}}[{1}]), "part", "u", "", ""))q"},
}};
/// Directories of a node alone.
constexpr std::string_view kLocalMounts = "/|/(boot|dev|proc|run|sys|tmp|var)(/.*)?";
/// A unit waits on the nodes where it waits most. What is below 2 % of the time is not read.
constexpr std::string_view kUnitsThatWait =
    R"q(max by (uuid) (rate(ceems_compute_unit_pressure_seconds_total{{uuid!="",resource="io",kind="some"{0}}}[{1}])) > 0.02)q";
/// Which file systems `{2}` units use. Metadata alone that eBPF counts says nothing.
constexpr std::string_view kUses =
    R"q(rate(ceems_lustre_job_operations_total{{uuid!="",filesystem=~"{2}"{0}}}[{1}]) > 0)q"
    R"q( or label_replace(rate(ceems_ebpf_read_requests_total{{uuid!="",mountpoint=~"{2}"{0}}}[{1}]), "filesystem", "$1", "mountpoint", "(.+)") > 0)q"
    R"q( or label_replace(rate(ceems_ebpf_write_requests_total{{uuid!="",mountpoint=~"{2}"{0}}}[{1}]), "filesystem", "$1", "mountpoint", "(.+)") > 0)q";

class RangeReader {
 public:
  RangeReader(const ClusterTsdb& tsdb, std::string_view cluster_id, std::int64_t until_ms)
      : client_(*tsdb.client) {
    if (!tsdb.cluster_label.empty()) {
      cluster_ = fmt::format(",{}=\"{}\"", tsdb.cluster_label, tsdb::quote_text(cluster_id));
    }
    const auto settings = client_.settings();
    windows_.step_ms = std::max(kMinuteMs, std::int64_t{settings.scrape_interval.count()});
    windows_.from_ms = until_ms - kNeighbourSpanMs;
    windows_.count = static_cast<std::size_t>(kNeighbourSpanMs / windows_.step_ms);
    range_ =
        tsdb::duration_text(std::max(milliseconds(windows_.step_ms), settings.rate_interval()));
  }

  template <typename Take>
  Result<> ask(const std::string& query, const Take& take) {
    CEEMS_TRY(answer, client_.query_range(query, windows_.first_ms(), windows_.last_ms(),
                                          milliseconds(windows_.step_ms)));
    if (answer.series.size() > kMaxNeighbourSeries) {
      return fail(ErrorCode::kUnavailable, "the TSDB has more than {} series of units",
                  kMaxNeighbourSeries);
    }
    for (const tsdb::Series& series : answer.series) {
      take(series);
    }
    return {};
  }

  [[nodiscard]] const Windows& windows() const { return windows_; }
  [[nodiscard]] const std::string& cluster() const { return cluster_; }
  [[nodiscard]] const std::string& range() const { return range_; }

 private:
  tsdb::Client& client_;
  Windows windows_;
  std::string cluster_;  // a matcher after a comma, or empty
  std::string range_;
};

WindowValues* values_named(NodeUnit& unit, std::string_view of) {
  constexpr std::array<std::pair<std::string_view, WindowValues NodeUnit::*>, 6> kNames{
      {{"cpus", &NodeUnit::cpus},
       {"cpi", &NodeUnit::cpi},
       {"io", &NodeUnit::io_stalled},
       {"memory", &NodeUnit::memory_stalled},
       {"bytes", &NodeUnit::bytes},
       {"requests", &NodeUnit::requests}}};
  const auto found =
      std::ranges::find(kNames, of, &std::pair<std::string_view, WindowValues NodeUnit::*>::first);
  return found == kNames.end() ? nullptr : &(unit.*found->second);
}

WindowValues* values_named(fleet::FileSystemUse& use, std::string_view of) {
  return of == "bytes"      ? &use.bytes
         : of == "requests" ? &use.requests
         : of == "metadata" ? &use.metadata
                            : nullptr;
}

/// The mean of the last hour, in which nothing means none.
double hourly_mean(const WindowValues& values, const Windows& windows) {
  const auto hour = static_cast<std::size_t>(kHourMs / windows.step_ms);
  const std::size_t first = windows.count > hour ? windows.count - hour : 0;
  double sum = 0;
  for (std::size_t i = first; i < values.size(); ++i) {
    sum += values[i].value_or(0);
  }
  return windows.count > first ? sum / static_cast<double>(windows.count - first) : 0;
}

struct ReadSystem {
  std::map<std::string, fleet::FileSystemUse> units;     // by uuid
  std::map<std::string, WindowValues, std::less<>> all;  // by kind
};

std::vector<FileSystemTop> top_of(const std::string& name,
                                  const ReadSystem& system,
                                  const Windows& windows) {
  std::vector<FileSystemTop> rows;
  for (const auto& [uuid, use] : system.units) {
    FileSystemTop row{.file_system = name, .uuid = uuid};
    const auto mean_of = [&](const WindowValues& values, std::string_view kind) {
      const double mean = hourly_mean(values, windows);
      const auto total = system.all.find(kind);
      const double all = total == system.all.end() ? 0 : hourly_mean(total->second, windows);
      if (all > 0) {
        row.share = std::max(row.share.value_or(0), std::min(1.0, mean / all));
      }
      return values.empty() ? std::nullopt : std::optional(mean);
    };
    row.bytes = mean_of(use.bytes, "bytes");
    row.requests = mean_of(use.requests, "requests");
    row.metadata = mean_of(use.metadata, "metadata");
    if (row.bytes.value_or(0) + row.requests.value_or(0) + row.metadata.value_or(0) > 0) {
      rows.push_back(std::move(row));
    }
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const FileSystemTop& row) { return row.share.value_or(0); });
  if (rows.size() > kTopOfFileSystem) {
    rows.resize(kTopOfFileSystem);
  }
  return rows;
}

/// Which units wait, and which of these use the loaded file systems.
Result<fleet::Waits> read_waits(RangeReader& reader, const std::vector<std::string>& loaded) {
  const std::string waiting =
      fmt::format(fmt::runtime(kUnitsThatWait), reader.cluster(), reader.range());
  std::string query = waiting;
  std::vector<std::string> named = loaded;
  std::erase(named, "");
  fleet::Waits waits;
  if (!named.empty()) {
    query += fmt::format(R"( or (group by (filesystem, uuid) ({}) and on (uuid) ({})))",
                         fmt::format(fmt::runtime(kUses), reader.cluster(), reader.range(),
                                     tsdb::quote_text(tsdb::exact_regex(named))),
                         waiting);
    for (const std::string& name : named) {
      waits.users[name];
    }
  }
  CEEMS_TRY(reader.ask(query, [&](const tsdb::Series& series) {
    const std::string uuid(series.labels.get("uuid"));
    const std::string name(series.labels.get("filesystem"));
    if (name.empty()) {
      waits.stalled[uuid] = reader.windows().values_of(series);
    } else {
      waits.users[name].insert(uuid);
    }
  }));
  return waits;
}

}  // namespace

Result<std::vector<NodeNeighbours>> read_neighbours(const ClusterTsdb& tsdb,
                                                    std::string_view cluster_id,
                                                    const std::vector<std::string>& nodes,
                                                    std::int64_t until_ms) {
  RangeReader reader(tsdb, cluster_id, until_ms);
  const std::string matchers = fmt::format(
      R"(hostname=~"{}",uuid!=""{})", tsdb::quote_text(tsdb::exact_regex(nodes)), reader.cluster());
  std::map<std::string, std::map<std::string, NodeUnit>> by_node;
  CEEMS_TRY(reader.ask(fmt::format(fmt::runtime(kOnNodes), matchers, reader.range()),
                       [&](const tsdb::Series& series) {
                         const std::string host(series.labels.get("hostname"));
                         const std::string uuid(series.labels.get("uuid"));
                         if (std::ranges::find(nodes, host) == nodes.end() || uuid.empty()) {
                           return;
                         }
                         NodeUnit& unit = by_node[host][uuid];
                         unit.uuid = uuid;
                         if (WindowValues* const values =
                                 values_named(unit, series.labels.get("of"))) {
                           *values = reader.windows().values_of(series);
                         }
                       }));
  std::vector<NodeNeighbours> rows;
  for (auto& [host, units] : by_node) {
    std::vector<NodeUnit> all;
    all.reserve(units.size());
    for (auto& [uuid, unit] : units) {
      all.push_back(std::move(unit));
    }
    auto pairs = fleet::find_neighbours(all);
    if (!pairs.empty()) {
      rows.push_back({.node = host, .pairs = std::move(pairs)});
    }
  }
  return rows;
}

Result<std::vector<std::string>> read_nodes_of(const ClusterTsdb& tsdb,
                                               std::string_view cluster_id,
                                               std::string_view uuid,
                                               std::int64_t until_ms) {
  const RangeReader reader(tsdb, cluster_id, until_ms);
  CEEMS_TRY(answer, tsdb.client->query(
                        {.query = fmt::format("count by (hostname) (count_over_time("
                                              "ceems_compute_unit_cpus{{uuid=\"{}\"{}}}[2h]))",
                                              tsdb::quote_text(uuid), reader.cluster()),
                         .time_ms = until_ms,
                         .max_series = kMaxNeighbourSeries}));
  std::set<std::string> nodes;
  for (const tsdb::Series& series : answer.series) {
    if (const std::string_view host = series.labels.get("hostname"); !host.empty()) {
      nodes.emplace(host);
    }
  }
  return std::vector<std::string>(nodes.begin(), nodes.end());
}

Result<IoLoad> read_io_load(const ClusterTsdb& tsdb,
                            std::string_view cluster_id,
                            std::int64_t until_ms) {
  RangeReader reader(tsdb, cluster_id, until_ms);
  const Windows& windows = reader.windows();
  std::string both;
  for (const FileSystemKind& kind : kFileSystemKinds) {
    const std::string asked =
        fmt::format(fmt::runtime(kind.query), reader.cluster(), reader.range(), kLocalMounts);
    both += fmt::format(
        R"({0}label_replace(topk by (filesystem) ({1}, sum by (filesystem, uuid) ({2})), "of", "{3}", "", ""))"
        R"( or label_replace(sum by (filesystem) ({2}), "of", "{3}", "", ""))",
        both.empty() ? "" : " or ", kTopOfFileSystem, asked, kind.name);
  }
  std::map<std::string, ReadSystem> systems;
  CEEMS_TRY(reader.ask(both, [&](const tsdb::Series& series) {
    const std::string uuid(series.labels.get("uuid"));
    const std::string of(series.labels.get("of"));
    ReadSystem& system = systems[std::string(series.labels.get("filesystem"))];
    if (uuid.empty()) {
      system.all[of] = windows.values_of(series);
      return;
    }
    fleet::FileSystemUse& use = system.units[uuid];
    use.uuid = uuid;
    if (WindowValues* const values = values_named(use, of)) {
      *values = windows.values_of(series);
    }
  }));
  IoLoad load{.storms = {}, .top = {}, .from_ms = windows.from_ms, .step_ms = windows.step_ms};
  std::vector<fleet::FileSystem> judged;
  for (auto& [name, system] : systems) {
    auto rows = top_of(name, system, windows);
    load.top.insert(load.top.end(), std::make_move_iterator(rows.begin()),
                    std::make_move_iterator(rows.end()));
    fleet::FileSystem& one = judged.emplace_back(fleet::FileSystem{.name = name});
    one.requests = std::move(system.all["requests"]);
    one.metadata = std::move(system.all["metadata"]);
    for (auto& [uuid, use] : system.units) {
      one.units.push_back(std::move(use));
    }
  }
  const std::vector<std::string> loaded = fleet::loaded_file_systems(judged);
  if (loaded.empty()) {
    return load;
  }
  CEEMS_TRY(waits, read_waits(reader, loaded));
  load.storms = fleet::find_io_storms(judged, waits);
  const auto hour = static_cast<std::size_t>(kHourMs / windows.step_ms);
  std::erase_if(load.storms, [&](const fleet::IoStorm& storm) {
    return storm.first + storm.windows + hour <= windows.count;
  });
  return load;
}

}  // namespace ceems::api
