#include "host/hwmon.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::host {
namespace {

constexpr std::string_view kEntry = "hwmon";  // of the class directory, before the index

/// The base name of the resolved path and, before it, that of its parent; empty on failure.
std::pair<std::string, std::string> resolved_names(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  if (error) {
    return {};
  }
  return {real.parent_path().filename().string(), real.filename().string()};
}

/// The label of the chip; nothing if no part of it has a usable name.
std::optional<std::string> chip_label(const std::string& path, const std::string& chip_name) {
  const auto [parent, device] = resolved_names(path + "/device");
  const std::string clean_device = clean_hwmon_name(device);
  if (!clean_device.empty()) {
    const std::string clean_parent = clean_hwmon_name(parent);
    return clean_parent.empty() ? clean_device : clean_parent + "_" + clean_device;
  }
  std::string label = chip_name.empty() ? clean_hwmon_name(resolved_names(path).second) : chip_name;
  return label.empty() ? std::nullopt : std::optional(std::move(label));
}

/// Adds the sensors of one directory. `first_of_chip` is the index of the chip's first sensor:
/// legacy drivers show the same file in the chip's directory and in that of its device.
void add_sensors(const std::string& path,
                 const std::string& index,
                 const std::string& chip,
                 const std::string& chip_name,
                 std::size_t first_of_chip,
                 std::vector<HwmonSensor>& sensors) {
  const auto names = list_directory(path);
  if (!names) {
    return;
  }
  for (const std::string& name : *names) {
    const auto file = parse_hwmon_file(name);
    const auto known = std::ranges::subrange(
        sensors.begin() + static_cast<std::ptrdiff_t>(first_of_chip), sensors.end());
    if (!file || std::ranges::find(known, *file, &HwmonSensor::file) != known.end()) {
      continue;
    }
    const std::string sensor =
        (file->type == HwmonType::kPower ? "power" : "energy") + std::to_string(file->number);
    const auto label = read_file(fmt::format("{}/{}_label", path, sensor), kMaxValueSize);
    sensors.push_back({index, chip, chip_name, sensor,
                       label ? printable(trim(*label)) : std::string(), *file,
                       fmt::format("{}/{}", path, name)});
  }
}

}  // namespace

std::optional<HwmonFile> parse_hwmon_file(std::string_view name) {
  using Property = std::pair<std::string_view, HwmonProperty>;
  static constexpr std::array properties{Property{"input", HwmonProperty::kInput},
                                         Property{"average", HwmonProperty::kAverage},
                                         Property{"input_lowest", HwmonProperty::kInputLowest},
                                         Property{"input_highest", HwmonProperty::kInputHighest}};
  HwmonFile file;
  if (name.starts_with("power")) {
    name.remove_prefix(5);
  } else if (name.starts_with("energy")) {
    file.type = HwmonType::kEnergy;
    name.remove_prefix(6);
  } else {
    return std::nullopt;
  }
  const std::string_view digits = take_until(name, '_');
  if (!digits.empty()) {
    const auto number = parse_int<int>(digits);
    if (!number || *number < 0) {
      return std::nullopt;
    }
    file.number = *number;
  }
  const auto property = std::ranges::find(properties, name, &Property::first);
  if (property == properties.end()) {
    return std::nullopt;
  }
  file.property = property->second;
  return file;
}

std::string clean_hwmon_name(std::string_view text) {
  std::string clean = to_lower(trim(text));
  std::ranges::replace_if(
      clean, [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ':'); },
      '_');
  const auto first = clean.find_first_not_of('_');
  if (first == std::string::npos) {
    return {};
  }
  return clean.substr(first, clean.find_last_not_of('_') - first + 1);
}

Result<std::vector<HwmonSensor>> find_hwmon_sensors(const std::string& sys) {
  const std::string root = sys + "/class/hwmon";
  auto entries = list_directory(root);
  if (!entries) {
    const auto code = entries.error().code;
    return fail(code == ErrorCode::kNotFound ? ErrorCode::kNoData : code, "{}",
                entries.error().message);
  }
  std::vector<HwmonSensor> sensors;
  for (const std::string& entry : *entries) {
    const std::string path = fmt::format("{}/{}", root, entry);
    if (!is_directory(path)) {
      continue;
    }
    const auto name = read_file(path + "/name", kMaxValueSize);
    const std::string chip_name = name ? clean_hwmon_name(*name) : std::string();
    if (const auto chip = chip_label(path, chip_name)) {
      const std::size_t first = sensors.size();
      const std::string index = entry.starts_with(kEntry) ? entry.substr(kEntry.size()) : entry;
      add_sensors(path, index, *chip, chip_name, first, sensors);
      add_sensors(path + "/device", index, *chip, chip_name, first, sensors);
    }
  }
  if (sensors.empty()) {
    return fail(ErrorCode::kNoData, "no chip in {} has a power or energy sensor", root);
  }
  return sensors;
}

Result<std::int64_t> read_hwmon_value(const std::string& path) {
  CEEMS_TRY(fd, open_file(path.c_str()));
  std::array<char, kMaxValueSize> text{};
  const ssize_t count = ::read(fd.get(), text.data(), text.size());
  if (count < 0) {
    return fail(errno_error(errno, "read " + path));
  }
  const std::string_view word = trim({text.data(), static_cast<std::size_t>(count)});
  const auto value = parse_int<std::int64_t>(word);
  if (!value) {
    return fail(ErrorCode::kParse, "{}: expected a number, got '{}'", path, printable(word));
  }
  return *value;
}

}  // namespace ceems::host
