#include "host/cpu_topology.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::host {
namespace {

constexpr int kMaxCpu = 65536;

/// The kernel's description of one CPU. `core` is unique in the socket only.
struct Ids {
  int cpu = -1;
  int package = -1;
  int core = -1;
};

/// Numbers sockets in the order of their packages, and cores in the order of their first CPU.
CpuTopology number(std::vector<Ids> ids) {
  std::erase_if(ids, [](const Ids& id) {
    return id.cpu < 0 || id.cpu >= kMaxCpu || id.package < 0 || id.core < 0;
  });
  std::ranges::sort(ids, {}, &Ids::cpu);
  CpuTopology topology;
  for (const Ids& id : ids) {
    topology.packages.push_back(id.package);
  }
  std::ranges::sort(topology.packages);
  const auto repeated = std::ranges::unique(topology.packages);
  topology.packages.erase(repeated.begin(), repeated.end());
  std::map<std::pair<int, int>, int> cores;
  for (const Ids& id : ids) {
    const auto next = static_cast<int>(cores.size());
    const int core = cores.try_emplace({id.package, id.core}, next).first->second;
    topology.cpus.resize(static_cast<std::size_t>(id.cpu) + 1);
    topology.cpus.back() = {.socket = topology.socket_of_package(id.package), .core = core};
  }
  topology.cores = cores.size();
  return topology;
}

std::optional<int> read_number(const std::string& path) {
  const auto text = read_file(path);
  return text ? parse_int<int>(trim(*text)) : std::nullopt;
}

/// The first CPU of the core, which serves as its number: `core_id` repeats in the dies of a socket
/// on old kernels.
std::optional<int> first_sibling(const std::string& directory) {
  for (const std::string_view name : {"/core_cpus_list", "/thread_siblings_list"}) {
    if (const auto text = read_file(directory + std::string(name))) {
      const auto cpus = parse_cpu_list(*text);
      if (cpus && !cpus->empty()) {
        return cpus->front();
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  constexpr int kMaxCpus = 65536;
  std::vector<int> cpus;
  text = trim(text);
  while (!text.empty()) {
    std::string_view range = take_until(text, ',');
    const auto first = parse_int<int>(take_until(range, '-'));
    const auto last = range.empty() ? first : parse_int<int>(range);
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) {
      return std::nullopt;
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(cpu);
    }
    if (cpus.size() > kMaxCpus) {
      return std::nullopt;
    }
  }
  return cpus;
}

int CpuTopology::socket_of_package(int package) const {
  const auto found = std::ranges::lower_bound(packages, package);
  return found != packages.end() && *found == package
             ? static_cast<int>(std::distance(packages.begin(), found))
             : -1;
}

CpuTopology parse_cpu_topology(std::string_view cpuinfo) {
  std::vector<Ids> ids;
  while (!cpuinfo.empty()) {
    std::string_view value = take_until(cpuinfo, '\n');
    const std::string_view key = trim(take_until(value, ':'));
    const int read = parse_int<int>(trim(value)).value_or(-1);
    if (key == "processor") {
      ids.push_back({.cpu = read});
    } else if (!ids.empty() && key == "physical id") {
      ids.back().package = read;
    } else if (!ids.empty() && key == "core id") {
      ids.back().core = read;
    }
  }
  return number(std::move(ids));
}

CpuTopology read_cpu_topology(const Paths& paths) {
  const std::string root = (paths.sys / "devices/system/cpu").string();
  std::vector<Ids> ids;
  for (const std::string& name : list_directory(root).value_or(std::vector<std::string>{})) {
    const auto cpu =
        name.starts_with("cpu") ? parse_int<int>(std::string_view(name).substr(3)) : std::nullopt;
    if (!cpu) {
      continue;
    }
    const std::string directory = fmt::format("{}/{}/topology", root, name);
    ids.push_back({.cpu = *cpu,
                   .package = read_number(directory + "/physical_package_id").value_or(-1),
                   .core = first_sibling(directory).value_or(-1)});
  }
  CpuTopology topology = number(std::move(ids));
  if (topology.packages.empty()) {
    const auto text = read_file((paths.proc / "cpuinfo").string());
    topology = parse_cpu_topology(text ? std::string_view(*text) : std::string_view{});
  }
  return topology;
}

}  // namespace ceems::host
