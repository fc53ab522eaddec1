#pragma once

#include <string_view>

#include "exporter/emissions/provider.h"

namespace ceems::exporter::emissions {

/// The unchanged text of data/emission-factors.csv, embedded by the build.
extern const std::string_view kEmissionFactorsCsv;

/// Parses that text: lines that start with "#" are comments, the first other line is the heading,
/// followed by rows "alpha_2;alpha_3;name;grams_per_kwh;year;source". If a country has several
/// rows, the one with the latest year counts; a row without a year is the oldest. The result is
/// sorted by alpha_2. kParse with the line number.
Result<Factors> parse_country_table(std::string_view text);

}  // namespace ceems::exporter::emissions
