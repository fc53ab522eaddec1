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

/// Whether there is such a report of a year, and of a month.
bool is_of_years(const StatementSpec& spec);
bool is_of_months(const StatementSpec& spec);

/// The period of a report. kInvalidArgument with a text for people if the report has no such period
/// or if it has not begun.
Result<StatementPeriod> statement_period(const StatementSpec& spec,
                                         std::string_view name,
                                         const TimeZone& zone,
                                         std::int64_t now_ms);

/// Reads the inputs and makes the document. Passes on errors of the reader.
Result<statement::Document> make_statement(const StatementSpec& spec,
                                           const StatementContext& context,
                                           const StatementPeriod& period);

}  // namespace ceems::api
