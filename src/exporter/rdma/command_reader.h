#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/rdma/reader.h"
#include "os/command.h"

namespace ceems::exporter::rdma {

// Parsers of the text output of rdma(8) of iproute2. Lines without a required item are left out,
// and so are objects of the kernel, which have no pid. The process name after the word "comm" is
// chosen by the user and may contain anything.

/// `rdma resource show mr`: "dev mlx5_0 mrn 4 mrlen 2097152 pdn 9 pid 46231 comm app".
std::vector<Objects> parse_regions(std::string_view text);

/// `rdma resource show cq`: "dev mlx5_0 cqn 8 cqe 4095 users 32 ... pid 46231 comm app".
std::vector<Objects> parse_queues(std::string_view text);

/// `rdma resource show qp`: "link mlx5_0/1 lqpn 813 type RC state RTS ... pid 46231 comm app".
std::vector<QueuePairs> parse_pairs(std::string_view text);

/// `rdma statistic qp show`: "link mlx5_0/1 cntn 4 qp-type RC pid 46231 comm app rx_write_requests
/// 0 ...". If a name appears twice, the last one counts, because the first may be part of the
/// process's name.
std::vector<QpCounters> parse_counters(std::string_view text);

/// `rdma statistic qp mode`: "link mlx5_0/1 auto off" or "... auto type,pid on". Only ports of
/// Mellanox adapters ("mlx...").
std::vector<LinkMode> parse_modes(std::string_view text);

/// Reads with the rdma command of iproute2, at most 5 s per call.
class CommandReader final : public Reader {
 public:
  /// `program` is an absolute path. `environment` is the whole environment of the command. The
  /// runner must outlive it.
  CommandReader(std::string program,
                std::map<std::string, std::string> environment,
                os::CommandRunner& runner)
      : program_(std::move(program)), environment_(std::move(environment)), runner_(runner) {}

  Result<std::vector<LinkMode>> modes(std::chrono::milliseconds limit,
                                      std::stop_token stop) override;
  Result<Resources> read(bool counters, std::stop_token stop) override;
  Result<> set_counting(const std::string& link, bool on) override;
  [[nodiscard]] std::vector<os::Capability> capabilities() const override;

 private:
  Result<std::string> run(std::vector<std::string> arguments,
                          const std::stop_token& stop,
                          std::chrono::milliseconds limit);

  std::string program_;
  std::map<std::string, std::string> environment_;
  os::CommandRunner& runner_;
};

}  // namespace ceems::exporter::rdma
