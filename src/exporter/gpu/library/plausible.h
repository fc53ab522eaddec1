#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/strings.h"

// Libraries may return anything. These functions drop what cannot be true.
namespace ceems::exporter::gpu {

inline constexpr std::size_t kMaxDevices = 256;
inline constexpr std::size_t kMaxInstances = 64;  ///< of one GPU
inline constexpr std::size_t kMaxProcesses = 16384;
inline constexpr double kMaxWatts = 100'000;
inline constexpr double kMaxCelsius = 500;
inline constexpr double kMaxBytes = 1e15;
inline constexpr double kMaxHertz = 1e12;

/// The value if it is within 0...max.
inline std::optional<double> within(double value, double max) {
  return value >= 0 && value <= max ? std::optional(value) : std::nullopt;
}

/// Converts percent to a fraction. Values slightly above 100 are rounding errors.
inline std::optional<double> from_percent(double percent) {
  return percent >= 0 && percent <= 110 ? std::optional(std::min(percent / 100, 1.0))
                                        : std::nullopt;
}

/// Text in a buffer of a library, which need not end with NUL.
inline std::string text_of(const char* buffer, std::size_t size) {
  const std::string_view text(buffer, strnlen(buffer, size));
  return printable(trim(text), 256);
}

}  // namespace ceems::exporter::gpu
