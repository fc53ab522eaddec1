// The digest of a month in words.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "advice/template.h"
#include "report/digest.h"
#include "report/plain_text.h"
#include "report/sheet.h"

namespace ceems::report {
namespace {

using advice::Catalogue;
using advice::Facts;

class DigestWriter {
 public:
  DigestWriter(const Digest& digest, const View& view)
      : digest_(digest), view_(view), words_(advice::catalogue(view.language)) {}

  Sheet write() {
    add_about();
    sheet_.cost_title = word("digest.compared");
    if (!digest_.band_only) {
      add_months();
      add_changes();
      add_improvement();
    }
    add_band();
    if (!digest_.band_only) {
      add_suggestions();
    }
    if (!view_.help_url.empty()) {
      sheet_.help = fmt::format("{} {}", word("help"), plain_text(view_.help_url));
    }
    return std::move(sheet_);
  }

 private:
  [[nodiscard]] std::string word(std::string_view key) const {
    return std::string(words_.word(key));
  }
  [[nodiscard]] std::string filled(std::string_view key, const Facts& values) const {
    return advice::fill(words_.word(key), values, words_.notation).value_or(std::string());
  }
  [[nodiscard]] const MonthOfUse& month() const { return digest_.months.front(); }

  void add_about() {
    sheet_.title = fmt::format("{} {}", word("digest.title"), month().month);
    sheet_.about.push_back(digest_.project.empty() ? plain_text(digest_.user)
                                                   : fmt::format("{} {}", word("digest.project"),
                                                                 plain_text(digest_.project)));
    std::string clusters;
    for (const std::string& cluster : digest_.clusters) {
      clusters += (clusters.empty() ? "" : ", ") + plain_text(cluster);
    }
    if (!clusters.empty()) {
      sheet_.about.push_back(std::move(clusters));
    }
    if (const auto& units = month().units; units && !digest_.band_only) {
      Facts values;
      values.set("n", *units);
      sheet_.about.push_back(filled("digest.units", values));
    }
    if (digest_.so_far) {
      sheet_.about.push_back(word("so_far"));
    }
  }

  void add_months() {
    const bool gpus = std::ranges::any_of(
        digest_.months, [](const MonthOfUse& month) { return month.gpu_hours > 0; });
    sheet_.used_title = word("digest.used");
    sheet_.node_columns = {word("digest.month"), word("digest.core_hours")};
    if (gpus) {
      sheet_.node_columns.push_back(word("digest.gpu_hours"));
    }
    sheet_.node_columns.insert(sheet_.node_columns.end(),
                               {word("energy"), word("co2"), word("column.note")});
    for (const MonthOfUse& month : digest_.months) {
      std::vector<std::string> row{month.month, number_text(month.core_hours, words_)};
      if (gpus) {
        row.push_back(number_text(month.gpu_hours, words_));
      }
      row.push_back(month.kwh ? energy_text(*month.kwh, words_) : "–");
      row.push_back(month.grams ? grams_text(*month.grams, words_) : "–");
      std::string note = month.kwh ? "" : word("not_measured");
      if (digest_.so_far && &month == &digest_.months.front()) {
        note += (note.empty() ? "" : ", ") + word("so_far");
      }
      row.push_back(std::move(note));
      sheet_.nodes.push_back(std::move(row));
    }
    sheet_.cost_remark = method_text();
  }

  [[nodiscard]] std::string method_text() const {
    std::string text = word("digest.hours_from");
    if (digest_.method == "partly_modelled") {
      Facts values;
      values.set("share", digest_.modelled_share.value_or(0));
      text += "; " + filled("digest.partly_modelled", values);
    } else {
      text += fmt::format("; {} {}", word("digest.energy_is"),
                          word(digest_.method.empty() ? "digest.method_unknown" : digest_.method));
    }
    std::string clusters;
    for (const std::string& cluster : digest_.unmeasured) {
      clusters += (clusters.empty() ? "" : ", ") + plain_text(cluster);
    }
    if (!clusters.empty()) {
      Facts values;
      values.set("clusters", clusters);
      text += "; " + filled("digest.unmeasured", values);
    }
    return text;
  }

