#include "exporter/run/placement.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "exporter/run/job_processes.h"
#include "exporter/run/process_tree.h"
#include "host/cgroup/process.h"
#include "host/read_file.h"

namespace ceems::exporter::run {
namespace {

constexpr std::size_t kMaxRanks = 4096;

std::string line_of(const std::filesystem::path& path) {
  const auto text = host::read_file(path.string());
  return std::string(text ? trim(*text) : std::string_view());
}

std::optional<std::uint64_t> rank_of(const host::Paths& paths, int pid) {
  const std::string environment = environment_of(paths, pid);
  // A batch script has SLURM's variable, too, but belongs to no step.
  const bool in_step = is_number(variable_in(environment, "SLURM_STEP_ID"));
  for (const std::string_view name :
       {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "FLUX_TASK_RANK", "SLURM_PROCID"}) {
    const std::string value = variable_in(environment, name);
    if (is_number(value) && (in_step || name != "SLURM_PROCID")) {
      return parse_int(value);
    }
  }
  return std::nullopt;
}

std::vector<int> allowed_cpus_of(const host::Paths& paths, int pid) {
  const auto text = host::read_file((paths.proc / std::to_string(pid) / "status").string());
  return (text ? host::parse_allowed_cpus(*text) : std::nullopt).value_or(std::vector<int>());
}

/// "0-3,7".
std::string list_text(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) {
      ++end;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    text += end - i > 1 ? fmt::format("-{}", cpus[end - 1]) : "";
    i = end;
  }
  return text;
}

/// How many of the CPUs belong to one core; 1 if the machine does not say.
std::size_t cpus_per_core(const host::Paths& paths, const std::vector<int>& cpus) {
  std::map<std::string, std::size_t> cores;
  std::size_t most = 1;
  for (const int cpu : cpus) {
    const std::string siblings = line_of(
        paths.sys / fmt::format("devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    most = siblings.empty() ? most : std::max(most, ++cores[siblings]);
  }
  return most;
}

/// "2" or "1 to 4".
std::string range_text(std::size_t least, std::size_t most) {
  return least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
}

std::string gpus_text(const host::Paths& paths) {
  std::set<std::string> nodes;
  for (const gpu::PciGpu& device : gpu::pci_gpus(paths)) {
    if (const std::string node = line_of(paths.sys / "bus/pci/devices" / device.name / "numa_node");
        is_number(node)) {
      nodes.insert(node);
    }
  }
  return nodes.empty() ? std::string()
                       : fmt::format("; GPUs on NUMA node{} {}", nodes.size() > 1 ? "s" : "",
                                     fmt::join(nodes, ", "));
}

std::string adapters_text(const host::Paths& paths) {
  const auto folder = paths.sys / "class/infiniband";
  const auto names = host::list_directory(folder.string());
  std::string text;
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (const std::string node = line_of(folder / name / "device/numa_node"); is_number(node)) {
      text += fmt::format("; {} on NUMA node {}", name, node);
    }
  }
  return text;
}

}  // namespace

std::vector<Rank> read_ranks(const host::Paths& paths, const std::vector<int>& pids) {
  std::map<std::uint64_t, std::pair<std::uint64_t, int>> busiest;  // ticks and pid
  for (const int pid : pids) {
    const auto rank = rank_of(paths, pid);
    const auto text = host::read_file((paths.proc / std::to_string(pid) / "stat").string());
    const auto stat = rank && text ? parse_process_stat(*text) : std::nullopt;
    if (stat && (busiest.contains(*rank) || busiest.size() < kMaxRanks)) {
      const std::pair used(stat->user_ticks + stat->system_ticks, pid);
      auto& known = busiest[*rank];
      known = std::max(known, used);
    }
  }
  std::vector<Rank> ranks;
  for (const auto& [number, process] : busiest) {
    if (auto cpus = allowed_cpus_of(paths, process.second); !cpus.empty()) {
      ranks.push_back({.number = number, .cpus = std::move(cpus)});
    }
  }
  return ranks;
}

std::string placement_text(const host::Paths& paths, const std::vector<Rank>& ranks) {
  if (ranks.empty()) {
    return {};
  }
  const auto by_cpus = [](const Rank& rank) { return rank.cpus.size(); };
  const auto by_core = [&](const Rank& rank) { return cpus_per_core(paths, rank.cpus); };
  std::size_t least = 0;
  std::size_t most = 0;
  for (const Rank& rank : ranks) {
    const std::size_t count = by_core(rank);
    least = least == 0 ? count : std::min(least, count);
    most = std::max(most, count);
  }
  const auto [fewest, largest] = std::ranges::minmax(ranks, {}, by_cpus);
  const std::string cpus = range_text(fewest.cpus.size(), largest.cpus.size());
  return fmt::format("{} rank{}{} on {} CPU{} ({} a core){}{}", ranks.size(),
                     ranks.size() == 1 ? "" : "s", ranks.size() == 1 ? "" : ", each", cpus,
                     cpus == "1" ? "" : "s", range_text(least, most), gpus_text(paths),
                     adapters_text(paths));
}

std::vector<std::string> placement_faults(const std::vector<Rank>& ranks) {
  std::map<std::vector<int>, std::vector<std::uint64_t>> by_cpus;
  for (const Rank& rank : ranks) {
    by_cpus[rank.cpus].push_back(rank.number);
  }
  constexpr std::size_t kMaxNamed = 8;
  std::vector<std::string> faults;
  for (const auto& [cpus, numbers] : by_cpus) {
    if (numbers.size() > cpus.size()) {
      const bool all = numbers.size() <= kMaxNamed;
      faults.push_back(fmt::format("{} ranks share {} CPU{} ({}): {}{}", numbers.size(),
                                   cpus.size(), cpus.size() == 1 ? "" : "s", list_text(cpus),
                                   fmt::join(numbers.begin(),
                                             numbers.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                   numbers.size(), kMaxNamed)),
                                             ", "),
                                   all ? "" : ", …"));
    }
  }
  return faults;
}

}  // namespace ceems::exporter::run
