#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace ceems::report {

/// A date, as the day that it names in the calendar (1 is the first of the month).
struct Date {
  int year = 0;
  unsigned month = 0, day = 0;
};

/// What stands in a cell: nothing (not known), a text that anybody may have written, a number, or a
/// date.
using Cell = std::variant<std::monostate, std::string, double, Date>;
/// Nothing if the number is not known.
inline Cell cell_of(const std::optional<double>& number) {
  return number ? Cell(*number) : Cell();
}

/// A table for other programs. Each row has as many cells as there are columns.
struct Table {
  std::string name = {};  ///< of its sheet; at most 31 characters, none of []:*?/\ .
  std::vector<std::string> columns = {};  ///< with the unit in the name, such as "energy (kWh)"
  std::vector<std::vector<Cell>> rows = {};
};

/// The table as CSV (RFC 4180). Numbers have the shortest digits that give the same value, and
/// texts are escaped by csv_cell(), so no spreadsheet takes them for a formula.
std::string to_csv(const Table& table);

/// Lines below one another: a subject and what is to be said of it.
using Notes = std::vector<std::pair<std::string, std::string>>;

/// A workbook of Office Open XML (ECMA-376) with a sheet of the table, whose head stays in sight,
/// and a sheet "Notes". Numbers and dates have cells of their kind, and texts are never formulas.
/// kUnavailable if there is no room for temporary files. Safe for concurrent use.
Result<std::string> to_xlsx(const Table& table, const Notes& notes);
/// The same with a sheet for each table. Their names differ.
Result<std::string> to_xlsx(std::span<const Table> tables, const Notes& notes);

}  // namespace ceems::report