  void add_change(std::string_view label, const Number& change, const std::string& before) {
    Facts values;
    values.set("month", before);
    if (change) {
      values.set("share", std::abs(*change));
    }
    const char* key = !change         ? "digest.unknown"
                      : *change == 0  ? "digest.same"
                      : (*change < 0) ? "digest.less"
                                      : "digest.more";
    sheet_.costs.push_back({word(label), filled(key, values)});
  }

  void add_changes() {
    if (digest_.so_far) {
      sheet_.costs.push_back({word("energy"), word("digest.not_ended")});
    } else if (digest_.months.size() > 1) {
      const std::string& before = digest_.months[1].month;
      add_change("digest.hours", digest_.hours_change, before);
      add_change("energy", digest_.kwh_change, before);
    }
    add_share("digest.idle", "digest.idle_share", &MonthOfUse::idle_share);
    add_share("digest.not_used", "digest.not_used_share", &MonthOfUse::not_used_share);
  }

  /// A share of the energy, if it is known, and that of the month before.
  void add_share(std::string_view label, std::string_view key, Number MonthOfUse::* share) {
    const Number known = month().*share;
    if (!known) {
      return;
    }
    Facts values;
    values.set("share", *known);
    std::string text = filled(key, values);
    if (const Number before = digest_.months.size() > 1 ? digest_.months[1].*share : Number()) {
      Facts earlier;
      earlier.set("share", *before);
      earlier.set("month", digest_.months[1].month);
      text += " " + filled("digest.share_before", earlier);
    }
    sheet_.costs.push_back({word(label), std::move(text)});
  }

  void add_improvement() {
    if (const auto& best = digest_.improvement) {
      Facts values;
      values.set("name", best->name.empty() ? word("digest.unnamed") : plain_text(best->name));
      values.set("n", static_cast<double>(best->runs));
      values.set("now", best->now);
      values.set("before", best->before);
      values.set("saved", energy_text(best->saved_kwh, words_));
      sheet_.costs.push_back({word("digest.improved"), filled("digest.improvement", values)});
    }
  }

  void add_band() {
    if (const auto& band = digest_.band) {
      Facts values;
      values.set("n", static_cast<double>(band->projects));
      values.set("low", band->low);
      values.set("high", band->high);
      sheet_.costs.push_back(
          {word("digest.all_projects"), filled("digest.band_" + band->place, values)});
    } else if (digest_.band_only) {
      sheet_.costs.push_back({word("digest.all_projects"), word("digest.no_band")});
    }
  }

  void add_suggestions() {
    sheet_.advice_title = word("advice");
    if (digest_.suggestions.empty()) {
      sheet_.nothing = word("no_advice");
    }
    for (std::size_t i = 0; i < std::min(digest_.suggestions.size(), advice::kMaxShown); ++i) {
      const RepeatedFinding& one = digest_.suggestions[i];
      Suggestion suggestion{.text = plain_text(text_in(one.finding, view_.language))};
      Facts values;
      values.set("n", static_cast<double>(one.units));
      values.set("unit", plain_text(one.uuid));
      suggestion.confidence = fmt::format("{}, {}", word(advice::to_string(one.finding.confidence)),
                                          filled("digest.in_units", values));
      if (one.finding.saves_kwh) {
        Facts saves;
        saves.set("saves", energy_text(*one.finding.saves_kwh, words_));
        suggestion.saves = filled("saves", saves);
      }
      suggestion.lines = lines_in(one.finding, words_);
      sheet_.suggestions.push_back(std::move(suggestion));
    }
  }

  const Digest& digest_;
  const View& view_;
  const Catalogue& words_;
  Sheet sheet_;
};

Sheet sheet_of(const Digest& digest, const View& view) {
  return DigestWriter(digest, view).write();
}

}  // namespace

std::string to_text(const Digest& digest, const View& view) {
  return text_form(sheet_of(digest, view), view);
}

std::string to_markdown(const Digest& digest, const View& view) {
  return markdown_form(sheet_of(digest, view));
}

std::string to_html(const Digest& digest, const View& view) {
  return html_form(sheet_of(digest, view), view);
}

}  // namespace ceems::report
