#pragma once

#include <string_view>

#include "exporter/emissions/provider.h"

namespace ceems::exporter::emissions {

/// data/emission-factors.csv as it is.
std::string_view country_table_text();

/// Reads that form: lines of "#" are comments, the first other line is the heading, then
/// "alpha_2;alpha_3;name;grams_per_kwh;year;source". Of several rows for a country the one with the
/// newest year counts, a row without a year being the oldest. By alpha_2. kParse with the line
/// number.
Result<Factors> parse_country_table(std::string_view text);

}  // namespace ceems::exporter::emissions
