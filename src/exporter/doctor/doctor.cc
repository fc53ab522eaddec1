#include "exporter/doctor/doctor.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/json.h"

namespace ceems::exporter {
namespace {

std::ptrdiff_t count(const Findings& findings, Finding::State state) {
  return std::ranges::count(findings, state, &Finding::state);
}

}  // namespace

std::string_view to_string(Finding::State state) {
  constexpr std::array<std::string_view, 3> kNames{"works", "off", "cannot"};
  return kNames.at(static_cast<std::size_t>(state));
}

Findings examine(const DoctorContext& context) {
  Findings findings;
  examine_release(context, findings);
  examine_host(context, findings);
  examine_meters(context, findings);
  examine_network(context, findings);
  examine_units(context, findings);
  examine_ebpf(context, findings);
  examine_gpus(context, findings);
  examine_energy(context, findings);
  return findings;
}

std::string as_text(const Findings& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) {
    width = std::max(width, finding.collector.size());
  }
  std::string out;
  for (const Finding& finding : findings) {
    out += fmt::format("{:<{}}  {:<6}  {}\n", finding.collector, width, to_string(finding.state),
                       finding.cause);
    if (!finding.fix.empty()) {
      out += fmt::format("{:<{}}          -> {}\n", "", width, finding.fix);
    }
  }
  out +=
      fmt::format("\n{} work, {} off, {} cannot work\n", count(findings, Finding::State::kWorks),
                  count(findings, Finding::State::kOff), count(findings, Finding::State::kCannot));
  return out;
}

std::string as_json(const Findings& findings) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().member("collector", finding.collector);
    json.member("state", to_string(finding.state));
    json.member("cause", finding.cause).member("fix", finding.fix).end_object();
  }
  json.end_array().member("cannot", count(findings, Finding::State::kCannot)).end_object();
  out += '\n';
  return out;
}

int exit_status(const Findings& findings) {
  return count(findings, Finding::State::kCannot) > 0 ? 1 : 0;
}

}  // namespace ceems::exporter
