#include "exporter/collectors/gpu_flags.h"

#include <cstdlib>

namespace ceems::exporter {

void GpuFlags::add_to(config::FlagSet& flags) {
  flags.add_enum("collector.gpu.type", type_, {"nvidia", "amd", "nogpu"},
                 {.help = "Take GPUs of this vendor only, or none", .hidden = true});
  flags.add("collector.gpu.nvidia-smi-path", nvidia_smi_,
            {.help = "Path of nvidia-smi", .hidden = true});
  flags.add("collector.gpu.rocm-smi-path", rocm_smi_, {.help = "Path of rocm-smi", .hidden = true});
  flags.add("collector.gpu.amd-smi-path", amd_smi_, {.help = "Path of amd-smi", .hidden = true});
}

std::shared_ptr<gpu::Inventory> GpuFlags::inventory(const CollectorContext& context) {
  if (inventory_ == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
    const char* path = std::getenv("PATH");
    inventory_ = gpu::Inventory::create({.paths = context.paths,
                                         .type = type_,
                                         .nvidia_smi = nvidia_smi_,
                                         .amd_smi = amd_smi_,
                                         .rocm_smi = rocm_smi_,
                                         .search_path = path == nullptr ? "" : path},
                                        os::real_runner());
  }
  return inventory_;
}

}  // namespace ceems::exporter
