// Lines that Open XDMoD's shredder takes for sacct's: 26 fields without a header, moments in UTC
// (https://open.xdmod.org/resource-manager-slurm.html, "Input Format").
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/time/time_text.h"
#include "export/all.h"

namespace ceems::exporting {
namespace {

constexpr double kMebi = 1024.0 * 1024;

/// A separator or a line break inside a field would move the others.
std::string field(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == '|' || static_cast<unsigned char>(c) < ' ') {
      c = '_';
    }
  }
  return out;
}

/// As sacct writes it: without an offset.
std::string moment(std::int64_t ms) {
  std::string text = utc_text(ms);
  if (!text.empty()) {
    text.pop_back();
  }
  return text.empty() ? "Unknown" : text;
}

std::string count(std::optional<double> value) {
  return value && *value >= 0 ? fmt::format("{:.0f}", *value) : "";
}

std::string mebibytes(std::optional<double> bytes) {
  return bytes && *bytes > 0 ? fmt::format("{:.0f}M", std::ceil(*bytes / kMebi)) : "";
}

/// Trackable resources, such as `cpu=4,mem=8192M,node=1,gres/gpu=2`.
std::string resources(std::optional<double> cpus,
                      std::optional<double> bytes,
                      std::optional<double> nodes,
                      std::optional<double> gpus) {
  std::string out;
  const auto add = [&out](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
    }
  };
  add("cpu", count(cpus));
  add("mem", mebibytes(bytes));
  add("node", count(nodes));
  if (gpus && *gpus >= 1) {
    add("gres/gpu", count(gpus));
  }
  return out;
}

class Xdmod final : public Format {
 public:
  void add(const ExportedUnit& unit, std::string& out) override {
    const JsonMembers& has = unit.allocation;
    auto cpus = has.number("cpus");
    cpus = cpus ? cpus : has.number("vcpus");
    const auto asked = has.number("req_cpus");
    auto memory = has.number("mem");
    if (memory && unit.manager == "openstack") {
      *memory *= kMebi;
    }
    const auto asked_memory = has.number("req_mem") ? has.number("req_mem") : memory;
    const auto nodes = has.number("nodes") ? has.number("nodes") : std::optional<double>(1);
    const auto gpus = has.number("gpus");
    const auto limit = has.number("time_limit");
    std::string hosts = field(unit.tags.text("nodelist"));
    if (unit.manager != "slurm") {  // the others list hosts with | between them, now _
      hosts = unit.tags.text("nodelist");
      std::ranges::replace(hosts, '|', ',');
      hosts = field(hosts);
    }
    const std::string_view exit_code = unit.tags.text("exit_code");
    const auto eligible = has.number("eligible");
    const std::array<std::string, 26> fields{
        field(unit.shown_id()),
        field(unit.uuid),
        field(unit.cluster),
        field(unit.tags.first("partition", "queue")),
        field(unit.tags.text("qos")),
        field(unit.project),
        field(unit.group),
        field(unit.tags.text("gid")),
        field(unit.user),
        field(unit.tags.text("uid")),
        moment(unit.created_ms),
        moment(eligible ? static_cast<std::int64_t>(*eligible) : unit.created_ms),
        moment(unit.started_ms),
        moment(unit.ended_ms),
        elapsed_text(static_cast<std::int64_t>(unit.seconds())),
        exit_code.empty() ? "0:0" : field(exit_code),
        unit.state.empty() ? "COMPLETED" : field(unit.state),
        count(nodes),
        count(cpus),
        count(asked ? asked : cpus),
        mebibytes(asked_memory),
        resources(asked ? asked : cpus, asked_memory, nodes, gpus),
        resources(cpus, memory, nodes, gpus),
        limit ? elapsed_text(static_cast<std::int64_t>(*limit)) : "UNLIMITED",
        hosts,
        field(unit.name),
    };
    for (std::size_t i = 0; i < fields.size(); ++i) {
      out += fields.at(i);
      out += i + 1 < fields.size() ? '|' : '\n';
    }
  }
};

}  // namespace

FormatSpec xdmod_format() {
  return {.name = "xdmod",
          .help = "lines for xdmod-shredder -f slurm, of units of any resource manager",
          .create = [](const FormatOptions& /*options*/) -> std::unique_ptr<Format> {
            return std::make_unique<Xdmod>();
          }};
}

}  // namespace ceems::exporting
