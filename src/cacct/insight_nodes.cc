#include <simdjson.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "cacct/insight_fleet.h"
#include "cacct/output/answer.h"
#include "cacct/output/columns.h"
#include "cacct/output/json_values.h"

namespace ceems::cacct {
namespace {

namespace sj = simdjson::dom;

constexpr double kNodePercent = 100;

/// "+6.3 %" of a logarithm.
std::string percent_of(double effect) {
  return fmt::format("{:+.1f} %", std::expm1(effect) * kNodePercent);
}

/// The evidence of a node, a line each.
std::vector<std::string> evidence_of(const sj::element& row) {
  std::vector<std::string> lines;
  if (const auto effect = number_of(row, "effect")) {
    std::string line = fmt::format("power {} against its peers in {:.0f} jobs of {:.0f} users",
                                   percent_of(*effect), number_of(row, "n").value_or(0),
                                   number_of(row, "users").value_or(0));
    if (const auto before = number_of(row, "before")) {
      line += fmt::format(", {} before", percent_of(*before));
    }
    lines.push_back(line + fmt::format("; since {}, p = {:.1g}", text_of(row, "first"),
                                       number_of(row, "p").value_or(0)));
  }
  sj::element failures;
  if (row["failures"].get(failures) == simdjson::SUCCESS && failures.is_object()) {
    lines.push_back(fmt::format(
        "{:.0f} of {:.0f} jobs failed, of {:.0f} users; elsewhere {:.1f} %; since {}, p = {:.1g}",
        number_of(failures, "failed").value_or(0), number_of(failures, "jobs").value_or(0),
        number_of(failures, "users").value_or(0),
        number_of(failures, "rate_of_class").value_or(0) * kNodePercent, text_of(failures, "first"),
        number_of(failures, "p").value_or(0)));
  }
  constexpr std::pair<const char*, std::string_view> kSigns[] = {
      {"lost_gpu", "GPUs lost"},
      {"ecc", "uncorrected memory errors"},
      {"xid", "Xid errors"},
      {"link", "link errors"},
      {"throttle", "seconds throttled"}};
  sj::element signs;
  if (row["signs"].get(signs) == simdjson::SUCCESS) {
    for (const auto& [name, words] : kSigns) {
      if (const auto count = number_of(signs, name)) {
        lines.push_back(fmt::format("{}: {:.0f} in the last day", words, *count));
      }
    }
  }
  return lines;
}

}  // namespace

std::string sick_nodes_text(const simdjson::dom::array& rows) {
  if (rows.size() == 0) {
    return "No node looks sick.\n";
  }
  std::string out;
  for (const sj::element row : rows) {
    if (text_of(row, "kind") == "step") {
      std::string nodes;
      sj::array names;
      if (row["nodes"].get(names) == simdjson::SUCCESS) {
        for (const sj::element name : names) {
          std::string_view text;
          if (name.get(text) == simdjson::SUCCESS) {
            nodes += (nodes.empty() ? "" : ", ") + terminal_safe(text);
          }
        }
      }
      out += fmt::format("Many nodes of {} ({}) draw {} since {}, as with a new firmware: {}\n",
                         text_of(row, "class"), text_of(row, "cluster_id"),
                         percent_of(number_of(row, "effect").value_or(0)), text_of(row, "first"),
                         nodes);
      continue;
    }
    out +=
        fmt::format("{} ({}, {}), score {:.0f}\n", text_of(row, "node"), text_of(row, "cluster_id"),
                    text_of(row, "class"), number_of(row, "score").value_or(0));
    for (const std::string& line : evidence_of(row)) {
      out += "  " + line + "\n";
    }
    if (const std::string suggested = text_of(row, "suggested"); !suggested.empty()) {
      out += "  To drain it:\n    " + suggested + "\n";
    }
  }
  return out;
}

}  // namespace ceems::cacct
