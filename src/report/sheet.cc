#include "report/sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "advice/template.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "base/time/time_text.h"
#include "report/plain_text.h"
#include "report/rounding.h"

namespace ceems::report {
namespace {

using advice::Catalogue;
using advice::Facts;
using advice::Form;

constexpr std::size_t kKnownFamily = 5;  // runs from which on there is a "usual"

std::string filled(std::string_view text, const Facts& values, const Catalogue& words) {
  return advice::fill(text, values, words.notation).value_or(std::string());
}

/// Without zeros at the end, never with an exponent.
std::string digits_of(double number, const Catalogue& words, int significant = 3) {
  if (number == 0 || !std::isfinite(number)) {
    return "0";
  }
  const int before = static_cast<int>(std::floor(std::log10(std::abs(number)) + 1e-12)) + 1;
  std::string text = fmt::format("{:.{}f}", number, std::clamp(significant - before, 0, 12));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) {
      text.pop_back();
    }
  }
  std::ranges::replace(text, '.', words.notation.comma);
  return text;
}

/// In the first unit of which it is at least one after rounding, else in the last.
std::string scaled_text(double number,
                        std::initializer_list<std::pair<double, std::string_view>> steps,
                        const Catalogue& words) {
  for (const auto& [size, unit] : steps) {
    if (std::abs(significant(number / size, 3)) >= 1 || size == std::prev(steps.end())->first) {
      return fmt::format("{} {}", digits_of(number / size, words), unit);
    }
  }
  return {};
}

std::string whole(const Number& number) {
  return number ? fmt::format("{:.0f}", *number) : std::string();
}

std::string clock_text(double seconds) {
  return elapsed_text(std::llround(std::clamp(seconds, 0.0, 1e12)));
}

/// "14 %" or "12-15 %".
std::string range_text(const Number& low, const Number& high, const Catalogue& words) {
  if (!low || !high) {
    return {};
  }
  const std::string first = percent_text(*low, words);
  const std::string last = percent_text(*high, words);
  return first == last ? first : fmt::format("{}–{}", first.substr(0, first.size() - 2), last);
}

class ReportWriter {
 public:
  ReportWriter(const Report& report, const View& view)
      : report_(report), view_(view), words_(advice::catalogue(view.language)) {}

  Sheet write() {
    add_about();
    // The advice on a running server rests on its last days, which are covered.
    const bool recent = report_.state == State::kSoFar && !report_.findings.empty();
    if (report_.coverage && *report_.coverage < advice::kCoverage && !recent) {
      sheet_.partly = with_share("partly", *report_.coverage);
    }
    add_bars();
    add_nodes();
    add_phases();
    add_results();
    add_costs();
    add_suggestions();
    if (!view_.help_url.empty()) {
      sheet_.help = fmt::format("{} {}", word("help"), plain_text(view_.help_url));
    }
    return std::move(sheet_);
  }

 private:
  [[nodiscard]] std::string word(std::string_view key) const {
    return std::string(words_.word(key));
  }
  [[nodiscard]] std::string with_share(std::string_view key, double share) const {
    Facts values;
    values.set("share", percent_text(share, words_));
    std::string text(words_.word(key));
    // percent_text() has decimals that the form `percent` lacks.
    if (const auto at = text.find("{share:percent}"); at != std::string::npos) {
      text.replace(at, std::string_view("{share:percent}").size(), "{share}");
    }
    return filled(text, values, words_);
  }

