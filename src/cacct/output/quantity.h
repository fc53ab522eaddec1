#pragma once

#include <string>

namespace ceems::cacct {

// Quantities with the unit that fits, in three significant digits: "4.95 kWh", "1.50 kg".

std::string energy_text(double kwh);
std::string emissions_text(double grams);
std::string bytes_text(double bytes);
std::string power_text(double watts);
/// "46%"
std::string percent_text(double percent);

}  // namespace ceems::cacct
