#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

// What a fake library of a GPU vendor plays: a text file with one "key value" on each line, read
// anew at every call, so that a test changes it while the library is in use. The variable
// CEEMS_FAKE_GPU names the file.
//
//   count 2                             number of devices
//   0.power 75000                       a value of device 0, in the library's unit
//   nvmlDeviceGetPowerUsage 999         what this function answers, for all devices
//   0.nvmlDeviceGetPowerUsage 3         the same for device 0 alone
//   hang nvmlDeviceGetPowerUsage        this function does not return while the line is there, and
//                                       the file exists with ".hangs" added to its name
//
// A value that is not in the file is not supported by the device.
namespace fake_gpu {

class Scenario {
 public:
  Scenario() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): set before the library is loaded
    const char* path = std::getenv("CEEMS_FAKE_GPU");
    std::ifstream file(path == nullptr ? "" : path);
    for (std::string line; std::getline(file, line);) {
      const auto blank = line.find(' ');
      if (blank != std::string::npos) {
        values_[line.substr(0, blank)] = line.substr(blank + 1);
      }
    }
  }

  [[nodiscard]] std::optional<std::string> text(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::optional<double> number(const std::string& key) const {
    const auto value = text(key);
    return value ? std::optional(std::strtod(value->c_str(), nullptr)) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint64_t> whole(const std::string& key) const {
    const auto value = text(key);
    return value ? std::optional(std::uint64_t{std::strtoull(value->c_str(), nullptr, 10)})
                 : std::nullopt;
  }

 private:
  std::map<std::string, std::string> values_;
};

/// The scenario now, after a hang is over; with it what `function` answers: 0 unless it says else.
struct Call {
  Scenario scenario;
  int answer = 0;

  explicit Call(const std::string& function, const std::string& device = {}) {
    while (scenario.text("hang") == function) {
      // NOLINTNEXTLINE(concurrency-mt-unsafe): set before the library is loaded
      const std::ofstream mark(std::getenv("CEEMS_FAKE_GPU") + std::string(".hangs"));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      scenario = Scenario();
    }
    auto code = scenario.number(device + "." + function);
    if (!code) {
      code = scenario.number(function);
    }
    answer = static_cast<int>(code.value_or(0));
  }
};

/// Words of a list, "100:5 200:7".
inline std::map<std::uint64_t, std::uint64_t> pairs(const std::optional<std::string>& text) {
  std::map<std::uint64_t, std::uint64_t> result;
  std::istringstream words(text.value_or(""));
  for (std::string word; words >> word;) {
    char* rest = nullptr;
    const std::uint64_t first = std::strtoull(word.c_str(), &rest, 10);
    result[first] = *rest == ':' ? std::strtoull(rest + 1, nullptr, 10) : 0;
  }
  return result;
}

/// Fills a text buffer of a library. "!garbage": no NUL and no UTF-8.
inline void put(const std::string& value, char* buffer, std::size_t size) {
  if (value == "!garbage") {
    for (std::size_t i = 0; i < size; ++i) {
      buffer[i] = '\xfe';
    }
    return;
  }
  const std::size_t length = std::min(value.size(), size - 1);
  value.copy(buffer, length);
  buffer[length] = '\0';
}

}  // namespace fake_gpu
