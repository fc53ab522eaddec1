#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/table.h"
#include "statement/document.h"

namespace ceems::statement {

// What the formats of texts and tables share.

/// The lines as a table with all that is known of them. JSON has the same members.
report::Table table_of_lines(const Document& document);
/// The sources as a table.
report::Table table_of_sources(const Document& document);
/// What stands above the lines: a name and a text.
report::Notes head_of(const Document& document);
/// A cell as text. An empty one is "", a number has its digits.
std::string cell_text(const report::Cell& cell);

}  // namespace ceems::statement
