#include "host/infiniband.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <re2/re2.h>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/collector.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr const char* kExcludeDevices = "collector.infiniband.device-exclude";
constexpr const char* kHwCountersFlag = "collector.infiniband.hw-counters";

metrics::Desc infiniband_desc(const char* stem,
                              const char* help,
                              metrics::Type type,
                              std::vector<std::string> labels = {"device", "port"}) {
  return {std::string("ceems_infiniband_") + stem, help, type, std::move(labels)};
}

struct CounterInfo {
  const char* stem;
  const char* file;  ///< below the port's directory
  std::uint64_t factor;
  const char* help;
};

constexpr std::uint64_t kWord = host::kInfinibandDataUnitBytes;
/// The meanings are defined by PortCounters and PortCountersExtended in the InfiniBand Architecture
/// Specification.
constexpr std::array kCounters{
    CounterInfo{"excessive_buffer_overrun_errors_total", "counters/excessive_buffer_overrun_errors",
                1, "Overruns of the receive buffer over several flow control periods."},
    CounterInfo{"link_downed_total", "counters/link_downed", 1,
                "Times that the link went down after an error."},
    CounterInfo{"link_error_recovery_total", "counters/link_error_recovery", 1,
                "Times that the link recovered from an error."},
    CounterInfo{"local_link_integrity_errors_total", "counters/local_link_integrity_errors", 1,
                "Times that local physical errors passed their threshold."},
    CounterInfo{"multicast_packets_received_total", "counters/multicast_rcv_packets", 1,
                "Multicast packets received, bad ones included."},
    CounterInfo{"multicast_packets_transmitted_total", "counters/multicast_xmit_packets", 1,
                "Multicast packets sent, bad ones included."},
    CounterInfo{"port_constraint_errors_received_total", "counters/port_rcv_constraint_errors", 1,
                "Received packets that the switch port discarded by its rules."},
    CounterInfo{"port_constraint_errors_transmitted_total", "counters/port_xmit_constraint_errors",
                1, "Packets that the switch port did not send by its rules."},
    CounterInfo{"port_data_received_bytes_total", "counters/port_rcv_data", kWord,
                "Bytes received on all virtual lanes."},
    CounterInfo{"port_data_transmitted_bytes_total", "counters/port_xmit_data", kWord,
                "Bytes sent on all virtual lanes."},
    CounterInfo{"port_discards_received_total", "counters/port_rcv_discards", 1,
                "Received packets discarded as the port is down or congested."},
    CounterInfo{"port_discards_transmitted_total", "counters/port_xmit_discards", 1,
                "Packets not sent as the port is down or congested."},
    CounterInfo{"port_errors_received_total", "counters/port_rcv_errors", 1,
                "Bad packets received."},
    CounterInfo{"port_packets_received_total", "counters/port_rcv_packets", 1,
                "Packets received on all virtual lanes, bad ones included."},
    CounterInfo{"port_packets_transmitted_total", "counters/port_xmit_packets", 1,
                "Packets sent on all virtual lanes, bad ones included."},
    CounterInfo{"port_transmit_wait_total", "counters/port_xmit_wait", 1,
                "Ticks during which the port had data but could not send."},
    CounterInfo{"unicast_packets_received_total", "counters/unicast_rcv_packets", 1,
                "Unicast packets received, bad ones included."},
    CounterInfo{"unicast_packets_transmitted_total", "counters/unicast_xmit_packets", 1,
                "Unicast packets sent, bad ones included."},
    CounterInfo{"port_receive_remote_physical_errors_total",
                "counters/port_rcv_remote_physical_errors", 1,
                "Received packets that end with the mark of a bad packet."},
    CounterInfo{"port_receive_switch_relay_errors_total", "counters/port_rcv_switch_relay_errors",
                1, "Received packets that the switch could not forward."},
    CounterInfo{"symbol_error_total", "counters/symbol_error", 1,
                "Minor link errors on the lanes."},
    CounterInfo{"vl15_dropped_total", "counters/VL15_dropped", 1,
                "Management packets dropped for want of resources."},
    CounterInfo{"legacy_multicast_packets_received_total",
                "counters_ext/port_multicast_rcv_packets", 1,
                "Multicast packets received (old drivers)."},
    CounterInfo{"legacy_multicast_packets_transmitted_total",
                "counters_ext/port_multicast_xmit_packets", 1,
                "Multicast packets sent (old drivers)."},
    CounterInfo{"legacy_data_received_bytes_total", "counters_ext/port_rcv_data_64", kWord,
                "Bytes received (old drivers)."},
    CounterInfo{"legacy_data_transmitted_bytes_total", "counters_ext/port_xmit_data_64", kWord,
                "Bytes sent (old drivers)."},
    CounterInfo{"legacy_packets_received_total", "counters_ext/port_rcv_packets_64", 1,
                "Packets received (old drivers)."},
    CounterInfo{"legacy_packets_transmitted_total", "counters_ext/port_xmit_packets_64", 1,
                "Packets sent (old drivers)."},
    CounterInfo{"legacy_unicast_packets_received_total", "counters_ext/port_unicast_rcv_packets", 1,
                "Unicast packets received (old drivers)."},
    CounterInfo{"legacy_unicast_packets_transmitted_total",
                "counters_ext/port_unicast_xmit_packets", 1,
                "Unicast packets sent (old drivers)."}};

