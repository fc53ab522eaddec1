#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "exporter/gpu/library/nvidia/nvml.h"

// The processes on a GPU: those that compute, their use, and the clients of MPS.
namespace ceems::exporter::gpu::nvml {
namespace {

constexpr std::string_view kMpsServer = "nvidia-cuda-mps-server";

void add_to_use(std::optional<double>& use, double more) {
  use = std::min(use.value_or(0) + more, 1.0);
}

}  // namespace

void Nvml::add_processes(Device handle,
                         const MigDevice* instance,
                         std::vector<ProcessUse>& list) const {
  list_processes(api_.get_processes, handle, instance, list);
  // With MPS some drivers list the server alone, others its clients, too.
  std::vector<ProcessUse> clients;
  list_processes(api_.get_mps_clients, handle, instance, clients);
  for (const ProcessUse& client : clients) {
    if (std::ranges::find(list, client.pid, &ProcessUse::pid) == list.end()) {
      list.push_back(client);
    }
  }
}

void Nvml::list_processes(DeviceGetComputeRunningProcessesV3* get,
                          Device handle,
                          const MigDevice* instance,
                          std::vector<ProcessUse>& list) {
  if (get == nullptr) {
    return;
  }
  std::vector<ProcessInfo> infos(64);
  auto count = static_cast<unsigned>(infos.size());
  Return result = get(handle, &count, infos.data());
  if (result == kInsufficientSize) {
    infos.resize(std::min<std::size_t>(std::size_t{count} + 16, kMaxProcesses));
    count = static_cast<unsigned>(infos.size());
    result = get(handle, &count, infos.data());
  }
  if (result != kSuccess) {
    return;
  }
  infos.resize(std::min<std::size_t>(count, infos.size()));
  for (const ProcessInfo& info : infos) {
    ProcessUse use{.pid = static_cast<int>(info.pid)};
    if (use.pid <= 0) {
      continue;
    }
    if (info.used_gpu_memory != kNoValue) {
      use.memory_bytes = within(static_cast<double>(info.used_gpu_memory), kMaxBytes);
    }
    if (instance != nullptr) {
      use.gpu_instance = instance->state.gpu_instance;
      use.compute_instance = instance->state.compute_instance;
    }
    list.push_back(use);
  }
}

void Nvml::read_processes(Gpu& gpu) const {
  std::vector<ProcessUse>& list = gpu.state.processes;
  list.clear();
  if (gpu.state.split) {
    for (const MigDevice& instance : gpu.instances) {
      add_processes(instance.handle, &instance, list);
    }
    leave_out_server(gpu);
    return;  // NVML has no utilisation of processes in MIG mode
  }
  add_processes(gpu.handle, nullptr, list);
  read_process_utilisation(gpu);
  for (ProcessUse& use : list) {
    if (const auto known = gpu.process_use.find(use.pid); known != gpu.process_use.end()) {
      use.utilisation = known->second;
      gpu.process_use.erase(known);
    }
  }
  // The rest are processes with graphics only, or that have ended.
  for (const auto& [pid, utilisation] : gpu.process_use) {
    list.push_back({.pid = pid, .utilisation = utilisation});
  }
  leave_out_server(gpu);
}

/// The server of MPS works for its clients and does not belong to a job. What it used is shared
/// among the clients whose use is not known, or else among all.
void Nvml::leave_out_server(Gpu& gpu) const {
  std::vector<ProcessUse>& list = gpu.state.processes;
  std::map<int, bool> servers;  // by pid; asked once for each process
  for (const ProcessUse& use : list) {
    const auto known = gpu.is_server.find(use.pid);
    servers[use.pid] = known != gpu.is_server.end() ? known->second : is_mps_server(use.pid);
  }
  gpu.is_server = std::move(servers);
  gpu.state.mps = std::ranges::any_of(gpu.is_server, [](const auto& one) { return one.second; });
  double used = 0;
  std::erase_if(list, [&](const ProcessUse& use) {
    const bool server = gpu.is_server[use.pid];
    used += server ? use.utilisation.value_or(0) : 0;
    return server;
  });
  if (used <= 0 || list.empty()) {
    return;
  }
  const auto idle = [](const ProcessUse& use) { return use.utilisation.value_or(0) <= 0; };
  const auto count = std::ranges::count_if(list, idle);
  const bool all = count == 0;
  const double part = used / static_cast<double>(all ? std::ssize(list) : count);
  for (ProcessUse& use : list) {
    if (all || idle(use)) {
      add_to_use(use.utilisation, part);
    }
  }
}

bool Nvml::is_mps_server(int pid) const {
  std::array<char, 256> buffer{};
  if (!succeeds(api_.get_process_name, static_cast<unsigned>(pid), buffer.data(), buffer.size())) {
    return false;
  }
  const std::string path = text_of(buffer.data(), buffer.size());
  const std::string_view program = std::string_view(path).substr(0, path.find(' '));
  return program.substr(program.rfind('/') + 1) == kMpsServer;
}

/// The driver keeps samples of some seconds, and each reading gets those since the last one. A
/// process without a sample among them did nothing.
void Nvml::read_process_utilisation(Gpu& gpu) const {
  gpu.process_use.clear();
  if (api_.get_process_utilization == nullptr) {
    return;
  }
  std::vector<ProcessUtilizationSample> samples(256);
  auto count = static_cast<unsigned>(samples.size());
  Return result = api_.get_process_utilization(gpu.handle, samples.data(), &count, gpu.last_sample);
  if (result == kInsufficientSize) {
    samples.resize(std::min<std::size_t>(std::size_t{count} + 64, kMaxProcesses));
    count = static_cast<unsigned>(samples.size());
    result = api_.get_process_utilization(gpu.handle, samples.data(), &count, gpu.last_sample);
  }
  if (result != kSuccess && result != kNotFound) {  // kNotFound: no process was active
    return;
  }
  for (const ProcessUse& use : gpu.state.processes) {
    gpu.process_use[use.pid] = 0;
  }
  if (result == kNotFound) {
    return;
  }
  samples.resize(std::min<std::size_t>(count, samples.size()));
  std::map<int, std::pair<double, int>> sums;
  for (const ProcessUtilizationSample& sample : samples) {
    gpu.last_sample = std::max(gpu.last_sample, sample.time_stamp);
    const auto use = from_percent(sample.sm_util);
    if (use && static_cast<int>(sample.pid) > 0) {
      auto& [sum, number] = sums[static_cast<int>(sample.pid)];
      sum += *use;
      ++number;
    }
  }
  for (const auto& [pid, sum] : sums) {
    gpu.process_use[pid] = sum.first / sum.second;
  }
}

}  // namespace ceems::exporter::gpu::nvml
