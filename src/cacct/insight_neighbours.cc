// Texts about jobs that slow others down.
#include <simdjson.h>

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/time/time_text.h"
#include "cacct/insight_fleet.h"
#include "cacct/output/answer.h"
#include "cacct/output/columns.h"
#include "cacct/output/json_values.h"

namespace ceems::cacct {
namespace {

namespace sj = simdjson::dom;

constexpr double kPercentOfShare = 100;

std::string pair_text(const sj::element& row) {
  const std::string signal = text_of(row, "signal");
  const std::string suspect = text_of(row, "suspect");
  const std::string activity = text_of(row, "activity");
  const double with = number_of(row, "with").value_or(0);
  const double without = number_of(row, "without").value_or(0);
  std::string out =
      suspect.empty() ? fmt::format("A neighbour probably slows {} down: ", text_of(row, "victim"))
                      : fmt::format("On {}, {} probably slows {} down: ", text_of(row, "node"),
                                    suspect, text_of(row, "victim"));
  const std::string does = suspect.empty()     ? "the neighbour is active"
                           : activity == "cpu" ? suspect + " computes"
                                               : suspect + " reads and writes much";
  if (signal == "cpi") {
    out += fmt::format("{:.2f} cycles per instruction while {}, {:.2f} otherwise", with, does,
                       without);
  } else {
    out += fmt::format("it waits for {} for {:.0f} % of the time while {}, {:.0f} % otherwise",
                       signal == "io" ? "I/O" : signal, with * kPercentOfShare, does,
                       without * kPercentOfShare);
  }
  std::vector<std::string> minutes;
  sj::array bins;
  if (row["bins"].get(bins) == simdjson::SUCCESS) {
    for (const sj::element bin : bins) {
      std::int64_t count = 0;
      if (bin.get(count) == simdjson::SUCCESS) {
        minutes.push_back(std::to_string(count));
      }
    }
  }
  if (minutes.size() == 2) {
    out += fmt::format(" ({} and {} minutes, {:.0f} changes)", minutes.front(), minutes.back(),
                       number_of(row, "times").value_or(0));
  }
  return out + ".\n";
}

std::string storm_text(const sj::element& row) {
  const std::string name = text_of(row, "file_system");
  const std::string suspect = text_of(row, "suspect");
  const std::string what = fmt::format("{:.0f} % of the requests{}",
                                       number_of(row, "share").value_or(0) * kPercentOfShare,
                                       text_of(row, "of") == "metadata" ? " of metadata" : "");
  const std::string lasted = duration_text(number_of(row, "seconds").value_or(0));
  if (suspect.empty()) {
    return fmt::format("{} waits for {}: another job has {}, for {}.\n", text_of(row, "victim"),
                       name.empty() ? "a file system" : name, what, lasted);
  }
  return fmt::format("I/O storm{}: {} has {}, {}/s, for {}; {:.0f} jobs{} wait.\n",
                     name.empty() ? "" : " on " + name, suspect, what,
                     grouped(number_of(row, "rate").value_or(0)), lasted,
                     number_of(row, "victims").value_or(0),
                     text_of(row, "victims_of") == "cluster" ? " of the cluster" : "");
}

}  // namespace

std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", std::abs(number));
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return (std::round(number) < 0 ? "-" : "") + digits;
}

std::string neighbours_text(const simdjson::dom::array& rows) {
  if (rows.size() == 0) {
    return "No job is known to slow others down.\n";
  }
  std::string out;
  Columns top({{"FILE SYSTEM"},
               {"JOB"},
               {"BYTES/S", true},
               {"REQUESTS/S", true},
               {"METADATA/S", true},
               {"SHARE", true}});
  bool any = false;
  for (const sj::element row : rows) {
    const std::string kind = text_of(row, "kind");
    if (kind != "top") {
      out += kind == "storm" ? storm_text(row) : pair_text(row);
      continue;
    }
    any = true;
    const auto shown = [&row](const char* name) {
      const auto value = number_of(row, name);
      return value ? grouped(*value) : "-";
    };
    const std::string name = text_of(row, "file_system");
    const auto share = number_of(row, "share");
    top.add({name.empty() ? "(unknown)" : name, text_of(row, "suspect"), shown("bytes"),
             shown("requests"), shown("metadata"),
             share ? fmt::format("{:.0f} %", *share * kPercentOfShare) : "-"});
  }
  if (any) {
    for (const std::string& line : top.lines()) {
      out += line + "\n";
    }
  }
  return out;
}

}  // namespace ceems::cacct
