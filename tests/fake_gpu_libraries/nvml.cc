// Stands in for libnvidia-ml.so.1 in tests; see scenario.h. Handles: device i is i + 1, its MIG
// device j is (i + 1) * 1000 + j + 1. With FAKE_MINIMAL the library has the functions of a very old
// driver only.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "exporter/gpu/library/nvidia/nvml_api.h"
#include "scenario.h"

namespace {

using namespace ceems::exporter::gpu::nvml;  // NOLINT(google-build-using-namespace): its own part
using fake_gpu::Call;
using fake_gpu::pairs;
using fake_gpu::put;

std::uintptr_t id(Device device) {
  return reinterpret_cast<std::uintptr_t>(device);
}

std::string key(Device device) {
  const std::uintptr_t value = id(device);
  return value < 1000 ? std::to_string(value - 1)
                      : std::to_string(value / 1000 - 1) + "." + std::to_string(value % 1000 - 1);
}

template <class T>
Return give(const std::string& function, Device device, const std::string& name, T* out) {
  const Call call(function, key(device));
  const auto value = call.scenario.number(key(device) + "." + name);
  if (call.answer != kSuccess || !value) {
    return call.answer != kSuccess ? call.answer : kNotSupported;
  }
  *out = static_cast<T>(call.scenario.whole(key(device) + "." + name).value_or(0));
  return kSuccess;
}

Return give_text(
    const std::string& function, Device device, const char* name, char* out, unsigned size) {
  const Call call(function, key(device));
  const auto value = call.scenario.text(key(device) + "." + name);
  if (call.answer != kSuccess || !value) {
    return call.answer != kSuccess ? call.answer : kNotSupported;
  }
  put(*value, out, size);
  return kSuccess;
}

[[maybe_unused]] Return give_processes(const std::string& function,
                                       Device device,
                                       const std::string& name,
                                       unsigned* count,
                                       ProcessInfo* processes) {
  const Call call(function, key(device));
  const auto list = pairs(call.scenario.text(key(device) + name));
  const auto told = call.scenario.whole(key(device) + name.substr(0, 8) + "_count");
  const unsigned room = *count;
  *count = static_cast<unsigned>(told.value_or(list.size()));
  if (call.answer != kSuccess || (*count > room && !told)) {
    return call.answer != kSuccess ? call.answer : kInsufficientSize;
  }
  unsigned i = 0;
  for (const auto& [pid, bytes] : list) {
    if (i < room) {
      processes[i++] = {.pid = static_cast<unsigned>(pid),
                        .used_gpu_memory = bytes,
                        .gpu_instance_id = kNoInstance,
                        .compute_instance_id = kNoInstance};
    }
  }
  return kSuccess;
}

}  // namespace

