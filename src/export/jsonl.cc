// JSON Lines (jsonlines.org): one object a unit, for programs.
#include <cmath>

#include "base/json.h"
#include "export/all.h"

namespace ceems::exporting {
namespace {

class JsonLines final : public Format {
 public:
  void add(const ExportedUnit& unit, std::string& out) override {
    JsonWriter json(out);
    json.begin_object().member("cluster", unit.cluster).member("manager", unit.manager);
    json.member("id", unit.uuid).member("shown_id", unit.shown_id()).member("name", unit.name);
    json.member("user", unit.user).member("group", unit.group).member("project", unit.project);
    json.member("partition", unit.tags.first("partition", "queue")).member("state", unit.state);
    json.member("created_ts", unit.created_ms).member("started_ts", unit.started_ms);
    json.member("ended_ts", unit.ended_ms).member("seconds", unit.seconds());
    for (const std::string_view name : {"nodes", "cpus", "vcpus", "gpus", "mem"}) {
      member(json, name, unit.allocation.number(name));
    }
    member(json, "cpu_kwh", unit.cpu_kwh);
    member(json, "gpu_kwh", unit.gpu_kwh);
    member(json, "co2e_g", unit.grams);
    if (unit.grams) {
      json.member("co2e_source", unit.emission_source);
    }
    json.end_object();
    out += '\n';
  }

 private:
  /// Absent if it is not known.
  static void member(JsonWriter& json, std::string_view name, std::optional<double> value) {
    if (value) {
      json.member(name, *value);
    }
  }
};

}  // namespace

FormatSpec jsonl_format() {
  return {.name = "jsonl",
          .help = "an object a line and unit, for programs",
          .create = [](const FormatOptions& /*options*/) -> std::unique_ptr<Format> {
            return std::make_unique<JsonLines>();
          }};
}

}  // namespace ceems::exporting