  void add_about() {
    const Job& job = report_.job;
    sheet_.title = fmt::format("{} {}", word(job.manager == "slurm" ? "title.job" : "title.unit"),
                               shown_id(report_));
    const auto add = [this](std::string text) {
      if (!text.empty()) {
        sheet_.about.push_back(std::move(text));
      }
    };
    add(plain_text(job.name));
    add(job.project.empty()
            ? plain_text(job.user)
            : fmt::format("{} / {}", plain_text(job.user), plain_text(job.project)));
    add(plain_text(job.state));
    add(plain_text(report_.cluster_id));
    if (!job.partition.empty()) {
      add(fmt::format("{} {}", word("partition"), plain_text(job.partition)));
    }
    const auto add_count = [&](const Number& number, std::string_view one, std::string_view more) {
      if (const std::string count = whole(number); !count.empty() && count != "0") {
        add(fmt::format("{} {}", count, word(count == "1" ? one : more)));
      }
    };
    add_count(job.nodes, "node", "nodes");
    add_count(job.cpus, "core", "cores");
    add_count(job.gpus, "gpu", "gpus");
    std::string start = plain_text(report_.started_text);
    if (const auto t = start.find('T'); t != std::string::npos) {
      start[t] = ' ';
    }
    sheet_.when.push_back(report_.started_ms > 0 ? fmt::format("{} {}", word("started"), start)
                                                 : word("not_started"));
    if (job.elapsed) {
      std::string ran = fmt::format("{} {}", word("ran"), clock_text(*job.elapsed));
      if (job.limit) {
        ran += fmt::format(" {} {}", word("of"), clock_text(*job.limit));
      }
      if (report_.state == State::kSoFar) {
        ran += " " + word("so_far");
      }
      sheet_.when.push_back(std::move(ran));
    }
    if (job.waited) {
      sheet_.when.push_back(fmt::format("{} {}", word("waited"), clock_text(*job.waited)));
    }
  }

  void add_bar(std::string_view label, const Number& share, std::string usual, std::string remark) {
    sheet_.bars.push_back({.label = word(label),
                           .share = share,
                           .value = share ? percent_text(*share, words_) : word("not_measured"),
                           .usual = std::move(usual),
                           .remark = std::move(remark)});
  }

  void add_bars() {
    const Use& use = report_.use;
    const Compared& compared = report_.compared;
    const bool known = compared.runs >= kKnownFamily;
    sheet_.used_title = word("used");
    if (known) {
      Facts values;
      values.set("n", static_cast<double>(compared.runs));
      sheet_.usual_title = filled(words_.word("usual"), values, words_);
    }
    add_bar("cpu", use.cpu, known ? range_text(compared.cpu_low, compared.cpu_high, words_) : "",
            use.cpu && *use.cpu > 1 ? word("over_full") : "");
    if (use.mem_peak_node && use.mem_alloc_node && *use.mem_alloc_node > 0) {
      Facts values;
      values.set("peak", *use.mem_peak_node);
      values.set("of", *use.mem_alloc_node);
      const double share = std::round(*use.mem_peak_node / *use.mem_alloc_node * 100) / 100;
      add_bar("memory_peak", share,
              known ? range_text(compared.mem_median, compared.mem_median, words_) : "",
              filled(words_.word("peak"), values, words_));
    } else {
      add_bar("memory", use.mem, "", use.mem ? word("average") : "");
    }
    if (report_.job.gpus && *report_.job.gpus > 0) {
      add_bar("gpu_busy", use.gpu_busy,
              known ? range_text(compared.gpu_low, compared.gpu_high, words_) : "", "");
      if (use.gpu_sm) {
        add_bar("gpu_sm", use.gpu_sm, "", "");
      }
      if (use.gpu_mem) {
        add_bar("gpu_memory", use.gpu_mem, "", "");
      }
    }
  }

  [[nodiscard]] std::string node_cpu(const NodeUse& node) const {
    const Number elapsed = report_.job.elapsed;
    if (!node.cpu_seconds || !node.cpus || !elapsed || *node.cpus * *elapsed <= 0) {
      return "–";
    }
    return percent_text(std::round(*node.cpu_seconds / (*node.cpus * *elapsed) * 100) / 100,
                        words_);
  }

