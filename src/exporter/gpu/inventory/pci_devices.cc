#include "exporter/gpu/inventory/pci_devices.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxPciDevices = 65536;
constexpr std::size_t kMaxPciText = 64;

constexpr unsigned kNvidiaId = 0x10de;
constexpr unsigned kAmdId = 0x1002;
constexpr unsigned kIntelId = 0x8086;

std::optional<unsigned> number_with_prefix(std::string_view text) {
  text = trim(text);
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) {
    text.remove_prefix(2);
  }
  unsigned value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<Vendor> gpu_vendor(std::string_view device_class, std::string_view vendor) {
  device_class = trim(device_class);
  if (!device_class.starts_with("0x03") && !device_class.starts_with("0x12")) {
    return std::nullopt;
  }
  switch (number_with_prefix(vendor).value_or(0)) {
    case kNvidiaId:
      return Vendor::kNvidia;
    case kAmdId:
      return Vendor::kAmd;
    case kIntelId:
      return Vendor::kIntel;
    default:
      return std::nullopt;
  }
}

std::vector<PciGpu> pci_gpus(const host::Paths& paths) {
  const auto directory = paths.sys / "bus/pci/devices";
  auto names = host::list_directory(directory.string());
  if (!names) {
    return {};
  }
  names->resize(std::min(names->size(), kMaxPciDevices));
  std::vector<PciGpu> gpus;
  for (std::string& name : *names) {
    const auto device_class = host::read_file((directory / name / "class").string(), kMaxPciText);
    const auto vendor = host::read_file((directory / name / "vendor").string(), kMaxPciText);
    if (!device_class || !vendor) {
      continue;
    }
    if (const auto known = gpu_vendor(*device_class, *vendor)) {
      gpus.push_back({.name = std::move(name), .vendor = *known});
    }
  }
  return gpus;
}

}  // namespace ceems::exporter::gpu
