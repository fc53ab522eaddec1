#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exporter/collector.h"
#include "host/mountstats.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr const char* kMaxMountsFlag = "collector.nfs.max-mounts";
constexpr long kMaxMaxMounts = 10'000;
constexpr double kMilliseconds = 1e3;  ///< of a second

/// Names of the label `operation`. Operations that no row of kNfsOperationNames has are "other".
constexpr std::array<std::string_view, 14> kNfsOperations{
    "read", "write", "commit", "getattr", "setattr", "lookup",  "access",
    "open", "close", "create", "remove",  "rename",  "readdir", "other"};

struct NfsOperationName {
  std::string_view protocol;
  std::string_view label;
};

/// Of NFS 3 and 4. Those that only keep sessions, leases and locks alive are "other".
constexpr std::array kNfsOperationNames{
    NfsOperationName{"READ", "read"},        NfsOperationName{"READ_PLUS", "read"},
    NfsOperationName{"WRITE", "write"},      NfsOperationName{"COMMIT", "commit"},
    NfsOperationName{"GETATTR", "getattr"},  NfsOperationName{"SETATTR", "setattr"},
    NfsOperationName{"LOOKUP", "lookup"},    NfsOperationName{"LOOKUPP", "lookup"},
    NfsOperationName{"ACCESS", "access"},    NfsOperationName{"OPEN", "open"},
    NfsOperationName{"OPEN_NOATTR", "open"}, NfsOperationName{"CLOSE", "close"},
    NfsOperationName{"CREATE", "create"},    NfsOperationName{"MKDIR", "create"},
    NfsOperationName{"MKNOD", "create"},     NfsOperationName{"SYMLINK", "create"},
    NfsOperationName{"LINK", "create"},      NfsOperationName{"REMOVE", "remove"},
    NfsOperationName{"RMDIR", "remove"},     NfsOperationName{"RENAME", "rename"},
    NfsOperationName{"READDIR", "readdir"},  NfsOperationName{"READDIRPLUS", "readdir"}};

std::size_t label_of(std::string_view protocol) {
  const auto* row = std::ranges::find(kNfsOperationNames, protocol, &NfsOperationName::protocol);
  const std::string_view label = row == kNfsOperationNames.end() ? "other" : row->label;
  return static_cast<std::size_t>(std::ranges::find(kNfsOperations, label) -
                                  kNfsOperations.begin());
}

metrics::Desc nfs_desc(const char* stem, const char* help, const std::vector<std::string>& more) {
  std::vector<std::string> labels{"hostname", "export", "mountpoint"};
  labels.insert(labels.end(), more.begin(), more.end());
  return {std::string("ceems_nfs_") + stem + "_total", help, metrics::Type::kCounter,
          std::move(labels)};
}

/// The sums of operations with the same label.
struct Sums {
  std::array<std::uint64_t, host::kNfsColumns> columns{};
  std::uint64_t retransmissions = 0;
  std::uint64_t errors = 0;

  void add(const host::NfsOperation& operation) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      columns.at(i) += operation.columns.at(i);
    }
    const std::uint64_t sent =
        operation.columns.at(static_cast<std::size_t>(host::NfsColumn::kTransmissions));
    const std::uint64_t done =
        operation.columns.at(static_cast<std::size_t>(host::NfsColumn::kOperations));
    retransmissions += sent > done ? sent - done : 0;
    errors += operation.errors.value_or(0);
  }
};