extern "C" {

Return nvmlInit_v2() {
  return Call("nvmlInit_v2").answer;
}
Return nvmlShutdown() {
  return Call("nvmlShutdown").answer;
}
Return nvmlDeviceGetCount_v2(unsigned* count) {
  const Call call("nvmlDeviceGetCount_v2");
  *count = static_cast<unsigned>(call.scenario.whole("count").value_or(0));
  return call.answer;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = reinterpret_cast<Device>(std::uintptr_t{index} + 1);
  return Call("nvmlDeviceGetHandleByIndex_v2", std::to_string(index)).answer;
}
Return nvmlDeviceGetUUID(Device device, char* text, unsigned size) {
  return give_text("nvmlDeviceGetUUID", device, "uuid", text, size);
}
Return nvmlDeviceGetPowerUsage(Device device, unsigned* value) {
  return give("nvmlDeviceGetPowerUsage", device, "power", value);
}

#ifndef FAKE_MINIMAL
Return nvmlDeviceGetName(Device device, char* text, unsigned size) {
  return give_text("nvmlDeviceGetName", device, "name", text, size);
}
Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  return give_text("nvmlDeviceGetPciInfo_v3", device, "pci", info->bus_id, sizeof(info->bus_id));
}
Return nvmlDeviceGetMinorNumber(Device device, unsigned* value) {
  return give("nvmlDeviceGetMinorNumber", device, "minor", value);
}
Return nvmlDeviceGetVirtualizationMode(Device device, unsigned* value) {
  return give("nvmlDeviceGetVirtualizationMode", device, "virtualization", value);
}
Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* value) {
  return give("nvmlDeviceGetEnforcedPowerLimit", device, "power_limit", value);
}
Return nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* value) {
  return give("nvmlDeviceGetTotalEnergyConsumption", device, "energy", value);
}
Return nvmlDeviceGetUtilizationRates(Device device, Utilization* value) {
  const Return gpu = give("nvmlDeviceGetUtilizationRates", device, "utilization", &value->gpu);
  static_cast<void>(give("", device, "memory_utilization", &value->memory));
  return gpu;
}
Return nvmlDeviceGetMemoryInfo(Device device, Memory* value) {
  static_cast<void>(give("", device, "memory_used", &value->used));
  return give("nvmlDeviceGetMemoryInfo", device, "memory_total", &value->total);
}
Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* value) {
  if (value->version != (sizeof(MemoryV2) | (2U << 24U))) {
    return 25;  // wrong version of the argument
  }
  static_cast<void>(give("", device, "memory_used", &value->used));
  return give("nvmlDeviceGetMemoryInfo_v2", device, "memory_total", &value->total);
}
Return nvmlDeviceGetTemperature(Device device, int /*sensor*/, unsigned* value) {
  return give("nvmlDeviceGetTemperature", device, "temperature", value);
}
Return nvmlDeviceGetClockInfo(Device device, int clock, unsigned* value) {
  return give("nvmlDeviceGetClockInfo", device, "clock" + std::to_string(clock), value);
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* value) {
  return give("nvmlDeviceGetCurrentClocksThrottleReasons", device, "reasons", value);
}
Return nvmlDeviceGetTotalEccErrors(Device device,
                                   int type,
                                   int /*counter*/,
                                   unsigned long long* value) {
  return give("nvmlDeviceGetTotalEccErrors", device, "ecc" + std::to_string(type), value);
}
Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    values[i].value_type = kUnsignedLongLong;
    values[i].result =
        give("", device, "field" + std::to_string(values[i].field_id), &values[i].value.ull);
  }
  return Call("nvmlDeviceGetFieldValues", key(device)).answer;
}
Return nvmlDeviceGetPcieThroughput(Device device, int counter, unsigned* value) {
  return give("nvmlDeviceGetPcieThroughput", device, "pcie" + std::to_string(counter), value);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device device,
                                               unsigned* count,
                                               ProcessInfo* processes) {
  return give_processes("nvmlDeviceGetComputeRunningProcesses_v3", device, ".processes", count,
                        processes);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device,
                                                  unsigned* count,
                                                  ProcessInfo* processes) {
  return give_processes("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, ".mps_clients", count,
                        processes);
}
/// "mps_server 900": the pid of the server.
Return nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  const Call call("nvmlSystemGetProcessName");
  put(call.scenario.whole("mps_server") == pid ? "/usr/bin/nvidia-cuda-mps-server -force-tegra"
                                               : "/usr/bin/python3",
      name, length);
  return call.answer;
}
Return nvmlDeviceGetProcessUtilization(Device device,
                                       ProcessUtilizationSample* samples,
                                       unsigned* count,
                                       unsigned long long /*last_seen*/) {
  const Call call("nvmlDeviceGetProcessUtilization", key(device));
  const auto text = call.scenario.text(key(device) + ".process_utilization");
  const auto list = pairs(text);
  if (call.answer != kSuccess || !text) {
    return call.answer != kSuccess ? call.answer : kNotSupported;
  }
  unsigned i = 0;
  for (const auto& [pid, percent] : list) {
    if (i < *count) {
      samples[i++] = {.pid = static_cast<unsigned>(pid),
                      .time_stamp = 1000,
                      .sm_util = static_cast<unsigned>(percent),
                      .mem_util = 0,
                      .enc_util = 0,
                      .dec_util = 0};
    }
  }
  *count = i;
  return i > 0 ? kSuccess : kNotFound;
}
/// "utilization_samples" is a list of TIME:PERCENT.
Return nvmlDeviceGetSamples(Device device,
                            int type,
                            unsigned long long last_seen,
                            int* value_type,
                            unsigned* count,
                            Sample* samples) {
  const Call call("nvmlDeviceGetSamples", key(device));
  const auto text = call.scenario.text(key(device) + ".utilization_samples");
  const auto list = pairs(text);
  if (call.answer != kSuccess || !text || type != kGpuUtilizationSamples) {
    return call.answer != kSuccess ? call.answer : kNotSupported;
  }
  *value_type = kUnsignedValue;
  unsigned i = 0;
  for (const auto& [time, percent] : list) {
    const auto stamp = static_cast<unsigned long long>(time);
    if (stamp > last_seen && i < *count) {
      samples[i].time_stamp = stamp;
      samples[i++].value.number = static_cast<unsigned>(percent);
    }
  }
  *count = i;
  return i > 0 ? kSuccess : kNotFound;
}
Return nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return give("nvmlDeviceGetMigMode", device, "mig", current);
}
Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* value) {
  return give("nvmlDeviceGetMaxMigDeviceCount", device, "mig_places", value);
}
Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* instance) {
  *instance = reinterpret_cast<Device>(id(device) * 1000 + index + 1);
  const Call call("nvmlDeviceGetMigDeviceHandleByIndex");
  return call.scenario.text(key(*instance) + ".uuid") ? call.answer : kNotFound;
}
Return nvmlDeviceGetGpuInstanceId(Device device, unsigned* value) {
  return give("nvmlDeviceGetGpuInstanceId", device, "gi", value);
}
Return nvmlDeviceGetComputeInstanceId(Device device, unsigned* value) {
  return give("nvmlDeviceGetComputeInstanceId", device, "ci", value);
}
Return nvmlDeviceGetAttributes_v2(Device device, DeviceAttributes* attributes) {
  return give("nvmlDeviceGetAttributes_v2", device, "sms", &attributes->multiprocessor_count);
}

