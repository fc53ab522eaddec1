#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/strings.h"
#include "exporter/emissions/provider.h"

namespace ceems::exporter::emissions {
namespace {

constexpr std::string_view kHeading = "alpha_2;alpha_3;name;grams_per_kwh;year;source";
constexpr std::size_t kColumns = 6;

bool is_code(std::string_view text, std::size_t length) {
  return text.size() == length &&
         std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

struct Row {
  Factor factor;
  int year = 0;
};

std::optional<Row> parse_row(std::string_view line) {
  const auto columns = split(line, ';');
  if (columns.size() != kColumns || !is_code(columns[0], 2) || !is_code(columns[1], 3) ||
      columns[2].empty()) {
    return std::nullopt;
  }
  const auto grams = parse_double(columns[3]);
  const auto year = columns[4].empty() ? std::optional(0) : parse_int<int>(columns[4]);
  if (!grams || !std::isfinite(*grams) || *grams < 0 || !year || *year < 0) {
    return std::nullopt;
  }
  return Row{{std::string(columns[0]), std::string(columns[2]), *grams}, *year};
}

}  // namespace

Result<Factors> parse_country_table(std::string_view text) {
  std::map<std::string, Row, std::less<>> newest;
  bool heading = false;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = take_until(text, '\n');
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    if (!heading) {
      if (line != kHeading) {
        return fail(ErrorCode::kParse, "line {}: expected '{}'", number, kHeading);
      }
      heading = true;
      continue;
    }
    auto row = parse_row(line);
    if (!row) {
      return fail(ErrorCode::kParse, "line {}: expected '{}', got '{}'", number, kHeading,
                  printable(line));
    }
    const auto [known, added] = newest.try_emplace(row->factor.code, *row);
    if (!added && row->year >= known->second.year) {
      known->second = *std::move(row);
    }
  }
  if (!heading) {
    return fail(ErrorCode::kParse, "expected '{}', got an empty table", kHeading);
  }
  Factors factors;
  for (auto& [code, row] : newest) {
    factors.push_back(std::move(row.factor));
  }
  return factors;
}

Result<Factors> country_factors() {
  auto factors = parse_country_table(kEmissionFactorsCsv);
  if (factors) {
    std::erase_if(*factors, [](const Factor& factor) { return factor.grams_per_kwh <= 0; });
  }
  return factors;
}

}  // namespace ceems::exporter::emissions
