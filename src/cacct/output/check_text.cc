#include "cacct/output/check_text.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "base/time/time_text.h"
#include "base/time/time_zone.h"
#include "base/utf8.h"
#include "cacct/output/answer.h"
#include "cacct/output/box.h"
#include "cacct/output/json_values.h"
#include "cacct/output/quantity.h"

namespace ceems::cacct {
namespace {

namespace sj = simdjson::dom;

constexpr double kPercentOf = 100;
constexpr std::size_t kIndent = 2;
constexpr std::size_t kLabel = 10;  ///< columns of "  Energy    "

/// Adds a text that is broken at blanks. The first line begins with `head`, the others with as many
/// blanks.
void add_wrapped(std::string& out,
                 std::string_view head,
                 std::string_view text,
                 std::size_t width) {
  const std::string margin(head.size(), ' ');
  const std::size_t room = std::max<std::size_t>(width, head.size() + 20) - head.size();
  std::string line;
  const auto end_line = [&] {
    out.append(out.empty() || out.back() == '\n' ? margin : "").append(line).append("\n");
    line.clear();
  };
  out += head;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    if (!line.empty() && display_width(line) + 1 + display_width(word) > room) {
      end_line();
    }
    line.append(line.empty() ? "" : " ").append(word);
  }
  end_line();
}

std::string plural(double count, std::string_view one) {
  return fmt::format("{:.0f} {}{}", count, one, std::round(count) == 1 ? "" : "s");
}

/// At most one digit behind the point.
std::string short_number(double number) {
  const double rounded = std::round(number * 10) / 10;
  return rounded == std::round(rounded) ? fmt::format("{:.0f}", rounded)
                                        : fmt::format("{:.1f}", rounded);
}

std::string money(double amount) {
  return fmt::format("{:.2f}", amount);
}

std::string seconds_text(double seconds) {
  return duration_text(seconds);
}

std::string moment(double ms) {
  const TimeZone local = TimeZone::find("Local").value_or(TimeZone());
  std::string text = local.local(static_cast<std::int64_t>(ms)).substr(0, 16);
  std::ranges::replace(text, 'T', ' ');
  return text;
}

std::vector<std::string> texts_in(const sj::element& row, std::string_view name) {
  std::vector<std::string> texts;
  sj::array list;
  if (row[name].get(list) == simdjson::SUCCESS) {
    for (const sj::element item : list) {
      std::string_view text;
      if (item.get(text) == simdjson::SUCCESS) {
        texts.push_back(terminal_safe(text));
      }
    }
  }
  return texts;
}

/// "1.20 kWh (0.90 kWh to 1.60 kWh)"; nothing without a middle.
template <typename Show>
std::string with_range(const sj::element& range, const Show& show) {
  const auto mid = number_of(range, "mid");
  const auto low = number_of(range, "low");
  const auto high = number_of(range, "high");
  if (!mid) {
    return {};
  }
  return show(*mid) + (low && high ? fmt::format(" ({} to {})", show(*low), show(*high)) : "");
}

/// "EUR "; "" if it is not known.
std::string currency_of(const sj::element& row) {
  sj::element cost;
  if (row["expected"]["cost"].get(cost) != simdjson::SUCCESS) {
    return {};
  }
  const std::string currency = text_of(cost, "currency");
  return currency.empty() ? currency : currency + " ";
}

struct Expected {
  std::string wait, elapsed, energy, cost, emissions;
};

Expected expected_of(const sj::element& row) {
  Expected texts;
  sj::element expected;
  if (row["expected"].get(expected) != simdjson::SUCCESS) {
    return texts;
  }
  const auto read = [&expected](const char* name, const auto& show) {
    sj::element range;
    return expected[name].get(range) == simdjson::SUCCESS ? with_range(range, show) : std::string();
  };
  texts.wait = read("wait_s", seconds_text);
  texts.elapsed = read("elapsed_s", seconds_text);
  texts.energy = read("energy_kwh", energy_text);
  texts.cost = read("cost", money);
  texts.emissions = read("emissions_g", emissions_text);
  texts.cost = texts.cost.empty() ? "" : currency_of(row) + texts.cost;
  return texts;
}

/// "12 of 14 such runs took longer than the time limit."; "" if none did.
std::string over_limit_of(const sj::element& row) {
  const auto over = number_of(row, "over_limit");
  sj::element basis;
  if (!over || *over < 1 || row["basis"].get(basis) != simdjson::SUCCESS) {
    return {};
  }
  const auto runs = number_of(basis, "runs");
  return runs ? fmt::format("{:.0f} of {:.0f} such runs took longer than the time limit.", *over,
                            *runs)
              : std::string();
}

/// "12 runs of train-# in 90 days".
std::string basis_of(const sj::element& row) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kKinds{
      {{"family", "of "},
       {"user", "of your jobs"},
       {"project", "of the project "},
       {"partition", "on the partition "}}};
  sj::element basis;
  if (row["basis"].get(basis) != simdjson::SUCCESS) {
    return {};
  }
  const std::string kind = text_of(basis, "kind");
  const auto* const found =
      std::ranges::find(kKinds, kind, &std::pair<std::string_view, std::string_view>::first);
  const auto runs = number_of(basis, "runs");
  if (found == kKinds.end() || !runs) {
    return {};
  }
  std::string text = fmt::format("{} {}{}", plural(*runs, "run"), found->second,
                                 kind == "user" ? std::string() : text_of(basis, "name"));
  if (const auto days = number_of(basis, "days")) {
    text += fmt::format(" in {}", plural(*days, "day"));
  }
  return text;
}

