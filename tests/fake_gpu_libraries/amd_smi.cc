// Stands in for libamd_smi.so in tests; see scenario.h. One socket; processor i has the handle i
// + 1.
#include <algorithm>
#include <cstdint>
#include <string>

#include "exporter/gpu/library/amd/amd_smi_api.h"
#include "scenario.h"

namespace {

using namespace ceems::exporter::gpu::amdsmi;  // NOLINT(google-build-using-namespace): its own part
using fake_gpu::Call;
using fake_gpu::Scenario;

std::string number_of(Handle gpu) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(gpu) - 1);
}

template <class T>
Status give(const char* function, Handle gpu, const std::string& name, T* out) {
  const std::string prefix = number_of(gpu);
  const Call call(function, prefix);
  const auto value = call.scenario.whole(prefix + "." + name);
  if (call.answer != kSuccess || !value) {
    return call.answer != kSuccess ? call.answer : kNotSupported;
  }
  *out = static_cast<T>(*value);
  return kSuccess;
}

}  // namespace

extern "C" {

Status amdsmi_init(std::uint64_t /*flags*/) {
  return Call("amdsmi_init").answer;
}
Status amdsmi_shut_down() {
  return kSuccess;
}
Status amdsmi_get_socket_handles(std::uint32_t* count, Handle* sockets) {
  if (sockets != nullptr && *count > 0) {
    sockets[0] = reinterpret_cast<Handle>(std::uintptr_t{1});
  }
  *count = 1;
  return Call("amdsmi_get_socket_handles").answer;
}
Status amdsmi_get_processor_handles(Handle /*socket*/, std::uint32_t* count, Handle* processors) {
  const auto known = static_cast<std::uint32_t>(Scenario().whole("count").value_or(0));
  for (std::uint32_t i = 0; processors != nullptr && i < std::min(*count, known); ++i) {
    processors[i] = reinterpret_cast<Handle>(std::uintptr_t{i} + 1);
  }
  *count = known;
  return Call("amdsmi_get_processor_handles").answer;
}
Status amdsmi_get_gpu_bdf_id(Handle gpu, std::uint64_t* id) {
  return give("amdsmi_get_gpu_bdf_id", gpu, "pci", id);
}
Status amdsmi_get_gpu_asic_info(Handle gpu, AsicInfo* info) {
  const auto name = Scenario().text(number_of(gpu) + ".name");
  if (!name) {
    return kNotSupported;
  }
  fake_gpu::put(*name, info->name, sizeof(info->name));
  return Call("amdsmi_get_gpu_asic_info").answer;
}
Status amdsmi_get_gpu_activity(Handle gpu, EngineUsage* usage) {
  static_cast<void>(give("", gpu, "memory_busy", &usage->memory));
  return give("amdsmi_get_gpu_activity", gpu, "busy", &usage->graphics);
}
Status amdsmi_get_energy_count(Handle gpu,
                               std::uint64_t* count,
                               float* microjoules_each,
                               std::uint64_t* nanoseconds) {
  *microjoules_each = 15.3F;
  *nanoseconds = 0;
  return give("amdsmi_get_energy_count", gpu, "energy", count);
}
Status amdsmi_get_gpu_memory_usage(Handle gpu, int /*type*/, std::uint64_t* bytes) {
  return give("amdsmi_get_gpu_memory_usage", gpu, "memory_used", bytes);
}
Status amdsmi_get_gpu_memory_total(Handle gpu, int /*type*/, std::uint64_t* bytes) {
  return give("amdsmi_get_gpu_memory_total", gpu, "memory_total", bytes);
}
Status amdsmi_get_temp_metric(Handle gpu, int sensor, int /*metric*/, std::int64_t* value) {
  return give("amdsmi_get_temp_metric", gpu, "temperature" + std::to_string(sensor), value);
}
Status amdsmi_get_gpu_total_ecc_count(Handle gpu, ErrorCount* errors) {
  return give("amdsmi_get_gpu_total_ecc_count", gpu, "ecc", &errors->correctable);
}

}  // extern "C"
