#include "tool/validate/record.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "crypto/base64.h"

namespace ceems::tool::validate {
namespace {

constexpr std::string_view kFormat = "ceems-energy-validation/1";

void write_node(JsonWriter& json, const NodeKind& node) {
  json.begin_object().member("cpu", node.cpu).member("cpu_family", node.cpu_family);
  json.member("sockets", node.sockets).member("cores", node.cores).member("cpus", node.cpus);
  json.member("memory_gib", node.memory_gib).member("virtual_machine", node.virtual_machine);
  json.key("gpus").begin_array();
  for (const std::string& gpu : node.gpus) {
    json.value(gpu);
  }
  json.end_array().member("kernel", node.kernel).end_object();
}

void write_step(JsonWriter& json, const Step& step) {
  json.begin_object().member("seconds", step.seconds).member("wall_watts", step.wall_watts);
  json.member("wall_deviation", step.wall_deviation).member("readings", step.readings);
  json.member("distinct", step.distinct).member("node_watts", step.node_watts);
  json.key("charged_watts").begin_array();
  for (const double watts : step.charged_watts) {
    json.value(watts);
  }
  json.end_array().member("others_busy", step.others_busy).end_object();
}

void write_window(JsonWriter& json, const Window& window) {
  json.begin_object().key("parts").begin_array();
  for (const Part& part : window.parts) {
    json.begin_object().member("load", to_string(part.load)).member("cpus", part.cpus).end_object();
  }
  json.end_array().key("steps").begin_array();
  for (const Step& step : window.steps) {
    write_step(json, step);
  }
  json.end_array().end_object();
}

void write_errors(JsonWriter& json, const std::vector<ClassError>& errors) {
  json.begin_array();
  for (const ClassError& error : errors) {
    json.begin_object().member("class", error.name).member("runs", error.runs);
    json.member("bias_percent", error.bias).member("error_percent", error.error);
    json.member("share_error_percent", error.share_error).end_object();
  }
  json.end_array();
}

}  // namespace

std::string_view to_string(LoadClass load) {
  constexpr std::array<std::string_view, kLoadClasses> kNames{"idle", "compute", "scalar",
                                                              "memory-bound", "mixed"};
  return kNames.at(static_cast<std::size_t>(load));
}

std::string canonical_text(const Record& record) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().member("format", kFormat).member("date", record.date);
  json.member("tool_version", record.tool_version);
  json.member("exporter_version", record.exporter_version).key("node");
  write_node(json, record.node);
  json.member("meter", record.meter).member("meter_model", record.meter_model);
  json.member("independent", record.independent).key("sources").begin_array();
  for (const EnergySource& source : record.sources) {
    json.begin_object().member("domain", source.domain).member("kind", source.kind);
    json.member("method", source.method).end_object();
  }
  json.end_array().member("settle_seconds", record.settle_seconds).key("errors");
  write_errors(json, record.errors);
  json.key("windows").begin_array();
  for (const Window& window : record.windows) {
    write_window(json, window);
  }
  json.end_array().end_object();
  return out;
}

std::string file_text(const SignedRecord& record) {
  std::string text = canonical_text(record.record);
  text.pop_back();
  text += ",\"signature\":{\"algorithm\":\"Ed25519\",\"public_key\":\"" +
          crypto::base64_encode(record.public_key) + "\",\"value\":\"" +
          crypto::base64_encode(record.signature) + "\"}}\n";
  // No string has such a part, because the quotes in strings are escaped.
  for (const std::string_view begin :
       {"{\"parts\":", "\"windows\":", "\"errors\":", "\"node\":", "\"signature\":"}) {
    for (auto at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 2)) {
      text.insert(at, "\n");
    }
  }
  return text;
}

}  // namespace ceems::tool::validate
