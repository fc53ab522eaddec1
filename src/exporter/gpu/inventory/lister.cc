#include "exporter/gpu/inventory/lister.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/gpu/inventory/amd_smi.h"
#include "exporter/gpu/inventory/library_list.h"
#include "exporter/gpu/inventory/sysfs.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxOutput = std::size_t{16} << 20U;

/// Time left for a program to run, but always enough for one that answers at once.
std::chrono::milliseconds left(Lister::Deadline deadline) {
  constexpr std::chrono::milliseconds kMin{300};
  constexpr std::chrono::milliseconds kMax{std::chrono::minutes(5)};
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return std::clamp(rest, kMin, kMax);
}

std::string_view first_line(std::string_view text) {
  text = trim(text);
  return trim(take_until(text, '\n'));
}

}  // namespace

Result<Listing> Lister::list(Vendor vendor, Deadline deadline, const std::stop_token& stop) const {
  if (vendor == Vendor::kIntel) {
    return Listing{.devices = intel_devices(options_.paths), .by = "sysfs"};
  }
  auto devices = by_library(vendor, deadline, stop);
  const bool library = devices.has_value();
  if (!devices) {
    const Error first = std::move(devices).error();
    log::debug("GPUs cannot be listed by the vendor's library",
               {{"vendor", to_string(vendor)}, {"err", first.message}});
    devices =
        vendor == Vendor::kNvidia ? by_nvidia_smi(deadline, stop) : by_amd_tool(deadline, stop);
    if (!devices) {
      Error error = std::move(devices).error();
      if (!options_.own_program.empty()) {
        error.message += "; library: " + first.message;
      }
      return fail(std::move(error));
    }
  }
  if (vendor == Vendor::kAmd) {
    add_amd_sysfs(options_.paths, *devices);
  }
  return Listing{.devices = *std::move(devices), .by = library ? "library" : "tool"};
}

Lister::Devices Lister::by_library(Vendor vendor,
                                   Deadline deadline,
                                   const std::stop_token& stop) const {
  if (options_.own_program.empty()) {
    return fail(ErrorCode::kNotFound, "not used");
  }
  std::vector<std::string> arguments{kListCommand, std::string(to_string(vendor))};
  if (const auto& path = options_.libraries.at(static_cast<std::size_t>(vendor)); !path.empty()) {
    arguments.push_back(path);
  }
  CEEMS_TRY(text, run({.path = options_.own_program,
                       .arguments = std::move(arguments),
                       .environment = options_.own_environment,
                       .timeout = std::min(left(deadline) / 2, options_.library_timeout),
                       .max_output_bytes = kMaxOutput},
                      stop));
  auto devices = parse_device_list(text);
  if (devices && devices->empty()) {
    return fail(ErrorCode::kNoData, "the library lists no GPU");
  }
  return devices;
}

Lister::Devices Lister::by_nvidia_smi(Deadline deadline, const std::stop_token& stop) const {
  CEEMS_TRY(path, tool(options_.nvidia_smi, "nvidia-smi"));
  CEEMS_TRY(xml, run_tool(path, {"--query", "--xml-format"}, deadline, stop));
  CEEMS_TRY_IN("nvidia-smi --query", devices, parse_nvidia_query(xml));
  if (devices.empty()) {
    return fail(ErrorCode::kNoData, "nvidia-smi lists no GPU");
  }
  if (std::ranges::any_of(devices, &Device::split)) {
    CEEMS_TRY(text, run_tool(path, {"-L"}, deadline, stop));
    set_mig_uuids(parse_nvidia_list(text), devices);
  }
  return devices;
}

Lister::Devices Lister::by_amd_tool(Deadline deadline, const std::stop_token& stop) const {
  const auto output = [&](const std::string& given, const char* name,
                          const std::vector<std::string>& arguments) -> Result<std::string> {
    const auto path = tool(given, name);
    return path ? run_tool(*path, arguments, deadline, stop)
                : Result<std::string>(fail(path.error()));
  };
  auto json = output(options_.amd_smi, "amd-smi", {"static", "-a", "-B", "-b", "-p", "--json"});
  const bool by_rocm = !json && json.error().code == ErrorCode::kNotFound;
  if (by_rocm) {
    auto other = output(options_.rocm_smi, "rocm-smi",
                        {"--showproductname", "--showserial", "--showbus", "--showcomputepartition",
                         "--showmemorypartition", "--json"});
    if (!other && other.error().code == ErrorCode::kNotFound) {
      return fail(ErrorCode::kNotFound, "{}; {}", json.error().message, other.error().message);
    }
    json = std::move(other);
  }
  if (!json) {
    return fail(json.error());
  }
  CEEMS_TRY_IN(by_rocm ? "rocm-smi" : "amd-smi", devices,
               by_rocm ? parse_rocm_smi(*json) : parse_amd_smi(*json));
  if (devices.empty()) {
    return fail(ErrorCode::kNoData, "the tool lists no GPU");
  }
  return devices;
}

Result<std::vector<VgpuEntry>> Lister::list_vgpus(Deadline deadline,
                                                  const std::stop_token& stop) const {
  CEEMS_TRY(path, tool(options_.nvidia_smi, "nvidia-smi"));
  CEEMS_TRY(text, run_tool(path, {"vgpu", "--query"}, deadline, stop));
  return parse_vgpu_query(text);
}

Result<std::string> Lister::tool(const std::string& given, const char* name) const {
  if (given.empty()) {
    return os::find_program(name, options_.search_path);
  }
  return std::filesystem::absolute(given).string();
}

Result<std::string> Lister::run_tool(const std::string& path,
                                     std::vector<std::string> arguments,
                                     Deadline deadline,
                                     const std::stop_token& stop) const {
  return run({.path = path,
              .arguments = std::move(arguments),
              .environment = {{"PATH", options_.search_path}, {"LC_ALL", "C"}},
              .timeout = left(deadline),
              .max_output_bytes = kMaxOutput},
             stop);
}

Result<std::string> Lister::run(os::Command command, const std::stop_token& stop) const {
  CEEMS_TRY(result, runner_.run(command, stop));
  if (result.exit_status != 0) {
    const auto said = first_line(result.error_text.empty() ? result.output : result.error_text);
    return fail(ErrorCode::kUnavailable, "{} exited with {}: {}", command.path, result.exit_status,
                printable(said));
  }
  return std::move(result.output);
}

}  // namespace ceems::exporter::gpu