Return nvmlEventSetCreate(EventSet* set) {
  *set = new std::size_t(0);  // events that were delivered
  return Call("nvmlEventSetCreate").answer;
}
Return nvmlEventSetFree(EventSet set) {
  delete static_cast<std::size_t*>(set);
  return kSuccess;
}
Return nvmlDeviceRegisterEvents(Device device, unsigned long long /*types*/, EventSet /*set*/) {
  return Call("nvmlDeviceRegisterEvents", key(device)).answer;
}
/// "xids 0:79 1:13": device and number, each delivered once.
Return nvmlEventSetWait_v2(EventSet set, EventData* data, unsigned /*timeout_ms*/) {
  const Call call("nvmlEventSetWait_v2");
  std::size_t& delivered = *static_cast<std::size_t*>(set);
  std::istringstream words(call.scenario.text("xids").value_or(""));
  std::string word;
  for (std::size_t i = 0; i <= delivered; ++i) {
    if (!(words >> word)) {
      return kTimeout;
    }
  }
  ++delivered;
  const auto event = *pairs(word).begin();
  *data = {.device = reinterpret_cast<Device>(static_cast<std::uintptr_t>(event.first) + 1),
           .event_type = kEventXid,
           .event_data = event.second,
           .gpu_instance_id = kNoInstance,
           .compute_instance_id = kNoInstance};
  return call.answer;
}

Return nvmlGpmQueryDeviceSupport(Device device, GpmSupport* support) {
  return give("nvmlGpmQueryDeviceSupport", device, "gpm", &support->is_supported);
}
Return nvmlGpmSampleAlloc(GpmSample* sample) {
  *sample = new std::string;  // the key of what it is a sample of
  return Call("nvmlGpmSampleAlloc").answer;
}
Return nvmlGpmSampleFree(GpmSample sample) {
  delete static_cast<std::string*>(sample);
  return kSuccess;
}
Return nvmlGpmSampleGet(Device device, GpmSample sample) {
  *static_cast<std::string*>(sample) = key(device);
  return Call("nvmlGpmSampleGet", key(device)).answer;
}
Return nvmlGpmMigSampleGet(Device device, unsigned gpu_instance, GpmSample sample) {
  *static_cast<std::string*>(sample) = key(device) + ".gi" + std::to_string(gpu_instance);
  return Call("nvmlGpmMigSampleGet", key(device)).answer;
}
Return nvmlGpmMetricsGet(GpmMetricsGet* metrics) {
  const Call call("nvmlGpmMetricsGet");
  const auto& last = *static_cast<std::string*>(metrics->sample1);
  const auto& now = *static_cast<std::string*>(metrics->sample2);
  if (metrics->version != kGpmVersion || last.empty() || last != now) {
    return 2;  // invalid argument
  }
  for (unsigned i = 0; i < metrics->count; ++i) {
    const auto value =
        call.scenario.number(now + ".gpm" + std::to_string(metrics->metrics[i].metric_id));
    metrics->metrics[i].result = value ? kSuccess : kNotSupported;
    metrics->metrics[i].value = value.value_or(0);
  }
  return call.answer;
}
#endif

}  // extern "C"
