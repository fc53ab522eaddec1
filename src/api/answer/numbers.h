#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/time/time_zone.h"
#include "store/facts.h"

namespace ceems::api {

// Numbers and cells of lists and sums. Pure functions.

/// The number with this many significant digits.
double rounded(double value, int digits);

/// What a stored number stands for: kWh, grams, percent, bytes. Nothing if it is not known. Rounded
/// where it was measured.
std::optional<double> value_of(store::FactKind kind, std::int64_t stored);

/// One value of a row, from a text or a number of the table.
void append_json_cell(JsonWriter& json,
                      store::FactKind kind,
                      std::string_view text,
                      std::int64_t number);
/// The same for CSV, with times in the zone.
void append_csv_cell(std::string& out,
                     store::FactKind kind,
                     std::string_view text,
                     std::int64_t number,
                     const TimeZone& zone);

/// A number that may be unknown: null.
void append_number(JsonWriter& json, std::optional<double> value);

}  // namespace ceems::api
