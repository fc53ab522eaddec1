#include "host/net_dev.h"

#include <optional>
#include <utility>

#include "base/strings.h"

namespace ceems::host {
namespace {

constexpr int kHeadings = 2;

bool take_columns(std::string_view& rest, NetDevColumns& columns) {
  for (std::uint64_t& column : columns) {
    const auto value = parse_int(take_word(rest));
    if (!value) {
      return false;
    }
    column = *value;
  }
  return true;
}

std::optional<NetDevice> parse_line(std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  NetDevice device;
  device.name = trim(line.substr(0, colon));
  std::string_view rest = line.substr(colon + 1);
  if (device.name.empty() || !take_columns(rest, device.receive) ||
      !take_columns(rest, device.transmit)) {
    return std::nullopt;
  }
  return device;
}

}  // namespace

Result<> parse_net_dev(std::string_view text, std::vector<NetDevice>& devices) {
  devices.clear();
  std::optional<Error> first;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = take_until(text, '\n');
    if (number <= kHeadings || trim(line).empty()) {
      continue;
    }
    if (const auto device = parse_line(line)) {
      devices.push_back(*device);
    } else if (!first) {
      first = Error{ErrorCode::kParse, fmt::format("line {}: expected 'name: 16 numbers', got '{}'",
                                                   number, printable(line))};
    }
  }
  if (first) {
    return fail(std::move(*first));
  }
  return {};
}

}  // namespace ceems::host