/// Counters of congestion and retransmissions, which drivers count for RoCE, too. mlx5 has them
/// all, others have some. The names are those under which node_exporter has them.
constexpr std::array kHwCounters{
    CounterInfo{"duplicate_requests_packets_total", "hw_counters/duplicate_request", 1,
                "Received requests that had been executed before."},
    CounterInfo{"implied_nak_seq_errors_total", "hw_counters/implied_nak_seq_err", 1,
                "Acknowledgements beyond the sequence number that was expected."},
    CounterInfo{"local_ack_timeout_errors_total", "hw_counters/local_ack_timeout_err", 1,
                "Times that no acknowledgement came in time."},
    CounterInfo{"np_cnp_packets_sent_total", "hw_counters/np_cnp_sent", 1,
                "Congestion notifications sent, because marked packets were received."},
    CounterInfo{"np_ecn_marked_roce_packets_received_total",
                "hw_counters/np_ecn_marked_roce_packets", 1,
                "Received packets that the network marked for congestion."},
    CounterInfo{"out_of_buffer_drops_total", "hw_counters/out_of_buffer", 1,
                "Received packets dropped because the program had no buffer for them."},
    CounterInfo{"out_of_sequence_packets_received_total", "hw_counters/out_of_sequence", 1,
                "Packets received out of sequence."},
    CounterInfo{"packet_sequence_errors_total", "hw_counters/packet_seq_err", 1,
                "Received messages that a packet was lost."},
    CounterInfo{"rnr_nak_retry_packets_received_total", "hw_counters/rnr_nak_retry_err", 1,
                "Received messages that the other side was not ready."},
    CounterInfo{"roce_adp_retransmits_total", "hw_counters/roce_adp_retrans", 1,
                "Adaptive retransmissions."},
    CounterInfo{"roce_adp_retransmits_timeout_total", "hw_counters/roce_adp_retrans_to", 1,
                "Timeouts of adaptive retransmissions."},
    CounterInfo{"roce_slow_restart_used_total", "hw_counters/roce_slow_restart", 1,
                "Times that sending restarted slowly."},
    CounterInfo{"roce_slow_restart_cnps_total", "hw_counters/roce_slow_restart_cnps", 1,
                "Congestion notifications during slow restarts."},
    CounterInfo{"roce_slow_restart_total", "hw_counters/roce_slow_restart_trans", 1,
                "Changes to a slow restart."},
    CounterInfo{"rp_cnp_packets_handled_total", "hw_counters/rp_cnp_handled", 1,
                "Received congestion notifications that slowed sending down."},
    CounterInfo{"rp_cnp_ignored_packets_received_total", "hw_counters/rp_cnp_ignored", 1,
                "Received congestion notifications that were ignored."},
    CounterInfo{"rx_icrc_encapsulated_errors_total", "hw_counters/rx_icrc_encapsulated", 1,
                "Received packets with a wrong checksum."}};

struct InfinibandOptions {
  std::string exclude;
  bool hw_counters = false;
};

