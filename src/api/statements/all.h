#pragma once

#include <span>
#include <string_view>

#include "api/statements/inputs.h"
#include "statement/document.h"

namespace ceems::api {

/// A kind of report: how it is known on the command line, and what it adds to a document. The table
/// in docs/report-your-year.md has a row for each.
struct StatementSpec {
  std::string_view name;   ///< "ghg"
  std::string_view title;  ///< "Greenhouse gas inventory"
  std::string_view help;   ///< one clause, without a full stop
  void (*fill)(const StatementInputs& inputs, statement::Document& document);
};

// Each is one source, one line here, from which the build makes statements(), and one row in
// docs/report-your-year.md.
StatementSpec year_statement();
StatementSpec month_statement();
StatementSpec ghg_statement();
StatementSpec eed_statement();
StatementSpec sci_statement();
StatementSpec green_disc_statement();

/// All reports, in the order of the documentation.
std::span<const StatementSpec> statements();
/// nullptr if there is none of this name.
const StatementSpec* find_statement(std::string_view name);

/// Reads the inputs and makes the document. kInvalidArgument if the period is of the wrong kind or
/// has not begun. Passes on errors of the reader.
Result<statement::Document> make_statement(const StatementSpec& spec,
                                           const StatementContext& context,
                                           std::string_view period);

}  // namespace ceems::api
