#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/table.h"

namespace ceems::statement {

/// How a number is known.
enum class How : std::uint8_t {
  kMeasured,
  kDerived,   ///< computed from measured numbers
  kModelled,  ///< of a model, or an estimate
  kDeclared,  ///< stated by the site in its configuration
  kMissing,   ///< not known: the line has no value
};
std::string_view name_of(How how);

/// A factor that a value was multiplied by.
struct Factor {
  std::optional<double> value = {};
  std::string unit = {}, source = {}, date = {};
};

/// A line of the statement. A line without a value is a field that the form has and that is not
/// known; it is never left out.
struct Line {
  std::string id = {};       ///< unique in the document: "scope2_location"
  std::string section = {};  ///< lines of a section are next to each other
  std::string label = {};
  std::optional<double> value = {};
  std::string unit = {};
  How how = How::kMissing;
  std::string note = {};  ///< the method, or why there is no value
  /// How to compute the value from the tables of the appendix (docs/report-your-year.md, "For
  /// reviewers"): sum(table.column), line(id), numbers, + - * / and parentheses. Empty for what a
  /// site declares, and without a value.
  std::string formula = {};
  Factor factor = {};
  std::optional<double> coverage = {};  ///< share of the period that the value is of
};

/// Where numbers of the appendix are from.
struct Source {
  std::string what = {};    ///< "meter it: it.csv", "table usage_days"
  std::string detail = {};  ///< the query, or the file
  std::string sha256 = {};  ///< of the file, or of the table as CSV, in hexadecimal digits
};

/// A statement over a period, which all formats print alike. Texts may be of anybody: each format
/// escapes them.
struct Document {
  std::string kind = {};   ///< "ghg"
  std::string title = {};  ///< "Greenhouse gas inventory"
  std::string site = {};
  std::string period = {};              ///< "2026" or "2026-11"
  std::string from = {}, to = {};       ///< with offsets; the end is not included
  std::string written = {}, by = {};    ///< when, and by which program and version
  std::vector<std::string> notes = {};  ///< what holds for all lines
  std::vector<Line> lines = {};
  std::vector<report::Table> appendix = {};
  std::vector<Source> sources = {};

  /// Adds a line. Its numbers are rounded as all are.
  void add(Line line);
  /// Adds a table to the appendix, with rounded numbers, and its hash to the sources.
  void add_table(report::Table table, std::string detail);
};

/// A number as statements have it: 12 significant digits, which all formats can print.
double rounded(double value);
/// The shortest text of it, as in JSON.
std::string number_text(double value);

enum class Format : std::uint8_t { kMarkdown, kCsv, kJson, kXlsx, kHtml };
/// "md", "csv", "json", "xlsx", "html"; nothing for other names.
std::optional<Format> find_format(std::string_view name);

/// The document in a format. Passes on errors of report::to_xlsx(); the other formats do not fail.
Result<std::string> render(const Document& document, Format format);

// The formats.
std::string to_markdown(const Document& document);
std::string to_csv(const Document& document);
std::string to_json(const Document& document);
Result<std::string> to_xlsx(const Document& document);
/// A page without scripts and with tables that screen readers can follow, from which a browser
/// prints a PDF.
std::string to_html(const Document& document);

}  // namespace ceems::statement
