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

/// The parts of a sensor's file name: "power1_average" is power, 1, average.
struct HwmonFile {
  HwmonType type = HwmonType::kPower;
  int number = 0;
  HwmonProperty property = HwmonProperty::kInput;

  bool operator==(const HwmonFile&) const = default;
};
/// Nothing for other types and properties (Documentation/hwmon/sysfs-interface.rst in Linux).
std::optional<HwmonFile> parse_hwmon_file(std::string_view name);

/// Makes text for the labels `chip` and `chip_name`: converts it to lower case, replaces everything
/// but a-z 0-9 : _ with "_", and removes "_" from both ends.
std::string clean_hwmon_name(std::string_view text);

/// One readable sensor of a chip.
struct HwmonSensor {
  std::string index;      ///< N of the directory hwmonN
  std::string chip;       ///< from the device link, else the name, else the directory
  std::string chip_name;  ///< cleaned content of `name`, may be empty
  std::string sensor;     ///< type and number: "power1", "energy2"
  std::string label;      ///< content of powerN_label; empty if missing
  HwmonFile file;
  std::string path;  ///< the file that contains the value
};

/// The power and energy sensors of all chips below <sys>/class/hwmon, in directory order. A chip's
/// own files come before the files of its `device` directory. kNoData: the class directory does not
/// exist or no chip has such a sensor; kPermissionDenied.
Result<std::vector<HwmonSensor>> find_hwmon_sensors(const std::string& sys);

/// Reads a value in the unit of the file (microwatts, microjoules) with a single read(2): broken
/// drivers return EAGAIN, and a reader that retries would never end. Errors: any of read_file(),
/// and kParse.
Result<std::int64_t> read_hwmon_value(const std::string& path);

}  // namespace ceems::host