std::string unused_of(const sj::element& row) {
  sj::element unused;
  if (row["unused"].get(unused) != simdjson::SUCCESS) {
    return {};
  }
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const auto& show) {
    if (const auto number = number_of(unused, name); number && *number > 0) {
      parts.push_back(show(*number));
    }
  };
  add("gpus", [](double gpus) { return short_number(gpus) + (gpus == 1 ? " GPU" : " GPUs"); });
  add("cpus", [](double cpus) { return short_number(cpus) + (cpus == 1 ? " CPU" : " CPUs"); });
  add("memory_bytes", [](double bytes) { return bytes_text(bytes) + " of memory"; });
  add("time_limit_s", [](double time) { return seconds_text(time) + " of the time limit"; });
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_lines(std::string& out, const sj::element& row, std::string_view prefix) {
  const auto was = texts_in(row, "was");
  const auto lines = texts_in(row, "lines");
  for (std::size_t at = 0; at < lines.size(); ++at) {
    constexpr std::size_t kBefore = 30;  // as in reports
    std::string line = fmt::format("{}{}", prefix, lines[at]);
    if (at < was.size()) {
      line.resize(std::max(line.size() + 1, kBefore), ' ');
      line += fmt::format("(was {})", was[at]);
    }
    out += "       " + line + "\n";
  }
}

/// "(in 8 runs; saves about 0.63 kWh a run)".
std::string evidence_of(const sj::element& suggestion) {
  std::string text;
  if (const auto seen = number_of(suggestion, "seen_in")) {
    text = "in " + plural(*seen, "run");
  }
  sj::element saves;
  if (suggestion["saves"].get(saves) == simdjson::SUCCESS) {
    if (const auto kwh = number_of(saves, "kwh")) {
      text += fmt::format("{}saves about {} a run", text.empty() ? "" : "; ", energy_text(*kwh));
    }
  }
  return text.empty() ? text : " (" + text + ")";
}

void add_suggestions(std::string& out, const sj::element& row, const CheckLook& look) {
  sj::array suggestions;
  if (row["suggestions"].get(suggestions) != simdjson::SUCCESS || suggestions.size() == 0) {
    return;
  }
  out += "\nWorth a change\n";
  std::size_t number = 0;
  for (const sj::element suggestion : suggestions) {
    add_wrapped(out, fmt::format("  {}. ", ++number),
                text_of(suggestion, "text") + evidence_of(suggestion), look.width);
    add_lines(out, suggestion, look.prefix);
  }
}

void add_elsewhere(std::string& out, const sj::element& row, const CheckLook& look) {
  sj::array places;
  if (row["elsewhere"].get(places) != simdjson::SUCCESS || places.size() == 0) {
    return;
  }
  out += "\nElsewhere\n";
  for (const sj::element place : places) {
    // The text names the place, and says what it costs there.
    std::string text = text_of(place, "text");
    if (const std::string whom = text_of(place, "for"); !whom.empty()) {
      text += " (for " + whom + ")";
    }
    for (const char* more : {"note", "url"}) {
      text += " " + text_of(place, more);
    }
    add_wrapped(out, "  ", text, look.width);
  }
}

void add_begin(std::string& out, const sj::element& row, const CheckLook& look) {
  sj::element begin;
  if (row["begin"].get(begin) != simdjson::SUCCESS) {
    return;
  }
  const auto start = number_of(begin, "start_ts");
  const auto grams = number_of(begin, "g");
  const auto now = number_of(begin, "now_g");
  if (!start || !grams || !now || *now <= 0) {
    return;
  }
  std::string text =
      fmt::format("{}: about {} CO2e instead of {}, {:.0f} % less", moment(*start),
                  emissions_text(*grams), emissions_text(*now), (1 - *grams / *now) * kPercentOf);
  sj::array band;
  double low = 0;
  double high = 0;
  if (begin["band_g"].get(band) == simdjson::SUCCESS && band.size() == 2 &&
      band.at(0).get(low) == simdjson::SUCCESS && band.at(1).get(high) == simdjson::SUCCESS) {
    text += fmt::format(" ({} to {})", emissions_text(low), emissions_text(high));
  }
  const std::string basis = text_of(begin, "basis");
  text += basis == "forecast" ? ", by the forecast of the grid"
          : basis == "median" ? ", by the last four such days of the week"
                              : "";
  out += "\nGreenest start\n";
  add_wrapped(out, "  ", text, look.width);
  add_lines(out, begin, look.prefix);
}

