#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::emissions {

/// Readers of what emission services answer. Errors are kParse and say what was expected; numbers
/// may be integers or fractions and have to be finite.

/// A zone of Electricity Maps: key and label (country name and zone name, whichever exist).
using Zone = std::pair<std::string, std::string>;
/// An object of zones by key; members of other kinds are ignored. More than 2000 zones are refused.
Result<std::vector<Zone>> parse_emaps_zones(std::string_view text);
/// The member `carbonIntensity`, grams per kWh.
Result<double> parse_emaps_intensity(std::string_view text);

/// `taux_co2` of the first of `results`, grams per kWh.
Result<double> parse_rte_intensity(std::string_view text);

/// The member `token`, not empty; must be fit for an HTTP header.
Result<std::string> parse_watttime_token(std::string_view text);
/// `value` of the last of `data` in grams per kWh; the service gives pounds per MWh. kNoData with
/// the service's warnings where `data` is empty.
Result<double> parse_watttime_intensity(std::string_view text);

}  // namespace ceems::exporter::emissions
