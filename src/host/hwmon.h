#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

enum class HwmonType { kPower, kEnergy };
enum class HwmonProperty { kInput, kAverage, kInputLowest, kInputHighest };

/// What the name of a sensor file says: "power1_average" is power, 1, average.
struct HwmonFile {
  HwmonType type = HwmonType::kPower;
  int number = 0;
  HwmonProperty property = HwmonProperty::kInput;

  bool operator==(const HwmonFile&) const = default;
};
/// Nothing for files of other types and properties (Documentation/hwmon/sysfs-interface.rst).
std::optional<HwmonFile> parse_hwmon_file(std::string_view name);

/// Text for the labels `chip` and `chip_name`: lower case, everything outside a-z 0-9 : _ replaced
/// by
/// "_", no "_" at the ends.
std::string clean_hwmon_name(std::string_view text);

/// One readable value of a chip.
struct HwmonSensor {
  std::string chip;       ///< from the device link, else the name, else the directory
  std::string chip_name;  ///< cleaned content of `name`, may be empty
  std::string sensor;     ///< type and number: "power1", "energy2"
  std::string label;      ///< content of powerN_label, empty where absent
  HwmonFile file;
  std::string path;  ///< of the file that holds the value
};

/// Power and energy sensors of all chips below <sys>/class/hwmon, in directory order; the chip's
/// own files come before those of its `device` directory. kNoData: the class directory is absent or
/// no chip has such a sensor; kPermissionDenied.
Result<std::vector<HwmonSensor>> find_hwmon_sensors(const std::string& sys);

/// Reads a value in the file's unit (microwatts, microjoules) with one bare read: broken drivers
/// answer EAGAIN, and a reader that tries again would spin for ever. Errors as for a file, kParse.
Result<std::int64_t> read_hwmon_value(const std::string& path);

}  // namespace ceems::host