  void add_nodes() {
    if (report_.nodes.empty()) {
      return;
    }
    const bool gpus =
        std::ranges::any_of(report_.nodes, [](const auto& n) { return !n.gpus.empty(); });
    const bool sms = std::ranges::any_of(report_.nodes, [](const auto& node) {
      return std::ranges::any_of(node.gpus, [](const auto& gpu) { return gpu.sm.has_value(); });
    });
    sheet_.node_columns = {word("column.node"), word("column.cpu"), word("column.memory")};
    if (gpus) {
      sheet_.node_columns.push_back(word("column.busy"));
    }
    if (sms) {
      sheet_.node_columns.push_back(word("column.sm"));
    }
    sheet_.node_columns.push_back(word("column.note"));
    for (const NodeUse& node : report_.nodes) {
      std::vector<std::string> row{plain_text(node.node), node_cpu(node)};
      std::string memory = node.mem_peak ? bytes_text(*node.mem_peak, words_) : "–";
      if (node.mem_peak && node.mem_alloc) {
        memory += " / " + bytes_text(*node.mem_alloc, words_);
      }
      row.push_back(std::move(memory));
      std::string busy;
      std::string sm;
      std::string unused;
      for (const GpuUse& gpu : node.gpus) {
        const auto append = [](std::string& list, const std::string& text) {
          list += (list.empty() ? "" : " ") + text;
        };
        const auto percent = [](const Number& share) {
          return share ? fmt::format("{:.0f}", *share * 100) : std::string("–");
        };
        append(busy, percent(gpu.busy));
        append(sm, percent(gpu.sm));
        if (gpu.busy && *gpu.busy == 0) {
          append(unused, plain_text(gpu.index));
        }
      }
      if (gpus) {
        row.push_back(busy);
      }
      if (sms) {
        row.push_back(sm);
      }
      Facts values;
      values.set("gpus", unused);
      row.push_back(unused.empty() ? "" : filled(words_.word("note.gpu_unused"), values, words_));
      sheet_.nodes.push_back(std::move(row));
    }
  }

  void add_phases() {
    if (report_.phases.empty()) {
      return;
    }
    sheet_.phase_title = word("phases");
    for (const auto* column :
         {"column.phase", "time", "column.share", "energy", "column.watts", "column.slowest"}) {
      sheet_.phase_columns.push_back(word(column));
    }
    const auto known = [](const Number& number, const auto& written) {
      return number ? written(*number) : std::string("–");
    };
    for (const Phase& phase : report_.phases) {
      std::string name = plain_text(phase.region);
      if (phase.count && *phase.count > 1) {
        name += " × " + whole(phase.count);
      }
      std::string slowest = plain_text(phase.slowest);
      if (phase.longer && *phase.longer >= 0.01) {
        slowest += " +" + percent_text(*phase.longer, words_);
      } else {
        slowest.clear();  // none is slower than the others
      }
      const auto share = [this](double number) { return percent_text(number, words_); };
      sheet_.phases.push_back(
          {std::move(name), known(phase.seconds, clock_text), known(phase.share, share),
           known(phase.kwh, [this](double kwh) { return energy_text(kwh, words_); }),
           known(phase.watts, [this](double watts) { return digits_of(watts, words_); }),
           std::move(slowest)});
    }
  }

  [[nodiscard]] std::string compared_text(const JobResult& result) const {
    const bool known = result.family.size() + 1 >= kKnownFamily && result.family_joules &&
                       *result.family_joules > 0 && result.joules;
    if (!known) {
      return {};
    }
    Facts values;
    const double share = std::round((*result.joules / *result.family_joules - 1) * 100) / 100;
    values.set("n", static_cast<double>(result.family.size()));
    values.set("share", std::abs(share));
    return filled(words_.word(share == 0  ? "result.same"
                              : share < 0 ? "result.less"
                                          : "result.more"),
                  values, words_);
  }

  void add_results() {
    const auto add = [this](const std::string& name, std::vector<std::string> parts) {
      std::erase(parts, std::string());
      sheet_.results.push_back(
          {.label = plain_text(name), .value = fmt::format("{}", fmt::join(parts, " · "))});
    };
    const auto with_unit = [this](const Number& number, const std::string& unit) {
      return number ? digits_of(*number, words_) + (unit.empty() ? "" : " " + plain_text(unit))
                    : std::string();
    };
    for (const JobResult& result : report_.results) {
      Facts values;
      values.set("joules", joules_text(result.joules.value_or(0), words_));
      add(result.result,
          {with_unit(result.n, result.unit),
           result.joules ? filled(words_.word("result.each"), values, words_) : std::string(),
           compared_text(result)});
    }
    for (const Merit& merit : report_.merits) {
      Facts values;
      values.set("mean", with_unit(merit.mean, merit.unit));
      const bool steady = !merit.mean || merit.mean == merit.last;
      add(merit.fom, {with_unit(merit.last, merit.unit),
                      steady ? std::string() : filled(words_.word("fom.mean"), values, words_)});
    }
    if (!sheet_.results.empty()) {
      sheet_.result_title = word("results");
    }
  }

