#include "exporter/gpu/library/gpu_library.h"

#include <dlfcn.h>

#include "base/strings.h"
#include "exporter/gpu/library/amd/amd_smi_library.h"
#include "exporter/gpu/library/amd/rocm_smi.h"
#include "exporter/gpu/library/intel/level_zero.h"
#include "exporter/gpu/library/nvidia/nvml.h"

namespace ceems::exporter::gpu {

void SharedLibrary::Close::operator()(void* handle) const {
  static_cast<void>(dlclose(handle));
}

Result<SharedLibrary> SharedLibrary::open(std::span<const std::string> names) {
  std::string errors;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return SharedLibrary(handle, name);
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps the text by thread
    const char* error = dlerror();
    errors += errors.empty() ? "" : "; ";
    errors += printable(error == nullptr ? "unknown error" : error, 256);
  }
  return fail(ErrorCode::kNotFound, "{}", errors.empty() ? "no library was given" : errors);
}

void* SharedLibrary::address(const char* name) const {
  return dlsym(handle_.get(), name);
}

DeviceState as_lost(const DeviceState& state, std::string why) {
  DeviceState kept{.vendor = state.vendor,
                   .index = state.index,
                   .uuid = state.uuid,
                   .sm_count = state.sm_count,
                   .name = state.name,
                   .address = state.address,
                   .driver_minor = state.driver_minor,
                   .module = state.module,
                   .split = state.split,
                   .vgpu = state.vgpu,
                   .lost = std::move(why),
                   .energy_joules = state.energy_joules,
                   .ecc_corrected = state.ecc_corrected,
                   .ecc_uncorrected = state.ecc_uncorrected,
                   .xids = state.xids,
                   .errors = state.errors};
  for (const InstanceState& instance : state.instances) {
    kept.instances.push_back({.index = instance.index,
                              .uuid = instance.uuid,
                              .number = instance.number,
                              .gpu_instance = instance.gpu_instance,
                              .compute_instance = instance.compute_instance,
                              .sm_count = instance.sm_count});
  }
  return kept;
}

std::vector<std::string> library_names(Vendor vendor) {
  switch (vendor) {
    case Vendor::kNvidia:
      return {"libnvidia-ml.so.1"};
    case Vendor::kAmd:  // newest first; .1 is the version of distributions
      return {"librocm_smi64.so.8", "librocm_smi64.so.7", "librocm_smi64.so.6",
              "librocm_smi64.so.5", "librocm_smi64.so.1", "/opt/rocm/lib/librocm_smi64.so",
              // Used if it is the only one, because the first one provides more values.
              "libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24",
              "/opt/rocm/lib/libamd_smi.so"};
    case Vendor::kIntel:
      return {"libze_loader.so.1"};
  }
  return {};
}

Result<std::unique_ptr<GpuLibrary>> load_library(Vendor vendor,
                                                 const std::string& path,
                                                 const std::filesystem::path& sys) {
  const auto names = path.empty() ? library_names(vendor) : std::vector<std::string>{path};
  CEEMS_TRY(library, SharedLibrary::open(names));
  switch (vendor) {
    case Vendor::kNvidia:
      return std::make_unique<nvml::Nvml>(std::move(library));
    case Vendor::kAmd:
      if (library.symbol<amdsmi::Init>("amdsmi_init") != nullptr) {
        return std::make_unique<amdsmi::AmdSmi>(std::move(library), sys);
      }
      return std::make_unique<rocm::RocmSmi>(std::move(library), sys);
    case Vendor::kIntel:
      return std::make_unique<level_zero::LevelZero>(std::move(library));
  }
  return fail(ErrorCode::kNotFound, "unknown GPU vendor {}", to_string(vendor));
}

}  // namespace ceems::exporter::gpu
