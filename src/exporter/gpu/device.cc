#include "exporter/gpu/device.h"

#include <charconv>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::exporter::gpu {
namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Removes the hexadecimal digits at the front of `rest` and returns them.
std::string_view take_hex(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && is_hex(rest[end])) {
    ++end;
  }
  const auto digits = rest.substr(0, end);
  rest.remove_prefix(end);
  return digits;
}

std::optional<std::uint16_t> hex16(std::string_view digits) {
  std::uint16_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string_view to_string(Vendor vendor) {
  switch (vendor) {
    case Vendor::kNvidia:
      return "nvidia";
    case Vendor::kAmd:
      return "amd";
    case Vendor::kIntel:
      return "intel";
  }
  return "";
}

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  while (!text.empty()) {
    if (!is_hex(text.front())) {
      text.remove_prefix(1);
      continue;
    }
    std::string_view rest = text;
    const auto domain = take_hex(rest);
    // If a run of digits is not a domain, no address can start within it either.
    text.remove_prefix(domain.size());
    if (!take(rest, ':')) {
      continue;
    }
    const auto bus = take_hex(rest);
    if (bus.empty() || !take(rest, ':')) {
      continue;
    }
    const auto device = take_hex(rest);
    if (device.empty() || !take(rest, '.')) {
      continue;
    }
    const auto function = take_hex(rest);
    if (function.empty()) {
      continue;
    }
    const auto domain_number = hex16(domain);
    const auto bus_number = hex16(bus);
    const auto device_number = hex16(device);
    const auto function_number = hex16(function);
    if (!domain_number || !bus_number || !device_number || !function_number) {
      return std::nullopt;
    }
    return PciAddress{*domain_number, *bus_number, *device_number, *function_number};
  }
  return std::nullopt;
}

std::string to_string(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

}  // namespace ceems::exporter::gpu
