// Two reports side by side.
#include <algorithm>
#include <array>
#include <cmath>

#include "advice/template.h"
#include "report/plain_text.h"
#include "report/report.h"
#include "report/sheet.h"

namespace ceems::report {
namespace {

using advice::Catalogue;
using advice::Facts;

/// How the numbers of a row are written, and how their change.
enum class Kind { kShare, kEnergy, kGrams, kBytes, kTime };

std::string text_of(double value, Kind kind, const Catalogue& words) {
  switch (kind) {
    case Kind::kShare:
      return percent_text(value, words);
    case Kind::kEnergy:
      return energy_text(value, words);
    case Kind::kGrams:
      return grams_text(value, words);
    case Kind::kBytes:
      return bytes_text(value, words);
    case Kind::kTime:
      break;
  }
  return duration_text(value, words);
}

/// "+12 %" of the first value; in percentage points for shares.
std::string change_of(double a, double b, Kind kind) {
  if (kind == Kind::kShare) {
    return fmt::format("{:+.0f}", (b - a) * 100);
  }
  return a == 0 ? std::string() : fmt::format("{:+.0f} %", (b / a - 1) * 100);
}

}  // namespace

std::string compare_text(const Report& a, const Report& b, const View& view) {
  const Catalogue& words = advice::catalogue(view.language);
  struct Row {
    std::string_view label;
    Kind kind;
    Number a, b;
  };
  const std::vector<Row> rows{{"time", Kind::kTime, a.job.elapsed, b.job.elapsed},
                              {"cpu", Kind::kShare, a.use.cpu, b.use.cpu},
                              {"memory", Kind::kBytes, a.use.mem_peak_node, b.use.mem_peak_node},
                              {"gpu_busy", Kind::kShare, a.use.gpu_busy, b.use.gpu_busy},
                              {"gpu_sm", Kind::kShare, a.use.gpu_sm, b.use.gpu_sm},
                              {"gpu_memory", Kind::kShare, a.use.gpu_mem, b.use.gpu_mem},
                              {"energy", Kind::kEnergy, a.energy.kwh, b.energy.kwh},
                              {"co2", Kind::kGrams, a.co2.grams, b.co2.grams}};
  std::vector<std::array<std::string, 4>> cells;
  cells.push_back({"", shown_id(a), shown_id(b), std::string(words.word("change"))});
  for (const Row& row : rows) {
    if (!row.a && !row.b) {
      continue;
    }
    const auto cell = [&](const Number& value) {
      return value ? text_of(*value, row.kind, words) : std::string(words.word("not_measured"));
    };
    cells.push_back({std::string(words.word(row.label)), cell(row.a), cell(row.b),
                     row.a && row.b ? change_of(*row.a, *row.b, row.kind) : ""});
  }
  if (a.cost.amount || b.cost.amount) {
    const auto cell = [&](const Cost& cost) {
      return cost.amount ? money_text(cost, words) : std::string(words.word("not_measured"));
    };
    const bool same = a.cost.amount && b.cost.amount && a.cost.currency == b.cost.currency;
    cells.push_back(
        {std::string(words.word("money")), cell(a.cost), cell(b.cost),
         same ? change_of(*a.cost.amount, *b.cost.amount, Kind::kEnergy) : std::string()});
  }
  for (const JobResult& result : a.results) {
    const auto same = std::ranges::find_if(b.results, [&result](const JobResult& other) {
      return other.result == result.result && other.unit == result.unit;
    });
    const Number theirs = same != b.results.end() ? same->joules : Number();
    if (result.joules && theirs) {
      Facts values;
      values.set("result", plain_text(result.result));
      cells.push_back({advice::fill(words.word("result.compared"), values, words.notation)
                           .value_or(std::string()),
                       joules_text(*result.joules, words), joules_text(*theirs, words),
                       change_of(*result.joules, *theirs, Kind::kEnergy)});
    }
  }
  std::array<std::size_t, 4> widths{};
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths.at(i) = std::max(widths.at(i), columns_of(row.at(i)));
    }
  }
  std::string text(words.word("compare"));
  text += '\n';
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += "  " + padded(row.at(i), widths.at(i));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return view.ascii ? to_ascii(text) : text;
}

}  // namespace ceems::report
