#include "cacct/output/quantity.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace ceems::cacct {
namespace {

/// A unit of measurement and how many basic ones it is, from small to large.
struct Measure {
  double size;
  std::string_view name;
};
constexpr std::array<Measure, 5> kEnergy{
    {{1e-6, "mWh"}, {1e-3, "Wh"}, {1, "kWh"}, {1e3, "MWh"}, {1e6, "GWh"}}};
constexpr std::array<Measure, 4> kEmissions{{{1e-3, "mg"}, {1, "g"}, {1e3, "kg"}, {1e6, "t"}}};
constexpr std::array<Measure, 5> kBytes{{{1, "B"},
                                         {1024, "KiB"},
                                         {1024.0 * 1024, "MiB"},
                                         {1024.0 * 1024 * 1024, "GiB"},
                                         {1024.0 * 1024 * 1024 * 1024, "TiB"}}};
constexpr std::array<Measure, 4> kPower{{{1, "W"}, {1e3, "kW"}, {1e6, "MW"}, {1e9, "GW"}}};

/// Three significant digits, without an exponent.
template <std::size_t kCount>
std::string fit(double value, const std::array<Measure, kCount>& measures) {
  const Measure* best = &measures.front();
  for (const Measure& measure : measures) {
    // 999.5 would be rounded to 1000.
    best = std::abs(value) >= measure.size * 0.9995 ? &measure : best;
  }
  const double scaled = value / best->size;
  const double size = std::abs(scaled);
  const int decimals = value == 0 || size >= 99.95 ? 0 : (size >= 9.995 ? 1 : 2);
  return fmt::format("{:.{}f} {}", scaled, decimals, best->name);
}

}  // namespace

std::string energy_text(double kwh) {
  return fit(kwh, kEnergy);
}

std::string emissions_text(double grams) {
  return fit(grams, kEmissions);
}

std::string bytes_text(double bytes) {
  return fit(bytes, kBytes);
}

std::string power_text(double watts) {
  return fit(watts, kPower);
}

std::string percent_text(double percent) {
  return fmt::format("{:.0f}%", percent);
}

}  // namespace ceems::cacct
