#include "exporter/collectors/ebpf.h"

#include <sys/capability.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "exporter/ebpf/programs.h"

namespace ceems::exporter {
namespace {

using ebpf::ebpf_file_time;
using ebpf::ebpf_file_value;
using ebpf::ebpf_name_value;
using metrics::Desc;

/// A metric and the counter that it shows. `scale` turns nanoseconds into seconds.
template <class Value>
struct Series {
  Desc desc;
  std::uint64_t Value::* counter;
  double scale = 1;
};

constexpr double kNanosecond = 1e-9;

Desc ebpf_desc(std::string_view name, std::string_view help, std::vector<std::string> more) {
  std::vector<std::string> labels{"manager", "hostname"};
  labels.insert(labels.end(), more.begin(), more.end());
  return {"ceems_ebpf_" + std::string(name), std::string(help), metrics::Type::kCounter,
          std::move(labels)};
}

Desc total(std::string_view what, std::string_view help, std::vector<std::string> labels) {
  return ebpf_desc(std::string(what) + "_total",
                   "Total number of " + std::string(help) + " a cgroup", std::move(labels));
}

std::vector<Series<ebpf_file_value>> make_file_series() {
  using V = ebpf_file_value;
  const std::vector<std::string> labels{"uuid", "mountpoint"};
  return {
      {ebpf_desc("write_bytes_total", "Total number of bytes written from a cgroup in bytes",
                 labels),
       &V::write_bytes},
      {total("write_requests", "write requests from", labels), &V::writes},
      {total("write_errors", "write errors from", labels), &V::write_errors},
      {ebpf_desc("read_bytes_total", "Total number of bytes read from a cgroup in bytes", labels),
       &V::read_bytes},
      {total("read_requests", "read requests from", labels), &V::reads},
      {total("read_errors", "read errors from", labels), &V::read_errors}};
}

std::vector<Series<ebpf_file_time>> make_time_series() {
  using V = ebpf_file_time;
  const std::vector<std::string> labels{"uuid", "mountpoint"};
  return {{ebpf_desc("read_seconds_total", "Time that a cgroup spent in read requests", labels),
           &V::read, kNanosecond},
          {ebpf_desc("write_seconds_total", "Time that a cgroup spent in write requests", labels),
           &V::write, kNanosecond},
          {ebpf_desc("fsync_seconds_total", "Time that a cgroup spent in fsync requests", labels),
           &V::fsync, kNanosecond},
          {total("fsync_requests", "fsync requests from", labels), &V::fsyncs}};
}

std::vector<Series<ebpf_name_value>> make_name_series() {
  using V = ebpf_name_value;
  const std::vector<std::string> labels{"uuid"};
  return {{total("open_requests", "open requests from", labels), &V::opens},
          {total("open_errors", "open errors from", labels), &V::open_errors},
          {total("create_requests", "create requests from", labels), &V::creates},
          // The name that the reference uses for errors of create requests, and the one that its
          // documentation gives.
          {total("open_create", "create errors from", labels), &V::create_errors},
          {total("create_errors", "create errors from", labels), &V::create_errors},
          {total("unlink_requests", "unlink requests from", labels), &V::unlinks},
          {total("unlink_errors", "unlink errors from", labels), &V::unlink_errors}};
}

using T = ebpf::ebpf_traffic_value;

std::vector<Series<T>> make_traffic_series() {
  const std::vector<std::string> labels{"uuid", "proto", "family"};
  return {{total("ingress_packets", "ingress packets from", labels), &T::ingress_packets},
          {total("ingress_bytes", "ingress bytes from", labels), &T::ingress_bytes},
          {total("egress_packets", "egress packets from", labels), &T::egress_packets},
          {total("egress_bytes", "egress bytes from", labels), &T::egress_bytes}};
}

std::vector<Series<T>> make_retransmission_series() {
  const std::vector<std::string> labels{"uuid", "proto", "family"};
  return {{total("retrans_packets", "retransmission packets from", labels), &T::retrans_packets},
          {total("retrans_bytes", "retransmission bytes from", labels), &T::retrans_bytes}};
}

std::vector<Series<T>> make_error_series() {
  const std::vector<std::string> labels{"uuid", "proto", "family"};
  return {{total("ingress_errors", "failed receive calls from", labels), &T::ingress_errors},
          {total("egress_errors", "failed send calls from", labels), &T::egress_errors}};
}

std::vector<Series<T>> make_class_series() {
  const std::vector<std::string> labels{"uuid", "class"};
  return {{total("class_ingress_packets", "ingress packets from", labels), &T::ingress_packets},
          {total("class_ingress_bytes", "ingress bytes from", labels), &T::ingress_bytes},
          {total("class_egress_packets", "egress packets from", labels), &T::egress_packets},
          {total("class_egress_bytes", "egress bytes from", labels), &T::egress_bytes}};
}

constexpr std::array<std::string_view, 3> kEbpfOperations{"read", "write", "fsync"};
constexpr std::uint16_t kTcp = 6;
constexpr std::uint16_t kIpv4 = 2;

class Ebpf final : public SubCollector {
 public:
  Ebpf(const CollectorContext& context,
       EbpfOptions options,
       std::shared_ptr<ebpf::Counts> counts,
       UnitSource* source)
      : hostname_(context.hostname),
        options_(std::move(options)),
        counts_(std::move(counts)),
        source_(source) {}

