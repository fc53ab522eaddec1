#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/manager/slurm/job.h"

namespace ceems::ingest {

/// Seconds of "2-00:00:00", "12:00:00" or "UNLIMITED", which is 0.
std::optional<std::int64_t> slurm_time_limit(std::string_view text);

/// What the partitions of a cluster allow, and what their nodes have. The lines are what
/// scontrol(1) prints with --oneliner; whatever does not parse counts as not known.
class PartitionLimits {
 public:
  struct Node {
    std::int64_t memory_bytes = 0;  ///< for jobs
    std::int64_t cpus = 0;
    std::int64_t gpus = 0;
    auto operator<=>(const Node&) const = default;
  };
  /// How many nodes of each kind there are, the largest memory first.
  using Nodes = std::map<Node, std::int64_t, std::greater<>>;
  struct Partition {
    std::optional<std::int64_t> seconds = {};  ///< 0: no limit
    std::optional<std::int64_t> node_bytes = {};
    std::optional<std::int64_t> cpu_bytes = {};
    std::optional<std::int64_t> node_cpus = {};
    std::optional<std::int64_t> least_nodes = {};
    Nodes nodes = {};
    std::string qos = {};  ///< its limits hold for all jobs of the partition
  };

  /// Adds a line of `scontrol show config`: the limits of partitions that name none, the name of
  /// the cluster, and whether AccountLimits are enforced.
  void add_config_line(std::string_view line);
  /// Adds a line of `scontrol show partition`.
  void add_partition_line(std::string_view line);
  /// Adds a line of `scontrol show node`. Call after the partitions.
  void add_node_line(std::string_view line);

  [[nodiscard]] bool empty() const { return partitions_.empty(); }
  [[nodiscard]] bool enforces_accounts() const { return enforces_accounts_; }
  [[nodiscard]] const std::string& cluster() const { return cluster_; }
  /// The QOS of a partition; "" if it has none.
  [[nodiscard]] std::string qos_of(std::string_view partition) const;
  /// Sets partition_* of the job's details. The memory is that of the largest nodes on which a job
  /// with so many nodes, CPUs and GPUs fits. Of a job that asked for features of nodes, or fits on
  /// none, only that of the partition is known.
  void set(SlurmJob& job) const;

 private:
  std::map<std::string, Partition, std::less<>> partitions_;
  std::optional<std::int64_t> node_bytes_;
  std::optional<std::int64_t> cpu_bytes_;
  std::string cluster_;
  bool enforces_accounts_ = false;
};

}  // namespace ceems::ingest
