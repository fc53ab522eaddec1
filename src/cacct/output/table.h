#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cacct/output/answer.h"
#include "cacct/output/fields.h"

namespace ceems::cacct {

/// One column of a table. A field with several metrics of different names has a column for each.
struct Column {
  Field field;
  std::string key;    ///< of the metric; empty for texts
  std::string title;  ///< line 1 of the header
  std::string sub;    ///< line 2: the name of the metric, where there are several
};

/// What all output formats are made from. Each row has one cell for each column.
struct Table {
  using Row = std::vector<std::string>;

  std::vector<Column> columns;
  std::vector<Row> units;
  std::vector<Row> footers;  ///< the sums of a user in a project

  /// The same without the columns that are empty in all units. The first column stays.
  [[nodiscard]] Table without_empty_columns() const;
};

struct TableOptions {
  bool fitting_units = false;  ///< numbers with units that fit, such as "1.2 kWh"
  bool totals = false;         ///< one more footer, the sum of all footers
};

/// `fields` in the order of the columns.
Table make_table(const std::vector<Field>& fields,
                 const std::vector<Record>& units,
                 const std::vector<Record>& usage,
                 const TableOptions& options = {});

/// The sums of the units of each user and project, in this order; nothing if the server does not
/// say what averages are weighed with.
std::optional<std::vector<Record>> sums_of(const std::vector<Record>& units);

/// Sets the member `slurm_id` of tasks of arrays and of parts of heterogeneous jobs, from their
/// allocation: 7100_4, 8200+1.
void add_slurm_ids(std::vector<Record>& units);

/// A number with the unit that fits: watt hours, grams, bytes or seconds by the field.
std::string fitting_text(const Field& field, std::string_view key, double value);

}  // namespace ceems::cacct
