#include "exporter/gpu/library/gpu_library.h"

#include "exporter/gpu/library/amd/amd_smi_library.h"
#include "exporter/gpu/library/amd/rocm_smi.h"
#include "exporter/gpu/library/intel/level_zero.h"
#include "exporter/gpu/library/nvidia/nvml.h"
#include "exporter/gpu/library/shared_library.h"

namespace ceems::exporter::gpu {

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
