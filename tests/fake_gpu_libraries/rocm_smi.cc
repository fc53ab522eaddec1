// Stands in for librocm_smi64.so in tests; see scenario.h.
#include <algorithm>
#include <cstdint>
#include <string>

#include "exporter/gpu/library/amd/rocm_smi_api.h"
#include "scenario.h"

namespace {

using namespace ceems::exporter::gpu::rocm;  // NOLINT(google-build-using-namespace): its own part
using fake_gpu::Call;
using fake_gpu::pairs;
using fake_gpu::put;

template <class T>
Status give(const char* function, std::uint32_t device, const std::string& name, T* out) {
  const std::string prefix = std::to_string(device);
  const Call call(function, prefix);
  const auto value = call.scenario.number(prefix + "." + name);
  if (call.answer != kSuccess || !value) {
    return call.answer != kSuccess ? call.answer : kNotSupported;
  }
  *out = *value < 0 ? static_cast<T>(*value)
                    : static_cast<T>(call.scenario.whole(prefix + "." + name).value_or(0));
  return kSuccess;
}

Status give_text(
    const char* function, std::uint32_t device, const char* name, char* out, std::size_t size) {
  const Call call(function, std::to_string(device));
  const auto value = call.scenario.text(std::to_string(device) + "." + name);
  if (call.answer != kSuccess || !value) {
    return call.answer != kSuccess ? call.answer : kNotSupported;
  }
  put(*value, out, size);
  return kSuccess;
}

}  // namespace

extern "C" {

Status rsmi_init(std::uint64_t /*flags*/) {
  return Call("rsmi_init").answer;
}
Status rsmi_shut_down() {
  return kSuccess;
}
Status rsmi_num_monitor_devices(std::uint32_t* count) {
  const Call call("rsmi_num_monitor_devices");
  *count = static_cast<std::uint32_t>(call.scenario.whole("count").value_or(0));
  return call.answer;
}
Status rsmi_dev_pci_id_get(std::uint32_t device, std::uint64_t* value) {
  return give("rsmi_dev_pci_id_get", device, "pci", value);
}
Status rsmi_dev_unique_id_get(std::uint32_t device, std::uint64_t* value) {
  return give("rsmi_dev_unique_id_get", device, "unique_id", value);
}
Status rsmi_dev_serial_number_get(std::uint32_t device, char* text, std::uint32_t size) {
  return give_text("rsmi_dev_serial_number_get", device, "serial", text, size);
}
Status rsmi_dev_name_get(std::uint32_t device, char* text, std::size_t size) {
  return give_text("rsmi_dev_name_get", device, "name", text, size);
}
Status rsmi_dev_power_get(std::uint32_t device, std::uint64_t* microwatts, int* type) {
  *type = 0;
  return give("rsmi_dev_power_get", device, "power", microwatts);
}
Status rsmi_dev_power_ave_get(std::uint32_t device,
                              std::uint32_t /*sensor*/,
                              std::uint64_t* value) {
  return give("rsmi_dev_power_ave_get", device, "average_power", value);
}
Status rsmi_dev_power_cap_get(std::uint32_t device,
                              std::uint32_t /*sensor*/,
                              std::uint64_t* value) {
  return give("rsmi_dev_power_cap_get", device, "power_cap", value);
}
Status rsmi_dev_energy_count_get(std::uint32_t device,
                                 std::uint64_t* count,
                                 float* microjoules_each,
                                 std::uint64_t* nanoseconds) {
  *microjoules_each = 15.3F;
  *nanoseconds = 0;
  return give("rsmi_dev_energy_count_get", device, "energy", count);
}
Status rsmi_dev_busy_percent_get(std::uint32_t device, std::uint32_t* percent) {
  return give("rsmi_dev_busy_percent_get", device, "busy", percent);
}
Status rsmi_dev_memory_busy_percent_get(std::uint32_t device, std::uint32_t* percent) {
  return give("rsmi_dev_memory_busy_percent_get", device, "memory_busy", percent);
}
Status rsmi_dev_memory_usage_get(std::uint32_t device, int /*type*/, std::uint64_t* bytes) {
  return give("rsmi_dev_memory_usage_get", device, "memory_used", bytes);
}
Status rsmi_dev_memory_total_get(std::uint32_t device, int /*type*/, std::uint64_t* bytes) {
  return give("rsmi_dev_memory_total_get", device, "memory_total", bytes);
}
Status rsmi_dev_temp_metric_get(std::uint32_t device,
                                std::uint32_t sensor,
                                int /*metric*/,
                                std::int64_t* millidegrees) {
  return give("rsmi_dev_temp_metric_get", device, "temperature" + std::to_string(sensor),
              millidegrees);
}
Status rsmi_dev_ecc_count_get(std::uint32_t device, std::uint64_t block, ErrorCount* errors) {
  *errors = {};
  errors->uncorrectable = 1;
  return give("rsmi_dev_ecc_count_get", device, "ecc" + std::to_string(block),
              &errors->correctable);
}
/// "pids 10 20".
Status rsmi_compute_process_info_get(ProcessInfo* processes, std::uint32_t* count) {
  const Call call("rsmi_compute_process_info_get");
  const auto list = pairs(call.scenario.text("pids"));
  std::uint32_t i = 0;
  for (const auto& [pid, unused] : list) {
    if (processes != nullptr && i < *count) {
      processes[i] = {};
      processes[i++].pid = static_cast<std::uint32_t>(pid);
    }
  }
  *count = static_cast<std::uint32_t>(
      call.scenario.whole("pid_count").value_or(processes == nullptr ? list.size() : i));
  return call.answer;
}
Status rsmi_compute_process_info_by_device_get(std::uint32_t pid,
                                               std::uint32_t device,
                                               RoomyProcessInfo* process) {
  const Call call("rsmi_compute_process_info_by_device_get");
  const auto list = pairs(call.scenario.text(std::to_string(device) + ".processes"));
  const auto found = list.find(pid);
  if (found == list.end()) {
    return 6;  // not found
  }
  *process = {};
  process->info.pid = pid;
  process->info.vram_bytes = found->second;
  return call.answer;
}

}  // extern "C"