  void add_costs() {
    sheet_.cost_title = word("cost");
    std::string remark = report_.energy.method.empty() ? "" : word(report_.energy.method);
    if (report_.coverage) {
      remark += (remark.empty() ? "" : ", ") + with_share("covered", *report_.coverage);
    }
    if (report_.from_jobstats) {
      remark += (remark.empty() ? "" : ", ") + word("from_jobstats");
    }
    sheet_.cost_remark = remark;
    add_energy();
    add_emissions();
    if (report_.cost.amount) {
      sheet_.costs.push_back({word("money"), money_text(report_.cost, words_)});
    }
    add_comparison();
  }

  void add_energy() {
    const Energy& energy = report_.energy;
    if (!energy.kwh) {
      sheet_.costs.push_back({word("energy"), word("not_measured")});
      return;
    }
    std::string text = energy_text(*energy.kwh, words_);
    std::string parts;
    for (const auto* domain : {"gpu", "package", "dram", "other"}) {
      if (const auto found = energy.domains.find(domain); found != energy.domains.end()) {
        parts +=
            fmt::format("{}{} {}", parts.empty() ? "" : ", ",
                        word(fmt::format("domain.{}", domain)), energy_text(found->second, words_));
      }
    }
    if (!parts.empty()) {
      text += " (" + parts + ")";
    }
    if (energy.idle_kwh) {
      Facts values;
      values.set("idle", energy_text(*energy.idle_kwh, words_));
      text += "; " + filled(words_.word("idle_energy"), values, words_);
      if (energy.not_used_kwh) {
        values.set("not_used", energy_text(*energy.not_used_kwh, words_));
        text += ", " + filled(words_.word("not_used_energy"), values, words_);
      }
    }
    sheet_.costs.push_back({word("energy"), std::move(text)});
  }

  void add_emissions() {
    const Emissions& co2 = report_.co2;
    if (!co2.grams) {
      sheet_.costs.push_back({word("co2"), word("not_measured")});
      return;
    }
    sheet_.costs.push_back(
        {word("co2"), fmt::format("{} · {}", grams_text(*co2.grams, words_), source_text())});
  }

  /// "world average, 445 g/kWh"
  [[nodiscard]] std::string source_text() const {
    const std::string& key = report_.co2.provider;
    const std::string name = "provider." + key;
    std::string text(words_.word(name));
    if (text == name) {  // of the site
      text = plain_text(key.ends_with("_total") ? key.substr(0, key.rfind('_')) : key);
    }
    const Number& kwh = report_.energy.kwh;
    const Number& grams = report_.co2.grams;
    if (kwh && *kwh > 0 && grams) {
      text += fmt::format(", {} g/kWh", digits_of(significant(*grams / *kwh, 3), words_));
    }
    return text;
  }

  void add_comparison() {
    const Compared& compared = report_.compared;
    std::string text;
    if (compared.project_month_share) {
      Facts values;
      values.set("share", percent_text(*compared.project_month_share, words_));
      text = filled(words_.word("project_share"), values, words_);
    }
    const Number kwh = report_.energy.kwh;
    if (compared.runs >= kKnownFamily && compared.median_kwh && kwh && *compared.median_kwh > 0) {
      Facts values;
      const double share = std::round((*kwh / *compared.median_kwh - 1) * 100) / 100;
      values.set("n", static_cast<double>(compared.runs));
      values.set("share", std::abs(share));
      const char* key = share == 0 ? "same" : (share < 0 ? "less" : "more");
      text += (text.empty() ? "" : " · ") + filled(words_.word(key), values, words_);
    }
    if (!text.empty()) {
      sheet_.costs.push_back({word("compared"), std::move(text)});
    }
  }

  void add_suggestions() {
    sheet_.advice_title = word("advice");
    const std::size_t shown = view_.all_findings
                                  ? report_.findings.size()
                                  : std::min(report_.findings.size(), advice::kMaxShown);
    for (std::size_t i = 0; i < shown; ++i) {
      const advice::Finding& finding = report_.findings[i];
      Suggestion suggestion{.text = plain_text(text_in(finding, view_.language))};
      if (finding.severity != advice::Severity::kGood) {
        suggestion.confidence = word(advice::to_string(finding.confidence));
        if (finding.runs > 1) {
          Facts values;
          values.set("n", static_cast<double>(finding.runs));
          suggestion.confidence += ", " + filled(words_.word("runs"), values, words_);
        }
      }
      if (finding.saves_kwh) {
        Facts values;
        values.set("saves", energy_text(*finding.saves_kwh, words_));
        suggestion.saves = filled(words_.word("saves"), values, words_);
      }
      suggestion.lines = lines_in(finding, words_);
      sheet_.suggestions.push_back(std::move(suggestion));
    }
    if (report_.findings.empty() && sheet_.partly.empty()) {
      sheet_.nothing = word("no_advice");
    }
    if (shown < report_.findings.size()) {
      Facts values;
      values.set("n", static_cast<double>(report_.findings.size() - shown));
      sheet_.more = filled(words_.word("more_advice"), values, words_);
    }
  }