class NfsCollector final : public Collector {
 public:
  NfsCollector(const CollectorContext& context, std::size_t max_mounts)
      : path_(context.paths.proc / "self/mountstats"),
        hostname_(context.hostname),
        max_mounts_(max_mounts) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(host::read_file(path_.c_str(), buffer_));
    const auto parsed = host::parse_mountstats(buffer_, max_mounts_, mounts_);
    for (const host::NfsMount& mount : mounts_.mounts) {
      add_bytes(sink, mount);
      add_operations(sink, mount);
    }
    if (!parsed) {
      return fail(Error(parsed.error()).with_context(path_));
    }
    if (mounts_.mounts.empty() && mounts_.left_out == 0) {
      return fail(ErrorCode::kNoData, "{} has no NFS mount", path_);
    }
    sink.add(left_out_, static_cast<double>(mounts_.left_out), {hostname_});
    return {};
  }

 private:
  void add_bytes(metrics::Sink& sink, const host::NfsMount& mount) const {
    if (!mount.bytes) {
      return;
    }
    const auto add = [&](const metrics::Desc& desc, std::uint64_t value, std::string_view mode) {
      sink.add(desc, static_cast<double>(value),
               {hostname_, mount.source, mount.mount_point, mode});
    };
    add(read_bytes_, mount.bytes->read, "normal");
    add(read_bytes_, mount.bytes->direct_read, "direct");
    add(write_bytes_, mount.bytes->written, "normal");
    add(write_bytes_, mount.bytes->direct_written, "direct");
    const auto add_server = [&](const metrics::Desc& desc, std::uint64_t value) {
      sink.add(desc, static_cast<double>(value), {hostname_, mount.source, mount.mount_point});
    };
    add_server(server_read_bytes_, mount.bytes->server_read);
    add_server(server_write_bytes_, mount.bytes->server_written);
  }

  void add_operations(metrics::Sink& sink, const host::NfsMount& mount) const {
    std::array<Sums, kNfsOperations.size()> sums{};
    for (const host::NfsOperation& operation : mount.operations) {
      sums.at(label_of(operation.name)).add(operation);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto add = [&](const metrics::Desc& desc, std::uint64_t value, double divisor = 1) {
        if (value != 0) {
          sink.add(desc, static_cast<double>(value) / divisor,
                   {hostname_, mount.source, mount.mount_point, kNfsOperations.at(i)});
        }
      };
      for (const Column& column : columns_) {
        add(column.desc, sums.at(i).columns.at(static_cast<std::size_t>(column.column)),
            column.divisor);
      }
      add(retransmissions_, sums.at(i).retransmissions);
      add(errors_, sums.at(i).errors);
    }
  }

  struct Column {
    host::NfsColumn column;
    metrics::Desc desc;
    double divisor = 1;
  };
  static Column make_column(host::NfsColumn column,
                            const char* stem,
                            const char* help,
                            double divisor = 1) {
    return {.column = column, .desc = nfs_desc(stem, help, {"operation"}), .divisor = divisor};
  }

  std::string path_;
  std::string hostname_;
  std::size_t max_mounts_;
  std::string buffer_;
  host::NfsMounts mounts_;
  metrics::Desc read_bytes_ =
      nfs_desc("read_bytes", "Bytes that programs read from the mount.", {"mode"});
  metrics::Desc write_bytes_ =
      nfs_desc("write_bytes", "Bytes that programs wrote to the mount.", {"mode"});
  metrics::Desc server_read_bytes_ =
      nfs_desc("server_read_bytes", "Bytes that were read from the server of the mount.", {});
  metrics::Desc server_write_bytes_ =
      nfs_desc("server_write_bytes", "Bytes that were written to the server of the mount.", {});
  metrics::Desc retransmissions_ =
      nfs_desc("operation_retransmissions", "Requests that were sent once more.", {"operation"});
  metrics::Desc errors_ = nfs_desc(
      "operation_errors", "Operations that the server answered with an error.", {"operation"});
  std::vector<Column> columns_{
      make_column(host::NfsColumn::kOperations, "operations", "Operations on the mount."),
      make_column(host::NfsColumn::kTimeouts,
                  "operation_timeouts",
                  "Requests that the server did not answer in time."),
      make_column(host::NfsColumn::kSentBytes,
                  "operation_sent_bytes",
                  "Bytes of requests, with their headers."),
      make_column(host::NfsColumn::kReceivedBytes,
                  "operation_received_bytes",
                  "Bytes of answers, with their headers."),
      make_column(host::NfsColumn::kQueueMilliseconds,
                  "operation_queue_seconds",
                  "Time that operations waited until their request was sent.",
                  kMilliseconds),
      make_column(host::NfsColumn::kResponseMilliseconds,
                  "operation_response_seconds",
                  "Time from requests to their answers.",
                  kMilliseconds),
      make_column(host::NfsColumn::kTotalMilliseconds,
                  "operation_seconds",
                  "Time that operations took as a whole.",
                  kMilliseconds)};
  metrics::Desc left_out_{"ceems_nfs_mounts_left_out",
                          "NFS mounts of this node that have no series.",
                          metrics::Type::kGauge,
                          {"hostname"}};
};

}  // namespace

/// --collector.nfs: statistics of the NFS mounts in the exporter's mount namespace, from
/// <procfs>/self/mountstats.
CollectorSpec nfs_collector() {
  auto max_mounts = std::make_shared<long>(100);
  return {.name = "nfs",
          .help = "Enable the nfs collector (NFS mounts of the node)",
          .add_flags =
              [max_mounts](config::FlagSet& flags) {
                flags.add(kMaxMountsFlag, *max_mounts,
                          {.help = "Maximum number of NFS mounts that have series"});
              },
          .create = [max_mounts](const CollectorContext& context,
                                 const Sources&) -> Result<std::unique_ptr<Collector>> {
            if (*max_mounts < 1 || *max_mounts > kMaxMaxMounts) {
              return fail(ErrorCode::kInvalidArgument, "--{}: expected 1 to {}, got {}",
                          kMaxMountsFlag, kMaxMaxMounts, *max_mounts);
            }
            return std::make_unique<NfsCollector>(context, static_cast<std::size_t>(*max_mounts));
          }};
}

}  // namespace ceems::exporter
