#pragma once

// The part of the NVIDIA Management Library that is used, declared from its documentation (NVML API
// Reference Guide, https://docs.nvidia.com/deploy/nvml-api/). Functions have the library's names.
// The types of functions have the same names with a capital letter.
namespace ceems::exporter::gpu::nvml {

using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kTimeout = 10;
inline constexpr Return kGpuIsLost = 15;

using Device = void*;
using EventSet = void*;
using GpmSample = void*;

/// Values that mean "not available".
inline constexpr unsigned long long kNoValue = ~0ULL;
inline constexpr unsigned kNoInstance = ~0U;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

struct Utilization {
  unsigned gpu;     // percent
  unsigned memory;  // percent
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
inline constexpr unsigned kMemoryV2Version = sizeof(MemoryV2) | (2U << 24U);

struct ProcessInfo {
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};

struct ProcessUtilizationSample {
  unsigned pid;
  unsigned long long time_stamp;  // microseconds
  unsigned sm_util;               // percent
  unsigned mem_util;
  unsigned enc_util;
  unsigned dec_util;
};

union Value {
  double d;
  unsigned ui;
  unsigned long ul;
  unsigned long long ull;
  long long sll;
  int si;
  unsigned short us;
};
enum ValueType : int { kDouble = 0, kUnsigned, kUnsignedLong, kUnsignedLongLong, kSigned64, kInt };

struct FieldValue {
  unsigned field_id;
  unsigned scope_id;
  long long timestamp;
  long long latency_usec;
  int value_type;
  Return result;
  Value value;
};
inline constexpr unsigned kFieldMemoryTemperature = 82;
inline constexpr unsigned kFieldNvlinkDataSent = 138;      // KiB; all links with kAllLinks
inline constexpr unsigned kFieldNvlinkDataReceived = 139;  // KiB
inline constexpr unsigned kFieldPcieSent = 197;            // bytes
inline constexpr unsigned kFieldPcieReceived = 198;        // bytes
inline constexpr unsigned kAllLinks = ~0U;

struct EventData {
  Device device;
  unsigned long long event_type;
  unsigned long long event_data;  // Xid number
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
inline constexpr unsigned long long kEventXid = 8;

struct DeviceAttributes {
  unsigned multiprocessor_count;
  unsigned shared_copy_engine_count;
  unsigned shared_decoder_count;
  unsigned shared_encoder_count;
  unsigned shared_jpeg_count;
  unsigned shared_ofa_count;
  unsigned gpu_instance_slice_count;
  unsigned compute_instance_slice_count;
  unsigned long long memory_size_mib;
};

struct GpmSupport {
  unsigned version;
  unsigned is_supported;
};
inline constexpr unsigned kGpmVersion = 1;

struct GpmMetric {
  unsigned metric_id;
  Return result;
  double value;
  struct {
    char* short_name;
    char* long_name;
    char* unit;
  } info;
};

/// The library's array is longer in each release. It uses only `count` metrics.
struct GpmMetricsGet {
  unsigned version;
  unsigned count;
  GpmSample sample1;
  GpmSample sample2;
  GpmMetric metrics[512];
};
inline constexpr unsigned kGpmGraphics = 1;  // all in percent
inline constexpr unsigned kGpmSmActive = 2;
inline constexpr unsigned kGpmSmOccupancy = 3;
inline constexpr unsigned kGpmTensor = 5;
inline constexpr unsigned kGpmTensorDfma = 6;
inline constexpr unsigned kGpmTensorHmma = 7;
inline constexpr unsigned kGpmTensorImma = 9;
inline constexpr unsigned kGpmDram = 10;
inline constexpr unsigned kGpmFp64 = 11;
inline constexpr unsigned kGpmFp32 = 12;
inline constexpr unsigned kGpmFp16 = 13;

inline constexpr unsigned kVirtualizationVgpu = 2;      // this machine is a VM
inline constexpr unsigned kVirtualizationHostVgpu = 3;  // VMs of this host use parts of it

inline constexpr int kClockGraphics = 0;
inline constexpr int kClockSm = 1;
inline constexpr int kClockMemory = 2;
inline constexpr int kClockVideo = 3;
inline constexpr int kTemperatureGpu = 0;
inline constexpr int kEccCorrected = 0;
inline constexpr int kEccUncorrected = 1;
inline constexpr int kEccAggregate = 1;  // over the lifetime of the device
inline constexpr int kPcieSent = 0;
inline constexpr int kPcieReceived = 1;

/// Types of samples, and of the values in them.
inline constexpr int kGpuUtilizationSamples = 1;
inline constexpr int kUnsignedValue = 1;

/// nvmlSample_t: what the driver noted at a time (microseconds of the CPU's clock).
struct Sample {
  unsigned long long time_stamp;
  union {
    double real;
    unsigned number;
    unsigned long long large;
  } value;
};
static_assert(sizeof(Sample) == 16);

extern "C" {
using InitV2 = Return();
using Shutdown = Return();
using DeviceGetCountV2 = Return(unsigned* count);
using DeviceGetHandleByIndexV2 = Return(unsigned index, Device* device);
using DeviceGetText = Return(Device device, char* text, unsigned size);  // UUID, name
using DeviceGetPciInfoV3 = Return(Device device, PciInfo* info);
/// Minor number, virtualisation mode, power (mW), power limit (mW), instance ids, maximum number of
/// MIG devices.
using DeviceGetUnsigned = Return(Device device, unsigned* value);
using DeviceGetTotalEnergyConsumption = Return(Device device, unsigned long long* millijoules);
using DeviceGetUtilizationRates = Return(Device device, Utilization* utilization);
using DeviceGetMemoryInfo = Return(Device device, Memory* memory);
using DeviceGetMemoryInfoV2 = Return(Device device, MemoryV2* memory);
using DeviceGetTemperature = Return(Device device, int sensor, unsigned* celsius);
using DeviceGetClockInfo = Return(Device device, int clock, unsigned* megahertz);
using DeviceGetClockReasons = Return(Device device, unsigned long long* reasons);
using DeviceGetTotalEccErrors = Return(Device device,
                                       int error_type,
                                       int counter_type,
                                       unsigned long long* count);
using DeviceGetFieldValues = Return(Device device, int count, FieldValue* values);
using DeviceGetPcieThroughput = Return(Device device, int counter, unsigned* kib_per_second);
using DeviceGetComputeRunningProcessesV3 = Return(Device device,
                                                  unsigned* count,
                                                  ProcessInfo* processes);
using SystemGetProcessName = Return(unsigned pid, char* name, unsigned length);
using DeviceGetProcessUtilization = Return(Device device,
                                           ProcessUtilizationSample* samples,
                                           unsigned* count,
                                           unsigned long long last_seen);
using DeviceGetSamples = Return(Device device,
                                int type,
                                unsigned long long last_seen,
                                int* value_type,
                                unsigned* count,
                                Sample* samples);
using DeviceGetMigMode = Return(Device device, unsigned* current, unsigned* pending);
using DeviceGetMigDeviceHandleByIndex = Return(Device device, unsigned index, Device* instance);
using DeviceGetAttributesV2 = Return(Device device, DeviceAttributes* attributes);
using EventSetCreate = Return(EventSet* set);
using EventSetFree = Return(EventSet set);
using DeviceRegisterEvents = Return(Device device, unsigned long long types, EventSet set);
using EventSetWaitV2 = Return(EventSet set, EventData* data, unsigned timeout_ms);
using GpmQueryDeviceSupport = Return(Device device, GpmSupport* support);
using GpmSampleAlloc = Return(GpmSample* sample);
using GpmSampleFree = Return(GpmSample sample);
using GpmSampleGet = Return(Device device, GpmSample sample);
using GpmMigSampleGet = Return(Device device, unsigned gpu_instance, GpmSample sample);
using GpmMetricsGetCall = Return(GpmMetricsGet* metrics);
}

}  // namespace ceems::exporter::gpu::nvml
