#include "ingest/manager/slurm/limits.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace ceems::ingest {
namespace {

constexpr std::int64_t kLimitUnit = 1 << 20;
constexpr std::int64_t kMaxMebi = std::int64_t{1} << 40U;
constexpr std::size_t kMaxPartitions = 10'000;

/// The value of the first NAME=value among the words of a line. Texts of people come last in it.
std::string_view value_of(std::string_view line, std::string_view name) {
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') {
      return word.substr(name.size() + 1);
    }
  }
  return {};
}

/// Bytes of a number of MiB; nothing for UNLIMITED and 0.
std::optional<std::int64_t> mebibytes(std::string_view text) {
  const auto number = parse_int<std::int64_t>(text);
  return number && *number > 0 && *number <= kMaxMebi ? std::optional(*number * kLimitUnit)
                                                      : std::nullopt;
}

/// A number of things; nothing for UNLIMITED and 0.
std::optional<std::int64_t> count_of(std::string_view text) {
  constexpr std::int64_t kMax = 1'000'000'000;
  const auto number = parse_int<std::int64_t>(text);
  return number && *number > 0 && *number <= kMax ? number : std::nullopt;
}

/// The GPUs of "gpu:a100:4(S:0-1),gpu:v100:2,ssd:1".
std::int64_t gpus_of(std::string_view gres) {
  std::int64_t count = 0;
  int depth = 0;  // of parentheses, which hold commas, too
  std::string plain;
  for (const char c : gres) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth == 0 && c != ')') {
      plain += c;
    }
  }
  for (const std::string_view part : split(plain, ',')) {
    if (part.starts_with("gpu:")) {
      constexpr std::int64_t kMaxGpus = 10'000;
      const auto number = parse_int<std::int64_t>(part.substr(part.rfind(':') + 1));
      count += number && *number > 0 && *number <= kMaxGpus ? *number : 0;
    }
  }
  return count;
}

/// What a node of the job needs at least.
std::int64_t per_node(std::int64_t all, std::int64_t nodes) {
  return (all + nodes - 1) / nodes;
}

/// The memory of the largest nodes of which there are enough for the job.
std::optional<std::int64_t> largest(const PartitionLimits::Nodes& nodes, const Allocation& needs) {
  const std::int64_t count = std::max<std::int64_t>(needs.nodes, 1);
  std::int64_t enough = 0;
  for (const auto& [node, number] : nodes) {
    if (node.cpus >= per_node(needs.cpus, count) && node.gpus >= per_node(needs.gpus, count)) {
      enough += number;
      if (enough >= count) {
        return node.memory_bytes;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> less(const std::optional<std::int64_t>& a,
                                 const std::optional<std::int64_t>& b) {
  return a && b ? std::min(a, b) : a ? a : b;
}

}  // namespace

std::optional<std::int64_t> slurm_time_limit(std::string_view text) {
  if (text == "UNLIMITED" || text == "INFINITE") {
    return 0;
  }
  const std::size_t dash = text.find('-');
  const auto days =
      dash == std::string_view::npos ? 0 : parse_int<std::int64_t>(text.substr(0, dash));
  const auto parts = split(dash == std::string_view::npos ? text : text.substr(dash + 1), ':');
  constexpr std::size_t kParts = 3;
  if (parts.size() != kParts) {
    return std::nullopt;
  }
  const auto hours = parse_int<std::int64_t>(parts[0]);
  const auto minutes = parse_int<std::int64_t>(parts[1]);
  const auto seconds = parse_int<std::int64_t>(parts[2]);
  constexpr std::int64_t kMax = 36'500;  // days; as many hours, minutes and seconds
  if (!days || !hours || !minutes || !seconds) {
    return std::nullopt;
  }
  for (const std::int64_t number : {*days, *hours, *minutes, *seconds}) {
    if (number < 0 || number > kMax) {
      return std::nullopt;
    }
  }
  const std::int64_t all = ((*days * 24 + *hours) * 60 + *minutes) * 60 + *seconds;
  return all > 0 ? std::optional(all) : std::nullopt;
}

void PartitionLimits::add_config_line(std::string_view line) {
  const std::string_view name = take_word(line);
  const std::string_view equals = take_word(line);
  if (equals == "=" && name == "MaxMemPerNode") {
    node_bytes_ = mebibytes(take_word(line));
  } else if (equals == "=" && name == "MaxMemPerCPU") {
    cpu_bytes_ = mebibytes(take_word(line));
  } else if (equals == "=" && name == "ClusterName") {
    cluster_ = take_word(line);
  } else if (equals == "=" && name == "AccountingStorageEnforce") {
    const auto enforced = split(take_word(line), ',');
    enforces_accounts_ = std::ranges::any_of(
        enforced, [](std::string_view what) { return what == "limits" || what == "safe"; });
  }
}

void PartitionLimits::add_partition_line(std::string_view line) {
  const std::string_view name = value_of(line, "PartitionName");
  if (name.empty() || partitions_.size() >= kMaxPartitions) {
    return;
  }
  Partition partition{.seconds = slurm_time_limit(value_of(line, "MaxTime")),
                      .node_bytes = mebibytes(value_of(line, "MaxMemPerNode")),
                      .cpu_bytes = mebibytes(value_of(line, "MaxMemPerCPU")),
                      .node_cpus = count_of(value_of(line, "MaxCPUsPerNode")),
                      .least_nodes = count_of(value_of(line, "MinNodes"))};
  if (const auto qos = value_of(line, "QoS"); qos != "N/A") {
    partition.qos = qos;
  }
  if (!partition.node_bytes && !partition.cpu_bytes) {
    partition.node_bytes = node_bytes_;
    partition.cpu_bytes = cpu_bytes_;
  }
  partitions_.insert_or_assign(std::string(name), std::move(partition));
}

void PartitionLimits::add_node_line(std::string_view line) {
  const auto memory = mebibytes(value_of(line, "RealMemory"));
  auto cpus = count_of(value_of(line, "CPUEfctv"));  // since 22.05
  if (!cpus) {
    cpus = count_of(value_of(line, "CPUTot"));
  }
  if (!memory || !cpus) {
    return;
  }
  const std::int64_t kept = mebibytes(value_of(line, "MemSpecLimit")).value_or(0);
  const Node node{.memory_bytes = std::max<std::int64_t>(*memory - kept, 0),
                  .cpus = *cpus,
                  .gpus = gpus_of(value_of(line, "Gres"))};
  for (const std::string_view name : split(value_of(line, "Partitions"), ',')) {
    const auto partition = partitions_.find(name);
    if (partition != partitions_.end()) {
      ++partition->second.nodes[node];
    }
  }
}

std::string PartitionLimits::qos_of(std::string_view partition) const {
  const auto found = partitions_.find(partition);
  return found == partitions_.end() ? std::string() : found->second.qos;
}

void PartitionLimits::set(SlurmJob& job) const {
  const auto found = partitions_.find(job.partition);
  if (found == partitions_.end()) {
    return;
  }
  const Partition& partition = found->second;
  SlurmDetails& details = job.details;
  details.partition_seconds = partition.seconds;
  details.partition_cpu_bytes = partition.cpu_bytes;
  details.partition_cpus = partition.node_cpus;
  details.partition_min_nodes = partition.least_nodes;
  const auto memory =
      details.constraints.empty() ? largest(partition.nodes, job.allocation) : std::nullopt;
  if (memory) {
    details.partition_bytes = less(memory, partition.node_bytes);
  } else {
    details.partition_max_bytes = partition.node_bytes;
  }
}

}  // namespace ceems::ingest