  const Report& report_;
  const View& view_;
  const Catalogue& words_;
  Sheet sheet_;
};

}  // namespace

std::string percent_text(double share, const Catalogue& words) {
  const double percent = share * 100;
  if (percent > 0 && percent < 0.1) {
    return fmt::format("< 0{}1 %", words.notation.comma);
  }
  // Nearly all is not all.
  const bool tenths = percent < 9.95 || (percent >= 99.5 && percent < 99.95);
  std::string text = fmt::format("{:.{}f}", percent, tenths ? 1 : 0);
  if (text.ends_with(".0")) {
    text.resize(text.size() - 2);
  }
  std::ranges::replace(text, '.', words.notation.comma);
  return text + " %";
}

std::string energy_text(double kwh, const Catalogue& words) {
  if (kwh == 0) {
    return "0 J";
  }
  if (std::abs(kwh) < 0.9995e-3) {
    return scaled_text(kwh * kJoulesPerKwh, {{1, "J"}, {1e-3, "mJ"}}, words);
  }
  if (std::abs(kwh) < 0.09995) {
    return digits_of(kwh * 1000, words) + " Wh";
  }
  return scaled_text(kwh, {{1e6, "GWh"}, {1e3, "MWh"}, {1, "kWh"}}, words);
}

std::string joules_text(double joules, const Catalogue& words) {
  return joules == 0
             ? "0 J"
             : scaled_text(joules, {{1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {1e-3, "mJ"}}, words);
}

std::string grams_text(double grams, const Catalogue& words) {
  return grams == 0
             ? "0 g"
             : scaled_text(grams, {{1e6, "t"}, {1e3, "kg"}, {1, "g"}, {1e-3, "mg"}, {1e-6, "µg"}},
                           words);
}

std::string money_text(const Cost& cost, const Catalogue& words) {
  std::string text = fmt::format("{:.2f}", cost.amount.value_or(0));
  std::ranges::replace(text, '.', words.notation.comma);
  const std::string_view group = words.language == "en"   ? ","
                                 : words.language == "de" ? "."
                                                          : "\u202F";
  constexpr std::size_t kCents = 3;  // with the separator
  for (std::size_t at = text.size() - kCents; at > 3 && is_digit(text[at - 4]);) {
    at -= 3;
    text.insert(at, group);
  }
  const std::string currency = plain_text(cost.currency);
  if (currency.empty()) {
    return text;
  }
  return words.language == "en" ? currency + " " + text : text + " " + currency;
}

std::string number_text(double number, const Catalogue& words) {
  return digits_of(number, words);
}

std::vector<advice::Line> lines_in(const advice::Finding& finding, const Catalogue& words) {
  std::vector<advice::Line> lines = finding.lines;
  for (advice::Line& line : lines) {
    line.type = plain_text(line.type);
    if (!line.was.empty()) {
      line.was = fmt::format("{} {}", words.word("was"), plain_text(line.was));
    }
  }
  return lines;
}

const std::string& text_in(const advice::Finding& finding, std::string_view language) {
  const auto text = finding.text.find(language);
  return text != finding.text.end() ? text->second : finding.text.at("en");
}

std::string duration_text(double seconds, const Catalogue& words) {
  return advice::format_number(seconds, Form::kDuration, words.notation);
}

std::string bytes_text(double bytes, const Catalogue& words) {
  return advice::format_number(bytes, Form::kBytes, words.notation);
}

std::string shown_id(const Report& report) {
  const std::string id = plain_text(report.uuid);
  return report.job.array.empty() ? id : fmt::format("{} ({})", id, plain_text(report.job.array));
}

Sheet sheet_of(const Report& report, const View& view) {
  return ReportWriter(report, view).write();
}

}  // namespace ceems::report
