#include <array>
#include <utility>

#include <re2/re2.h>

#include "base/strings.h"
#include "exporter/collector.h"
#include "host/net_dev.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::string_view kIncludeFlag = "collector.netdev.device-include";
constexpr std::string_view kExcludeFlag = "collector.netdev.device-exclude";

metrics::Desc netdev_desc(const char* stem, const char* help) {
  return {std::string("ceems_netdev_") + stem + "_total",
          help,
          metrics::Type::kCounter,
          {"hostname", "device"}};
}

/// Selects the exported network devices by RE2 expressions that may match anywhere in the name
/// ("eth0" also matches "veth01", as in the reference). An empty expression does not filter.
struct NetdevOptions {
  std::string include;
  std::string exclude;
};

using Descs = std::array<metrics::Desc, host::kNetDevColumns>;

/// The expression of a flag; null if the flag is empty.
Result<std::unique_ptr<const RE2>> compile(std::string_view flag, const std::string& text) {
  if (text.empty()) {
    return nullptr;
  }
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_unique<const RE2>(text, options);
  if (!regex->ok()) {
    return fail(ErrorCode::kInvalidArgument, "--{}: invalid regular expression '{}': {}", flag,
                printable(text), printable(regex->error()));
  }
  return regex;
}

class NetdevCollector final : public Collector {
 public:
  NetdevCollector(const CollectorContext& context,
                  std::unique_ptr<const RE2> include,
                  std::unique_ptr<const RE2> exclude)
      : path_(context.paths.proc / "net/dev"),
        hostname_(context.hostname),
        include_(std::move(include)),
        exclude_(std::move(exclude)) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(host::read_file(path_.c_str(), buffer_));
    auto parsed = host::parse_net_dev(buffer_, devices_);
    for (const host::NetDevice& device : devices_) {
      if (!wanted(device.name)) {
        continue;
      }
      for (std::size_t i = 0; i < host::kNetDevColumns; ++i) {
        add(sink, receive_.at(i), device.name, device.receive.at(i));
        add(sink, transmit_.at(i), device.name, device.transmit.at(i));
      }
    }
    if (!parsed) {
      return fail(std::move(parsed).error().with_context(path_));
    }
    return {};
  }

 private:
  [[nodiscard]] bool wanted(std::string_view device) const {
    const re2::StringPiece name(device.data(), device.size());
    return (!include_ || RE2::PartialMatch(name, *include_)) &&
           (!exclude_ || !RE2::PartialMatch(name, *exclude_));
  }

  void add(metrics::Sink& sink,
           const metrics::Desc& desc,
           std::string_view device,
           std::uint64_t value) const {
    sink.add(desc, static_cast<double>(value), {hostname_, device});
  }

  std::string path_;
  std::string hostname_;
  std::unique_ptr<const RE2> include_;
  std::unique_ptr<const RE2> exclude_;
  Descs receive_{netdev_desc("receive_bytes", "Bytes that the device received."),
                 netdev_desc("receive_packets", "Packets that the device received."),
                 netdev_desc("receive_errors", "Bad packets that the device received."),
                 netdev_desc("receive_dropped", "Received packets that the kernel dropped."),
                 netdev_desc("receive_fifo", "Overruns of the device's receive buffer."),
                 netdev_desc("receive_frame", "Framing errors of received packets."),
                 netdev_desc("receive_compressed", "Compressed packets that the device received."),
                 netdev_desc("receive_multicast", "Multicast frames that the device received.")};
  Descs transmit_{netdev_desc("transmit_bytes", "Bytes that the device sent."),
                  netdev_desc("transmit_packets", "Packets that the device sent."),
                  netdev_desc("transmit_errors", "Packets that the device failed to send."),
                  netdev_desc("transmit_dropped", "Packets to be sent that the kernel dropped."),
                  netdev_desc("transmit_fifo", "Overruns of the device's transmit buffer."),
                  netdev_desc("transmit_colls", "Collisions that the device saw when sending."),
                  netdev_desc("transmit_carrier", "Losses of the carrier when sending."),
                  netdev_desc("transmit_compressed", "Compressed packets that the device sent.")};
  std::vector<host::NetDevice> devices_;
  std::string buffer_;
};

/// Errors name the flag: both filters are given, an expression is invalid, or the root of procfs is
/// not a directory.
Result<std::unique_ptr<Collector>> create_netdev(const CollectorContext& context,
                                                 const NetdevOptions& options) {
  if (!options.include.empty() && !options.exclude.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--{} and --{} exclude each other", kIncludeFlag,
                kExcludeFlag);
  }
  const std::string proc = context.paths.proc;
  if (!host::is_directory(proc)) {
    return fail(ErrorCode::kInvalidArgument, "--path.procfs: {} is not a directory", proc);
  }
  CEEMS_TRY(include, compile(kIncludeFlag, options.include));
  CEEMS_TRY(exclude, compile(kExcludeFlag, options.exclude));
  return std::make_unique<NetdevCollector>(context, std::move(include), std::move(exclude));
}

}  // namespace

/// --collector.netdev: counters of <procfs>/net/dev, that is of the exporter's network namespace.
CollectorSpec netdev_collector() {
  auto options = std::make_shared<NetdevOptions>();
  return {.name = "netdev",
          .help = "Enable the netdev collector (traffic of network devices)",
          .add_flags =
              [options](config::FlagSet& flags) {
                flags.add(kIncludeFlag, options->include,
                          {.help = "Regular expression of network devices to export; excludes "
                                   "--collector.netdev.device-exclude"});
                flags.add(kExcludeFlag, options->exclude,
                          {.help = "Regular expression of network devices not to export; excludes "
                                   "--collector.netdev.device-include"});
              },
          .create = [options](const CollectorContext& context,
                              const Sources&) { return create_netdev(context, *options); }};
}

}  // namespace ceems::exporter