  [[nodiscard]] std::string_view name() const override { return "ebpf"; }

  Result<> collect(const UnitSnapshot& snapshot, metrics::Sink& sink) override {
    CEEMS_TRY(page, counts_->page(snapshot));
    for (const auto& [uuid, unit] : page.units) {
      const Labels labels{snapshot.manager, hostname_, uuid};
      if (options_.files) {
        add_files(unit, labels, sink);
      }
      if (options_.network) {
        add_traffic(unit, labels, sink);
      }
    }
    note_traffic(snapshot, page);
    add_latencies(page, snapshot.manager, sink);
    add_lost(page, snapshot.manager, sink);
    return {};
  }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return {CAP_BPF, CAP_PERFMON};
  }

 private:
  struct Labels {
    std::string_view manager;
    std::string_view hostname;
    std::string_view uuid;
  };

  /// Passes the bytes moved by each unit to the source, which uses them to detect idle units.
  void note_traffic(const UnitSnapshot& snapshot, const ebpf::CountsPage& page) const {
    if (source_ == nullptr) {
      return;
    }
    std::vector<UnitTraffic> traffic;
    for (const Unit& unit : snapshot.units) {
      UnitTraffic& all = traffic.emplace_back(
          UnitTraffic{.cgrouphostname = unit.cgrouphostname, .uuid = unit.uuid});
      const auto counted = page.units.find(unit.uuid);
      if (counted == page.units.end()) {
        continue;
      }
      for (const auto& [kind, value] : counted->second.traffic) {
        all.bytes += static_cast<double>(value.ingress_bytes + value.egress_bytes);
      }
      for (const auto& [mount, counts] : counted->second.files) {
        all.bytes += static_cast<double>(counts.io.read_bytes + counts.io.write_bytes);
      }
    }
    source_->note_traffic(traffic);
  }

  template <class Value, class... More>
  static void add_all(const std::vector<Series<Value>>& all,
                      const Value& value,
                      const Labels& labels,
                      metrics::Sink& sink,
                      More... more) {
    for (const Series<Value>& one : all) {
      sink.add(one.desc, static_cast<double>(value.*one.counter) * one.scale,
               {labels.manager, labels.hostname, labels.uuid, more...});
    }
  }

  [[nodiscard]] bool shows(std::string_view mount) const {
    return options_.mount_points.empty() ||
           std::ranges::any_of(options_.mount_points, [&](const std::string& part) {
             return mount.find(part) != std::string_view::npos;
           });
  }

  void add_files(const ebpf::UnitCounts& unit, const Labels& labels, metrics::Sink& sink) const {
    for (const auto& [mount, counts] : unit.files) {
      if (shows(mount)) {
        add_all(files_, counts.io, labels, sink, std::string_view(mount));
        if (options_.latency) {
          add_all(times_, counts.time, labels, sink, std::string_view(mount));
        }
      }
    }
    if (unit.names) {
      add_all(names_, *unit.names, labels, sink);
    }
  }

