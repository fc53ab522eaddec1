#include "exporter/gpu/library/nvidia/nvml_errors.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace ceems::exporter::gpu::nvml {
namespace {

struct Meaning {
  Return number;
  bool failure;
  std::string_view name;
  std::string_view words;
  std::string_view advice = {};
};

constexpr std::string_view kReboot = "look for Xid in dmesg, drain the node, and reset or reboot";

constexpr std::array kMeanings = {
    Meaning{0, false, "success", "success"},
    Meaning{1, true, "uninitialized", "NVML is not open", "it is opened again"},
    Meaning{2, false, "invalid_argument", "the driver does not know the argument"},
    Meaning{3, false, "not_supported", "the GPU does not have this value"},
    Meaning{4, false, "no_permission", "no permission", "let the exporter start as root"},
    Meaning{6, false, "not_found", "there is none at the moment"},
    Meaning{7, false, "insufficient_size", "the buffer is too small"},
    Meaning{8, true, "insufficient_power", "the GPU's power cables are not connected",
            "check the cables"},
    Meaning{9, true, "driver_not_loaded", "the driver is not loaded",
            "modprobe nvidia, and see dmesg if that fails"},
    Meaning{10, true, "timeout", "the GPU does not answer in time", kReboot},
    Meaning{11, true, "irq_issue", "the kernel has a problem with an interrupt of the GPU",
            kReboot},
    Meaning{12, true, "library_not_found", "NVML's part of the driver is missing",
            "install the driver again"},
    Meaning{13, false, "function_not_found", "the driver is too old for this function"},
    Meaning{14, true, "corrupted_inforom", "the GPU's inforom is corrupt", "have the GPU replaced"},
    Meaning{15, true, "gpu_is_lost", "the GPU has fallen off the bus", kReboot},
    Meaning{16, true, "reset_required", "the GPU must be reset",
            "nvidia-smi --gpu-reset, or reboot"},
    Meaning{17, true, "operating_system", "the operating system denies access to the GPU",
            "check the device files and cgroups that the exporter may use"},
    Meaning{18, true, "version_mismatch",
            "the library and the loaded driver have different versions",
            "the driver was updated: reload its modules or reboot"},
    Meaning{19, true, "in_use", "the GPU is in use"},
    Meaning{20, true, "memory", "out of memory"},
    Meaning{21, false, "no_data", "the driver has no data yet"},
    Meaning{25, false, "argument_version", "the driver does not know this form of the argument"},
    Meaning{999, true, "unknown", "an internal error of the driver", kReboot},
};

const Meaning* meaning(Return result) {
  const auto* const found = std::ranges::find(kMeanings, result, &Meaning::number);
  return found == kMeanings.end() ? nullptr : found;
}

}  // namespace

bool is_failure(Return result) {
  const Meaning* known = meaning(result);
  return known == nullptr || known->failure;
}

std::string error_name(Return result) {
  const Meaning* known = meaning(result);
  return known == nullptr ? fmt::format("error_{}", result) : std::string(known->name);
}

std::string describe(Return result) {
  const Meaning* known = meaning(result);
  if (known == nullptr) {
    return fmt::format("error {} of NVML", result);
  }
  return fmt::format("{} ({}){}{}", known->words, result, known->advice.empty() ? "" : "; ",
                     known->advice);
}

}  // namespace ceems::exporter::gpu::nvml
