#include "mail/letter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "advice/catalogue.h"
#include "base/text/html.h"
#include "report/plain_text.h"
#include "report/rounding.h"
#include "report/sheet.h"

namespace ceems::mail {
namespace {

constexpr std::size_t kTextWidth = 78;
constexpr std::size_t kMaxShownRules = 3;

void add_link(const std::string& label,
              const std::string& url,
              std::string& text,
              std::string& html) {
  text += fmt::format("{} {}\n", label, url);
  html += fmt::format("<p>{} <a href=\"{}\">{}</a></p>\n", escape_html(label), escape_html(url),
                      escape_html(url));
}

/// Inserts after, or before, the first place of a mark in a page of ours, whose texts are escaped,
/// so that they cannot hold the mark.
void insert(std::string& page, std::string_view mark, const std::string& html, bool after) {
  const std::size_t found = page.find(mark);
  if (found != std::string::npos) {
    page.insert(found + (after ? mark.size() : 0), html);
  }
}

/// A whole page of ours; `body` is HTML.
std::string html_page(std::string_view language, std::string_view title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta "
      "charset=\"utf-8\">\n<title>{}</title>\n"
      "</head>\n<body>\n{}</body>\n</html>\n",
      language, escape_html(report::plain_text(std::string(title))), body);
}

/// An amount of a budget, to three significant digits.
std::string amount_text(const PassedBudget& budget, double value, const advice::Catalogue& words) {
  constexpr int kDigits = 3;
  constexpr double kGramsOfKg = 1000;
  switch (budget.unit) {
    case PassedBudget::Unit::kKwh:
      return report::energy_text(report::significant(value, kDigits), words);
    case PassedBudget::Unit::kKgCo2:
      return report::grams_text(report::significant(value * kGramsOfKg, kDigits), words) + " CO2e";
    case PassedBudget::Unit::kCost:
      break;
  }
  return report::money_text({.amount = value, .currency = budget.currency}, words);
}

class Writer {
 public:
  Writer(const JobNames& job, const report::Report* report, const LetterOptions& options)
      : job_(job), options_(options), words_(advice::catalogue(options.language)) {
    if (report != nullptr) {
      report_ = *report;
      std::erase_if(report_->findings, [&](const advice::Finding& finding) {
        return std::ranges::find(options.muted, finding.rule) != options.muted.end();
      });
    }
  }

  Letter about_job(bool final) {
    letter_.subject = fmt::format("{} {} {} {}: {}", job_.cluster, word("mail.job"), job_.id,
                                  job_.name, job_.state);
    if (report_ && report_->energy.kwh) {
      letter_.subject += ", " + report::energy_text(*report_->energy.kwh, words_);
    }
    add_count_of_suggestions();
    if (!report_) {
      paragraph(fmt::format("{} {} {}: {}", word("mail.job"), job_.id, job_.name, job_.state));
      paragraph(word("mail.unknown"));
    } else if (!final) {
      paragraph(word("mail.incomplete"));
    }
    return finish();
  }

  Letter about_array(const ArraySums& sums) {
    std::size_t tasks = 0;
    std::string states;
    for (const auto& [state, count] : sums.states) {
      tasks += count;
      states += fmt::format("{}{} {}", states.empty() ? "" : ", ", count, state);
    }
    const bool het = job_.heterogeneous;
    const std::string what = word(het ? "mail.het" : "mail.array");
    const std::string parts = word(het ? "mail.parts" : "mail.tasks");
    std::string summary =
        fmt::format("{} {} {}: {} {} ({})", what, job_.array, job_.name, tasks, parts, states);
    letter_.subject = fmt::format("{} {}", job_.cluster, summary);
    if (sums.kwh) {
      const std::string energy = report::energy_text(*sums.kwh, words_);
      letter_.subject += ", " + energy;
      summary +=
          fmt::format("\n{}: {} ({} / {} {})", word("energy"), energy, sums.known, tasks, parts);
    }
    add_count_of_suggestions();
    paragraph(summary);
    paragraph(word(!report_ ? "mail.unknown" : het ? "mail.part_example" : "mail.example"));
    return finish();
  }

 private:
  [[nodiscard]] std::string word(std::string_view key) const {
    return std::string(words_.word(key));
  }

  void add_count_of_suggestions() {
    if (!report_) {
      return;
    }
    std::size_t count = 0;
    for (const advice::Finding& finding : report_->findings) {
      if (finding.severity != advice::Severity::kGood) {
        count += 1;
        letter_.rules.push_back(finding.rule);
      }
    }
    if (count > 0) {
      letter_.subject +=
          fmt::format(", {} {}", count, word(count == 1 ? "mail.suggestion" : "mail.suggestions"));
    }
  }

  /// Adds lines to both forms, before the report.
  void paragraph(const std::string& text) {
    std::string escaped;
    std::string plain;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = report::plain_text(text.substr(begin, end - begin));
      plain += line + "\n";
      escaped += (escaped.empty() ? "" : "<br>") + escape_html(line);
      begin = end + 1;
    }
    before_text_ += plain + "\n";
    before_html_ += "<p>" + escaped + "</p>\n";
  }

  void link(const std::string& label, const std::string& url) {
    add_link(label, url, after_text_, after_html_);
  }