  void add_traffic(const ebpf::UnitCounts& unit, const Labels& labels, metrics::Sink& sink) const {
    std::map<std::pair<std::uint16_t, std::uint16_t>, T> sums;
    std::map<std::string_view, T> classes;
    for (const auto& [kind, value] : unit.traffic) {
      T& sum = sums[{kind.protocol, kind.family}];
      sum = ebpf::add(sum, value);
      T& of_class = classes[options_.classes.name(kind.network_class)];
      of_class = ebpf::add(of_class, value);
    }
    for (const auto& [kind, value] : sums) {
      const std::string_view protocol = kind.first == kTcp ? "tcp" : "udp";
      const std::string_view family = kind.second == kIpv4 ? "ipv4" : "ipv6";
      add_all(traffic_, value, labels, sink, protocol, family);
      if (kind.first == kTcp) {
        add_all(retransmissions_, value, labels, sink, protocol, family);
      }
      if (value.ingress_errors + value.egress_errors > 0) {
        add_all(errors_, value, labels, sink, protocol, family);
      }
    }
    if (!options_.classes.empty()) {
      for (const auto& [name, value] : classes) {
        add_all(of_classes_, value, labels, sink, name);
      }
    }
  }

  void add_latencies(const ebpf::CountsPage& page,
                     std::string_view manager,
                     metrics::Sink& sink) const {
    for (const auto& [key, value] : page.latencies) {
      if (key.operation >= kEbpfOperations.size() || !shows(key.mount.text)) {
        continue;
      }
      const std::string_view operation = kEbpfOperations.at(key.operation);
      std::uint64_t count = 0;
      std::uint64_t limit = 4096;
      for (std::size_t i = 0; i < ebpf::EBPF_BUCKETS; ++i, limit <<= 2U) {
        count += std::span(value.buckets)[i];
        const std::string bound = i + 1 < ebpf::EBPF_BUCKETS
                                      ? fmt::format("{}", static_cast<double>(limit) * kNanosecond)
                                      : "+Inf";
        sink.add(buckets_, static_cast<double>(count),
                 {manager, hostname_, key.mount.text, key.mount.type, operation, bound});
      }
      sink.add(latency_sum_, static_cast<double>(value.nanoseconds) * kNanosecond,
               {manager, hostname_, key.mount.text, key.mount.type, operation});
      sink.add(latency_count_, static_cast<double>(count),
               {manager, hostname_, key.mount.text, key.mount.type, operation});
    }
  }

  void add_lost(const ebpf::CountsPage& page, std::string_view manager, metrics::Sink& sink) const {
    const ebpf::ebpf_lost& lost = page.lost;
    for (const auto& [table, events] : {std::pair{"cgroups", lost.cgroups},
                                        {"files", lost.files},
                                        {"names", lost.names},
                                        {"latencies", lost.latencies},
                                        {"traffic", lost.traffic},
                                        {"connections", lost.connections}}) {
      sink.add(lost_, static_cast<double>(events), {manager, hostname_, table});
    }
    sink.add(skipped_, static_cast<double>(page.skipped), {manager, hostname_});
  }

