#include "host/infiniband.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::host {
namespace {

constexpr double kBytesPerGigabit = 125e6;
constexpr double kMaxRate = 1e18;

/// The trimmed text of an attribute; nothing if it cannot be read.
std::optional<std::string> attribute(const std::string& path) {
  const auto text = read_file(path, kMaxValueSize);
  return text ? std::optional(std::string(trim(*text))) : std::nullopt;
}

/// A value of the port; otherwise nothing, and the reason is added to `problems`.
template <typename Parse>
std::optional<std::uint64_t> port_value(const std::string& path,
                                        Parse parse,
                                        std::vector<Error>& problems) {
  const auto text = read_file(path, kMaxValueSize);
  if (!text) {
    problems.push_back(text.error());
    return std::nullopt;
  }
  auto value = parse(*text);
  if (!value) {
    problems.push_back(std::move(value).error().with_context(path));
    return std::nullopt;
  }
  return *value;
}

void read_ports(InfinibandDevice& device) {
  const std::string root = device.path + "/ports";
  auto names = list_directory(root);
  if (!names) {
    device.problems.push_back(std::move(names).error());
    return;
  }
  std::vector<std::pair<unsigned, std::string>> numbers;
  for (std::string& name : *names) {
    const auto number = parse_int<unsigned>(name);
    if (number && is_directory(fmt::format("{}/{}", root, name))) {
      numbers.emplace_back(*number, std::move(name));
    }
  }
  std::ranges::sort(numbers);
  for (const auto& [number, name] : numbers) {
    InfinibandPort port{.number = std::to_string(number),
                        .path = fmt::format("{}/{}", root, name),
                        .state = {},
                        .physical_state = {},
                        .rate_bytes = {}};
    port.state = port_value(port.path + "/state", parse_infiniband_state, device.problems);
    port.physical_state =
        port_value(port.path + "/phys_state", parse_infiniband_state, device.problems);
    port.rate_bytes = port_value(port.path + "/rate", parse_infiniband_rate, device.problems);
    device.ports.push_back(std::move(port));
  }
}

std::optional<std::uint64_t> parse_based(std::string_view text) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

Result<std::uint64_t> parse_infiniband_state(std::string_view text) {
  std::string_view rest = trim(text);
  const auto value = parse_int<std::uint64_t>(trim(take_until(rest, ':')));
  if (!value) {
    return fail(ErrorCode::kParse, "expected 'number: name', got '{}'", printable(trim(text)));
  }
  return *value;
}

Result<std::uint64_t> parse_infiniband_rate(std::string_view text) {
  std::string_view rest = text;
  const auto gigabits = parse_double(take_word(rest));
  const double bytes = gigabits.value_or(-1) * kBytesPerGigabit;
  if (!(bytes >= 0 && bytes < kMaxRate)) {
    return fail(ErrorCode::kParse, "expected 'number Gb/sec', got '{}'", printable(trim(text)));
  }
  return static_cast<std::uint64_t>(bytes);
}

Result<std::optional<std::uint64_t>> parse_infiniband_counter(std::string_view text) {
  const std::string_view word = trim(text);
  if (word.find("N/A (no PMA)") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto value = parse_based(word);
  if (!value) {
    return fail(ErrorCode::kParse, "expected a number, got '{}'", printable(word));
  }
  return value;
}

Result<std::optional<std::uint64_t>> read_infiniband_counter(const InfinibandPort& port,
                                                             std::string_view file) {
  const std::string path = fmt::format("{}/{}", port.path, file);
  const auto text = read_file(path, kMaxValueSize);
  if (!text) {
    return std::nullopt;
  }
  CEEMS_TRY_IN(path, value, parse_infiniband_counter(*text));
  return value;
}

Result<std::vector<InfinibandDevice>> read_infiniband(const std::string& sys) {
  const std::string root = sys + "/class/infiniband";
  auto names = list_directory(root);
  if (!names) {
    const auto code = names.error().code;
    return fail(code == ErrorCode::kNotFound ? ErrorCode::kNoData : code, "{}",
                names.error().message);
  }
  std::vector<InfinibandDevice> devices;
  for (std::string& name : *names) {
    InfinibandDevice device;
    device.path = fmt::format("{}/{}", root, name);
    device.name = std::move(name);
    if (!is_directory(device.path)) {
      continue;
    }
    auto firmware = read_file(device.path + "/fw_ver", kMaxValueSize);
    if (firmware) {
      device.firmware = trim(*firmware);
    } else {
      device.problems.push_back(std::move(firmware).error());
    }
    device.board_id = attribute(device.path + "/board_id").value_or("");
    device.hca_type = attribute(device.path + "/hca_type").value_or("");
    read_ports(device);
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace ceems::host
