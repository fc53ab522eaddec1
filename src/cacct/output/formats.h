#pragma once

#include <string>
#include <vector>

#include "cacct/output/answer.h"
#include "cacct/output/fields.h"
#include "cacct/output/table.h"

namespace ceems::cacct {

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