  std::string hostname_;
  EbpfOptions options_;
  std::shared_ptr<ebpf::Counts> counts_;
  UnitSource* source_;
  std::vector<Series<ebpf_file_value>> files_ = make_file_series();
  std::vector<Series<ebpf_file_time>> times_ = make_time_series();
  std::vector<Series<ebpf_name_value>> names_ = make_name_series();
  std::vector<Series<T>> traffic_ = make_traffic_series();
  std::vector<Series<T>> retransmissions_ = make_retransmission_series();
  std::vector<Series<T>> errors_ = make_error_series();
  std::vector<Series<T>> of_classes_ = make_class_series();
  Desc buckets_ = ebpf_desc("latency_seconds_bucket",
                            "Requests on a mount of this node that took at most so long",
                            {"mountpoint", "fstype", "operation", "le"});
  Desc latency_sum_ = ebpf_desc("latency_seconds_sum",
                                "Time of all requests on a mount of this node",
                                {"mountpoint", "fstype", "operation"});
  Desc latency_count_ = ebpf_desc("latency_seconds_count",
                                  "Number of all requests on a mount of this node",
                                  {"mountpoint", "fstype", "operation"});
  Desc lost_ = ebpf_desc("lost_events_total",
                         "Events that are missing in the counters because a table of the kernel "
                         "was full",
                         {"table"});
  Desc skipped_ = ebpf_desc("skipped_events_total",
                            "Events at which the kernel did not run a program, because one was "
                            "running on the same CPU",
                            {});
};

struct EbpfFlags {
  EbpfOptions options;
  bool full_paths = false;
  std::vector<std::string> classes;
  /// Shared by the collectors of all managers; null if it could not be made.
  std::optional<std::shared_ptr<ebpf::Counts>> counts;
};

void log_missing(const std::vector<ebpf::MissingHook>& missing) {
  if (missing.empty()) {
    return;
  }
  std::string loses;
  for (const ebpf::MissingHook& hook : missing) {
    loses += fmt::format("{}{} ({}: {})", loses.empty() ? "" : "; ", hook.loses, hook.function,
                         hook.reason);
  }
  log::warn("eBPF: this kernel does not let everything be counted",
            {{"collector", "ebpf"}, {"not_counted", loses}});
}

std::shared_ptr<ebpf::Counts> load(const CollectorContext& context,
                                   const EbpfFlags& flags,
                                   const UnitSource& source) {
  auto programs = ebpf::Programs::load({.files = flags.options.files,
                                        .network = flags.options.network,
                                        .latency = flags.options.latency,
                                        .networks = flags.options.classes.networks(),
                                        .controller = std::string(source.controller())});
  if (!programs) {
    log::error("no eBPF metrics; 'ceems_exporter doctor' says what is missing",
               {{"collector", "ebpf"}, {"err", programs.error().message}});
    return nullptr;
  }
  log_missing((*programs)->missing());
  return std::make_shared<ebpf::Counts>(*std::move(programs), flags.full_paths, *context.clock);
}

}  // namespace

std::unique_ptr<SubCollector> make_ebpf(const CollectorContext& context,
                                        EbpfOptions options,
                                        std::shared_ptr<ebpf::Counts> counts,
                                        UnitSource* source) {
  return std::make_unique<Ebpf>(context, std::move(options), std::move(counts), source);
}

/// --collector.ebpf.*
SubCollectorSpec ebpf_sub_collector() {
  auto values = std::make_shared<EbpfFlags>();
  return {
      .name = "ebpf",
      .add_flags =
          [values](config::FlagSet& flags) {
            flags.add("collector.ebpf.io-metrics", values->options.files,
                      {.help = "Count what each unit reads and writes, by mount point, and the "
                               "files that it opens, creates and removes (eBPF)"});
            flags.add("collector.ebpf.network-metrics", values->options.network,
                      {.help = "Count the TCP and UDP traffic of each unit (eBPF)"});
            flags.add("collector.ebpf.fs-mount-point", values->options.mount_points,
                      {.help = "Show reads and writes only for mount points that contain this "
                               "text; may be repeated"});
            flags.add("collector.ebpf.full-mount-paths", values->full_paths,
                      {.help = "Show the whole path of a mount point instead of its last part"});
            flags.add("collector.ebpf.io-latency-metrics", values->options.latency,
                      {.help = "Measure how long reads, writes and fsyncs take, by mount point; "
                               "needs --collector.ebpf.io-metrics"});
            flags.add("collector.ebpf.network-class", values->classes,
                      {.help = "Count traffic to these networks by class as well: "
                               "NAME=NETWORK[,NETWORK...], e.g. storage=10.1.0.0/16; may be "
                               "repeated"});
          },
      .create = [values](const CollectorContext& context, const host::CgroupMount&,
                         UnitSource& source) -> Result<std::unique_ptr<SubCollector>> {
        CEEMS_TRY_IN("--collector.ebpf.network-class", classes,
                     ebpf::NetworkClasses::parse(values->classes));
        values->options.classes = std::move(classes);
        if (!values->options.files && !values->options.network) {
          return nullptr;
        }
        if (!values->counts) {
          values->counts = load(context, *values, source);
        }
        return *values->counts ? make_ebpf(context, values->options, *values->counts, &source)
                               : nullptr;
      }};
}

}  // namespace ceems::exporter