void add_expected(std::string& out, const sj::element& row, const CheckLook& look) {
  const Expected expected = expected_of(row);
  const std::string basis = basis_of(row);
  if (basis.empty()) {
    add_wrapped(out, "", "No earlier runs say what this job will take.", look.width);
    return;
  }
  std::string heading = "What such a job takes";
  const std::size_t used = heading.size() + display_width(basis);
  if (used + kIndent <= look.width) {
    heading += std::string(std::min(look.width - used, 44 - heading.size()), ' ') + basis;
    out += heading + "\n";
  } else {
    out += heading + "\n";
    add_wrapped(out, "  ", basis, look.width);
  }
  for (const auto& [label, text] :
       {std::pair<std::string_view, const std::string&>("Waits", expected.wait),
        {"Runs", expected.elapsed},
        {"Energy", expected.energy},
        {"Cost", expected.cost},
        {"CO2e", expected.emissions}}) {
    if (!text.empty()) {
      add_wrapped(out, fmt::format("  {:<{}}", label, kLabel), text, look.width);
    }
  }
  if (const std::string over = over_limit_of(row); !over.empty()) {
    add_wrapped(out, "  ", over, look.width);
  }
  sj::element held;
  if (row["held"].get(held) == simdjson::SUCCESS) {
    const auto share = number_of(held, "share");
    const auto of = number_of(held, "of");
    if (share && of) {
      add_wrapped(out, "  ",
                  fmt::format("Such ranges held for {:.0f} % of {}.", *share * kPercentOf,
                              plural(*of, "job")),
                  look.width);
    }
  }
}

/// The only element of "data".
Result<sj::element> row_in(sj::parser& parser, const std::string& answer) {
  CEEMS_TRY(data, data_in<sj::array>(parser, answer));
  sj::element row;
  if (data.size() != 1 || data.at(0).get(row) != simdjson::SUCCESS || !row.is_object()) {
    return cacct::unexpected_answer();
  }
  return row;
}

}  // namespace

Result<std::string> check_text(const std::string& answer, const CheckLook& look) {
  sj::parser parser;
  CEEMS_TRY(row, row_in(parser, answer));
  std::string out;
  const std::string name = terminal_safe(look.name);
  add_wrapped(out, "", "Check of " + (name.empty() ? "a job" : name), look.width);
  out += "\n";
  add_expected(out, row, look);
  if (const std::string unused = unused_of(row); !unused.empty()) {
    out += "\nWhat such runs left unused\n";
    add_wrapped(out, "  ", unused, look.width);
  }
  add_suggestions(out, row, look);
  add_elsewhere(out, row, look);
  add_begin(out, row, look);
  return out;
}

Result<std::string> check_line(const std::string& answer, const CheckLook& look) {
  constexpr std::size_t kMaxLine = 400;  // columns
  sj::parser parser;
  CEEMS_TRY(row, row_in(parser, answer));
  const Expected expected = expected_of(row);
  std::vector<std::string> parts;
  for (const auto& [text, behind] :
       {std::pair<const std::string&, std::string_view>(expected.energy, ""),
        {expected.cost, ""},
        {expected.emissions, " CO2e"},
        {expected.elapsed, " of time"}}) {
    if (!text.empty()) {
      // The range of the energy only: it is a line.
      parts.push_back(fmt::format(
          "{}{}", &text == &expected.energy ? text : text.substr(0, text.find(" (")), behind));
    }
  }
  if (parts.empty()) {
    return std::string();
  }
  std::string line = fmt::format("Expected: {}, by {}.", fmt::join(parts, ", "), basis_of(row));
  if (const std::string over = over_limit_of(row); !over.empty()) {
    line += " " + over;
  }
  sj::array suggestions;
  if (row["suggestions"].get(suggestions) == simdjson::SUCCESS) {
    for (const sj::element suggestion : suggestions) {
      if (const auto lines = texts_in(suggestion, "lines"); !lines.empty()) {
        line += fmt::format(" Worth a change: {}{}", look.prefix, fmt::join(lines, " "));
        break;
      }
    }
  }
  return cut(line, kMaxLine).front() + "\n";
}

}  // namespace ceems::cacct
