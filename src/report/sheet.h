#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advice/catalogue.h"
#include "report/report.h"

namespace ceems::report {

/// A bar: how much of a resource was used.
struct Bar {
  std::string label = {};
  std::optional<double> share = {};  ///< nothing: not measured
  std::string value = {}, usual = {}, remark = {};
};
struct Line {
  std::string label = {}, value = {};
};
struct Suggestion {
  std::string text = {}, confidence = {}, saves = {};
  std::vector<advice::Line> lines = {};  ///< to type; `was` with the word for it in front, or empty
};

/// A report, or a digest of a month, in words: what the text, Markdown and HTML forms lay out. All
/// texts are plain and untrusted: each form escapes them.
struct Sheet {
  std::string title;               ///< "Job 4711"
  std::vector<std::string> about;  ///< name, owner, state, place
  std::vector<std::string> when;   ///< start, duration, wait
  std::string partly;              ///< why there is no advice; empty if there may be
  std::string used_title, usual_title;
  std::vector<Bar> bars;
  std::vector<std::string> node_columns;
  std::vector<std::vector<std::string>> nodes;
  std::string phase_title;
  std::vector<std::string> phase_columns;
  std::vector<std::vector<std::string>> phases;
  std::string result_title;
  std::vector<Line> results;
  std::string cost_title, cost_remark;
  std::vector<Line> costs;
  std::string advice_title, nothing;
  std::vector<Suggestion> suggestions;
  std::string more;  ///< how many are left out
  std::string help;
};

/// Writes a rounded report in the language of the view.
Sheet sheet_of(const Report& report, const View& view);

/// The ID of the job and, if that is another one, the ID that SLURM shows: "7101 (7100_4)".
std::string shown_id(const Report& report);

// The forms of a sheet. Parts that are empty are left out.
std::string text_form(Sheet sheet, const View& view);
std::string markdown_form(const Sheet& sheet);
/// As to_html().
std::string html_form(const Sheet& sheet, const View& view);

// Numbers as all forms show them. `words` gives the decimal separator.
std::string percent_text(double share, const advice::Catalogue& words);
std::string energy_text(double kwh, const advice::Catalogue& words);
std::string joules_text(double joules, const advice::Catalogue& words);
std::string grams_text(double grams, const advice::Catalogue& words);
/// The amount must be known.
std::string money_text(const Cost& cost, const advice::Catalogue& words);
std::string bytes_text(double bytes, const advice::Catalogue& words);
std::string duration_text(double seconds, const advice::Catalogue& words);
/// Without a unit, to three significant digits or whole.
std::string number_text(double number, const advice::Catalogue& words);

/// The lines of a finding for a sheet.
std::vector<advice::Line> lines_in(const advice::Finding& finding, const advice::Catalogue& words);

/// The text of a finding in a language, otherwise in English.
const std::string& text_in(const advice::Finding& finding, std::string_view language);

}  // namespace ceems::report
