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

// Output formats other than the box. The first three have the rows of the box: two lines of titles,
// the units, a line "Summary", and the footers; columns that are empty in all units are left out.

/// RFC 4180 with LF line ends. No text is a formula for a spreadsheet.
std::string to_csv(const Table& table);
/// A `table` element of class go-pretty-table, as in the reference.
std::string to_html(const Table& table);
/// A table of GitHub Flavored Markdown. Markup in texts is escaped.
std::string to_markdown(const Table& table);

/// One line for each unit, with '|' between fields and, if `header`, a line of names before. All
/// columns are there, whether empty or not; columns of a metric with several names are called
/// `label.name`. In texts, '|' and '\' have a '\' before them.
std::string to_parsable(const Table& table, bool header);

/// {"units":[...],"usage":[...]} in one line, with the members of the API server's answers that
/// belong to `fields`. Metrics are objects; nothing is rounded.
std::string to_json(const std::vector<Field>& fields,
                    const std::vector<Record>& units,
                    const std::vector<Record>& usage);

/// The table of --helpformat, sorted by name, and the time series that can be dumped.
std::string fields_help(std::span<const Field> fields, const std::vector<std::string>& series);

}  // namespace ceems::cacct