  Letter finish() {
    after_text_ = "\n-- \n" + word("mail.asked") + "\n";
    after_html_ = "<p>" + escape_html(word("mail.asked")) + "</p>\n";
    if (options_.mute_url) {
      for (std::size_t i = 0; i < letter_.rules.size() && i < kMaxShownRules; ++i) {
        if (const auto url = options_.mute_url(job_.user, letter_.rules[i]); !url.empty()) {
          link(fmt::format("{} ({}):", word("mail.mute"), letter_.rules[i]), url);
        }
      }
      if (const auto url = options_.mute_url(job_.user, std::string(kAllMails)); !url.empty()) {
        link(word("mail.stop"), url);
      }
    }
    if (report_) {
      const report::View view{
          .language = words_.language, .width = kTextWidth, .help_url = options_.help_url};
      letter_.text = before_text_ + report::to_text(*report_, view) + after_text_;
      std::string page = report::to_html(*report_, view);
      insert(page, "<main>\n", before_html_, true);
      insert(page, "</main>", after_html_, false);
      letter_.html = std::move(page);
    } else {
      letter_.text = before_text_ + after_text_;
      letter_.html = html_page(words_.language, letter_.subject, before_html_ + after_html_);
    }
    return std::move(letter_);
  }

  const JobNames& job_;
  const LetterOptions& options_;
  const advice::Catalogue& words_;
  std::optional<report::Report> report_;
  Letter letter_;
  std::string before_text_, before_html_, after_text_, after_html_;
};

}  // namespace

Letter job_letter(const JobNames& job,
                  const report::Report* report,
                  bool final,
                  const LetterOptions& options) {
  return Writer(job, report, options).about_job(final);
}

Letter array_letter(const JobNames& job,
                    const ArraySums& sums,
                    const report::Report* example,
                    const LetterOptions& options) {
  return Writer(job, example, options).about_array(sums);
}

Letter month_letter(const std::string& user,
                    const report::Digest& digest,
                    const LetterOptions& options) {
  const advice::Catalogue& words = advice::catalogue(options.language);
  const auto word = [&words](std::string_view key) { return std::string(words.word(key)); };
  Letter letter;
  letter.subject = fmt::format("{} {}", word("digest.title"), digest.months.front().month);
  if (const auto& kwh = digest.months.front().kwh) {
    letter.subject += ": " + report::energy_text(*kwh, words);
  }
  const std::size_t count = std::min(digest.suggestions.size(), kMaxShownRules);
  if (count > 0) {
    letter.subject +=
        fmt::format(", {} {}", count, word(count == 1 ? "mail.suggestion" : "mail.suggestions"));
  }
  std::string text = "\n-- \n" + word("mail.month_why") + "\n";
  std::string html = "<p>" + escape_html(word("mail.month_why")) + "</p>\n";
  const auto link = [&](const std::string& label, std::string_view rule) {
    const auto url = options.mute_url ? options.mute_url(user, std::string(rule)) : std::string();
    if (!url.empty()) {
      add_link(label, url, text, html);
    }
  };
  for (std::size_t i = 0; i < count; ++i) {
    letter.rules.push_back(digest.suggestions[i].finding.rule);
    link(fmt::format("{} ({}):", word("mail.mute"), letter.rules.back()), letter.rules.back());
  }
  link(word("mail.month_stop"), kMonthlyDigest);
  const report::View view{
      .language = words.language, .width = kTextWidth, .help_url = options.help_url};
  letter.text = report::to_text(digest, view) + text;
  letter.html = report::to_html(digest, view);
  insert(letter.html, "</main>", html, false);
  return letter;
}

Letter budget_letter(const std::string& lead,
                     const PassedBudget& budget,
                     const LetterOptions& options) {
  const advice::Catalogue& words = advice::catalogue(options.language);
  const auto word = [&words](std::string_view key) { return std::string(words.word(key)); };
  const auto percent = [&words](double share) {
    return report::percent_text(report::rounded_share(share), words);
  };
  const std::string project = report::plain_text(budget.project);
  const std::string where =
      budget.cluster.empty() ? word("mail.budget_together") : report::plain_text(budget.cluster);
  Letter letter;
  letter.subject = fmt::format("{} {} ({}), {}: {} {}", word("mail.budget"), project, where,
                               budget.period, percent(budget.share), word("mail.budget_passed"));
  const std::vector<std::pair<std::string, std::string>> lines{
      {word("mail.budget"), amount_text(budget, budget.amount, words)},
      {word("mail.budget_used"), fmt::format("{} ({})", amount_text(budget, budget.used, words),
                                             percent(budget.used / budget.amount))},
      {word("mail.budget_forecast"),
       fmt::format("{} – {}", amount_text(budget, budget.forecast_low, words),
                   amount_text(budget, budget.forecast_high, words))}};
  std::string html = fmt::format("<h1>{}</h1>\n<table>\n", escape_html(letter.subject));
  letter.text = letter.subject + "\n\n";
  for (const auto& [label, value] : lines) {
    letter.text += fmt::format("{}: {}\n", label, value);
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape_html(label),
                        escape_html(value));
  }
  html += "</table>\n";
  for (const std::string& text : {word("mail.budget_stops"), word("mail.budget_why")}) {
    letter.text += "\n" + text + "\n";
    html += "<p>" + escape_html(text) + "</p>\n";
  }
  const auto url =
      options.mute_url ? options.mute_url(lead, std::string(kBudgetWarnings)) : std::string();
  if (!url.empty()) {
    add_link(word("mail.month_stop"), url, letter.text, html);
  }
  if (!options.help_url.empty()) {
    letter.text += fmt::format("{} {}\n", word("help"), options.help_url);
    html += fmt::format("<p>{} {}</p>\n", escape_html(word("help")), escape_html(options.help_url));
  }
  letter.html = html_page(words.language, letter.subject, html);
  return letter;
}

}  // namespace ceems::mail
