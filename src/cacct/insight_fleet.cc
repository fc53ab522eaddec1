// Texts about slow devices and nodes.
#include "cacct/insight_fleet.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cacct/output/answer.h"
#include "cacct/output/json_values.h"

namespace ceems::cacct {
namespace {

namespace sj = simdjson::dom;

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kCauses{{
    {"hardware_thermal", "too hot"},
    {"software_thermal", "too hot"},
    {"power_cap", "its power limit"},
    {"power_brake", "the power brake of the node"},
    {"hardware_slowdown", "slowed down by the hardware"},
    {"ecc", "errors of its memory"},
    {"xid", "errors of the GPU (Xid)"},
    {"symbol_error", "errors of its network link"},
    {"link_error_recovery", "errors of its network link"},
    {"link_downed", "its network link was down"},
    {"local_link_integrity_errors", "errors of its network link"},
}};

std::string sentence(const sj::element& row) {
  constexpr double kWhole = 100;  // percent
  const std::string kind = text_of(row, "kind");
  const std::string device = text_of(row, "device");
  const auto deviation = number_of(row, "deviation");
  const std::string percent = fmt::format("{:.0f} %", std::abs(deviation.value_or(0)) * kWhole);
  std::string out;
  // Of the list of all running jobs.
  const std::string job = text_of(row, "uuid");
  if (!job.empty()) {
    const std::string user = text_of(row, "user");
    out = user.empty() ? job + ": "
                       : fmt::format("{} ({}, {}): ", job, user, text_of(row, "project"));
  }
  out += text_of(row, "node");
  out += device.empty() ? "" : ", GPU " + device;
  if (!deviation) {
    out += " has errors that its peers do not have";
  } else if (kind == "slow_device") {
    out += fmt::format(" runs {} below its peers", percent);
  } else if (kind == "imbalance") {
    out += fmt::format(" works {} more than its peers, which wait for it", percent);
  } else {
    out += fmt::format(" works {} less than its peers: it waits, or has less to do", percent);
  }
  if (const std::string cause = text_of(row, "cause"); !cause.empty()) {
    const auto* const known =
        std::ranges::find(kCauses, cause, &std::pair<std::string_view, std::string_view>::first);
    out += fmt::format(": {}", known == kCauses.end() ? std::string_view(cause) : known->second);
  }
  out += fmt::format(" (in {} windows).", text_of(row, "windows"));
  bool yours = true;
  if (job.empty() && row["your_code"].get(yours) == simdjson::SUCCESS && !yours) {
    out += " Not your code.";
  }
  if (const auto kwh = number_of(row, "waiting_kwh_max"); kwh && *kwh > 0) {
    out += fmt::format(" Waiting took up to {:.2g} kWh.", *kwh);
  }
  return out + "\n";
}

}  // namespace

std::string stragglers_text(const simdjson::dom::array& rows) {
  if (rows.size() == 0) {
    return "No node or GPU differs from its peers.\n";
  }
  std::string out;
  for (const sj::element row : rows) {
    out += sentence(row);
  }
  return out;
}

}  // namespace ceems::cacct
