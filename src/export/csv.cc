// Comma-separated values (RFC 4180), for spreadsheets, pandas and R.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/text/cells.h"
#include "export/all.h"

namespace ceems::exporting {
namespace {

constexpr std::array<std::string_view, 22> kColumns{
    "cluster",   "id",      "shown_id", "name",  "user",    "group",      "project", "partition",
    "state",     "created", "started",  "ended", "seconds", "nodes",      "cpus",    "gpus",
    "mem_bytes", "cpu_kwh", "gpu_kwh",  "kwh",   "co2e_g",  "co2e_source"};

class Csv final : public Format {
 public:
  void begin(std::string& out) override {
    for (const std::string_view column : kColumns) {
      put(out, column);
    }
    end_row(out);
  }

  void add(const ExportedUnit& unit, std::string& out) override {
    for (const std::string_view text :
         {std::string_view(unit.cluster), std::string_view(unit.uuid)}) {
      put(out, csv_cell(text));
    }
    put(out, csv_cell(unit.shown_id()));
    for (const std::string* text : {&unit.name, &unit.user, &unit.group, &unit.project}) {
      put(out, csv_cell(*text));
    }
    put(out, csv_cell(unit.tags.first("partition", "queue")));
    put(out, csv_cell(unit.state));
    for (const std::int64_t ms : {unit.created_ms, unit.started_ms, unit.ended_ms}) {
      put(out, utc_text(ms));
    }
    put(out, fmt::format("{}", unit.seconds()));
    number(out, unit.allocation.number("nodes"));
    const auto cpus = unit.allocation.number("cpus");
    number(out, cpus ? cpus : unit.allocation.number("vcpus"));
    number(out, unit.allocation.number("gpus"));
    // OpenStack's flavors have MiB, all others bytes.
    constexpr double kMebi = 1024.0 * 1024;
    const auto memory = unit.allocation.number("mem");
    number(out, memory && unit.manager == "openstack" ? std::optional(*memory * kMebi) : memory);
    number(out, unit.cpu_kwh);
    number(out, unit.gpu_kwh);
    number(out, unit.cpu_kwh || unit.gpu_kwh
                    ? std::optional(unit.cpu_kwh.value_or(0) + unit.gpu_kwh.value_or(0))
                    : std::nullopt);
    number(out, unit.grams);
    put(out, csv_cell(unit.emission_source));
    end_row(out);
  }

 private:
  static void put(std::string& out, std::string_view cell) {
    out += cell;
    out += ',';
  }
  /// All digits; an empty cell if it is not known, because that is not 0.
  static void number(std::string& out, std::optional<double> value) {
    put(out, value ? fmt::format("{}", *value) : "");
  }
  static void end_row(std::string& out) { out.replace(out.size() - 1, 1, "\r\n"); }
};

}  // namespace

FormatSpec csv_format() {
  return {.name = "csv",
          .help = "a table with a row a unit, for spreadsheets, pandas and R",
          .create = [](const FormatOptions& /*options*/) -> std::unique_ptr<Format> {
            return std::make_unique<Csv>();
          }};
}

}  // namespace ceems::exporting