class InfinibandCollector final : public Collector {
 public:
  InfinibandCollector(const CollectorContext& context,
                      std::unique_ptr<const RE2> exclude,
                      bool hw_counters)
      : sys_(context.paths.sys), exclude_(std::move(exclude)) {
    add_counters(kCounters);
    if (hw_counters) {
      add_counters(kHwCounters);
    }
  }

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(devices, host::read_infiniband(sys_));
    std::erase_if(devices, [this](const host::InfinibandDevice& device) {
      return exclude_ && RE2::FullMatch(device.name, *exclude_);
    });
    std::optional<Error> problem;
    for (const host::InfinibandDevice& device : devices) {
      if (!problem && !device.problems.empty()) {
        problem = Error(device.problems.front()).with_context(device.name);
      }
      if (device.firmware || !device.ports.empty()) {
        sink.add(info_, 1,
                 {device.name, device.board_id, device.firmware.value_or(""), device.hca_type});
      }
      for (const host::InfinibandPort& port : device.ports) {
        add_port(sink, device.name, port, problem);
      }
    }
    report(problem);
    return {};
  }

 private:
  struct Counter {
    const CounterInfo* info;
    metrics::Desc desc;
  };

  void add_counters(std::span<const CounterInfo> list) {
    for (const CounterInfo& counter : list) {
      counters_.push_back(
          {.info = &counter,
           .desc = infiniband_desc(counter.stem, counter.help, metrics::Type::kCounter)});
    }
  }

  void add_port(metrics::Sink& sink,
                const std::string& device,
                const host::InfinibandPort& port,
                std::optional<Error>& problem) {
    add(sink, state_, device, port, port.state, 1);
    add(sink, physical_state_, device, port, port.physical_state, 1);
    add(sink, rate_, device, port, port.rate_bytes, 1);
    for (const Counter& counter : counters_) {
      auto value = host::read_infiniband_counter(port, counter.info->file);
      if (value) {
        add(sink, counter.desc, device, port, *value, counter.info->factor);
      } else if (!problem) {
        problem = std::move(value).error();
      }
    }
  }

  void add(metrics::Sink& sink,
           const metrics::Desc& desc,
           const std::string& device,
           const host::InfinibandPort& port,
           const std::optional<std::uint64_t>& value,
           std::uint64_t factor) {
    if (value) {
      // Wraps like the reference's 64-bit product. A double would continue beyond 2^64.
      sink.add(desc, static_cast<double>(*value * factor), {device, port.number});
    }
  }

  /// Logs one line when something becomes unreadable and one when everything can be read again.
  void report(const std::optional<Error>& problem) {
    if (problem.has_value() == reported_) {
      return;
    }
    reported_ = problem.has_value();
    if (problem) {
      log::error(
          "not everything can be read; the series concerned are missing",
          {{"collector", "infiniband"}, {"err", problem->message}, {"flag", kExcludeDevices}});
    } else {
      log::info("everything can be read again", {{"collector", "infiniband"}});
    }
  }

  std::string sys_;
  std::unique_ptr<const RE2> exclude_;
  bool reported_ = false;
  metrics::Desc info_ = infiniband_desc("info",
                                        "What the InfiniBand device is; the value is always 1.",
                                        metrics::Type::kGauge,
                                        {"device", "board_id", "firmware_version", "hca_type"});
  metrics::Desc state_ =
      infiniband_desc("state_id",
                      "State of the port (0: no change, 1: down, 2: init, 3: armed, "
                      "4: active, 5: active defer).",
                      metrics::Type::kGauge);
  metrics::Desc physical_state_ = infiniband_desc(
      "physical_state_id",
      "Physical state of the port (0: no change, 1: sleep, 2: polling, 3: disabled, 4: "
      "training, 5: link up, 6: error recovery, 7: phy test).",
      metrics::Type::kGauge);
  metrics::Desc rate_ = infiniband_desc("rate_bytes_per_second",
                                        "Signal rate of the port in bytes per second.",
                                        metrics::Type::kGauge);
  std::vector<Counter> counters_;
};

}  // namespace

/// --collector.infiniband: state, rate and counters of the ports below <sysfs>/class/infiniband,
/// including Omni-Path adapters (hfi1). The series have no label `hostname`. An error in one
/// device, port or counter removes only its own series, with one line in the log.
CollectorSpec infiniband_collector() {
  const auto options = std::make_shared<InfinibandOptions>();
  return {.name = "infiniband",
          .help = "Enable the infiniband collector (ports of InfiniBand and Omni-Path adapters)",
          .add_flags =
              [options](config::FlagSet& flags) {
                flags.add(kExcludeDevices, options->exclude,
                          {.help = "Leave out devices whose whole name matches this regular "
                                   "expression (default: none), such as mana_.*"});
                flags.add(kHwCountersFlag, options->hw_counters,
                          {.help = "Export hw_counters of congestion and retransmissions, of "
                                   "InfiniBand and RoCE"});
              },
          .create = [options](const CollectorContext& context,
                              const Sources&) -> Result<std::unique_ptr<Collector>> {
            const std::string sys = context.paths.sys;
            if (!host::is_directory(sys)) {
              return fail(ErrorCode::kInvalidArgument, "--path.sysfs: {} is not a directory", sys);
            }
            std::unique_ptr<const RE2> regex;
            if (!options->exclude.empty()) {
              RE2::Options quiet;
              quiet.set_log_errors(false);
              regex = std::make_unique<const RE2>(options->exclude, quiet);
              if (!regex->ok()) {
                return fail(ErrorCode::kInvalidArgument,
                            "--{}: invalid regular expression '{}': {}", kExcludeDevices,
                            printable(options->exclude), printable(regex->error()));
              }
            }
            return std::make_unique<InfinibandCollector>(context, std::move(regex),
                                                         options->hw_counters);
          }};
}

}  // namespace ceems::exporter
