#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/ebpf/kernel_types.h"
#include "exporter/ebpf/layout.h"

namespace ceems::exporter::ebpf {

/// Which counters a hook belongs to.
enum class HookPart { kFiles, kNetwork };

/// A kernel function on which programs are hung.
struct Hook {
  ebpf_hook id;
  std::string_view function;
  HookPart part;
  std::string_view loses;  ///< what is not counted if the hook is missing
  bool latency = false;    ///< needed only for latencies
  bool spare = false;      ///< needed only if another hook is not reached
};

/// All hooks, in the order of ebpf_hook. Static data.
std::span<const Hook> all_hooks();

/// Fills in the prototypes of the hooks of one part. Returns the hooks that this kernel does not
/// have, without spare ones.
std::vector<const Hook*> fit_hooks(const KernelTypes& types,
                                   HookPart part,
                                   ebpf_settings& settings);

}  // namespace ceems::exporter::ebpf
