#include "exporter/run/report/summary.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"

namespace ceems::exporter::run {
namespace {

constexpr std::size_t kMaxItems = 1024;  // of a list
constexpr std::size_t kMaxDomains = 64;
constexpr int kDepth = 4;

void write_optional(JsonWriter& json, std::string_view name, const std::optional<double>& value) {
  if (value) {
    json.member(name, *value);
  }
}

template <typename Value>
void write_map(JsonWriter& json, std::string_view name, const std::map<std::string, Value>& map) {
  json.key(name).begin_object();
  for (const auto& [key, value] : map) {
    json.member(key, value);
  }
  json.end_object();
}

/// Reads values of members; each returns false if it is not of the type.
class Reader {
 public:
  explicit Reader(JsonScanner& scanner) : scanner_(scanner) {}
  bool read(std::string& text) { return scanner_.string(text); }
  bool read(double& value) {
    const auto number = parse_double(scanner_.number());
    value = number.value_or(-1);
    return value >= 0 && std::isfinite(value);
  }
  bool read(std::optional<double>& value) { return read(value.emplace()); }
  bool read(std::int64_t& value) {
    const auto number = parse_int<std::int64_t>(scanner_.number());
    value = number.value_or(-1);
    return value >= 0 && value < kMaxInteger;
  }
  bool read(std::uint64_t& value) {
    std::int64_t number = 0;
    const bool good = read(number);
    value = static_cast<std::uint64_t>(number);
    return good;
  }
  bool read(std::optional<int>& value) {
    std::int64_t number = 0;
    const bool good = read(number) && number <= std::numeric_limits<int>::max();
    value = static_cast<int>(number);
    return good;
  }
  bool read(bool& value) {
    value = scanner_.take_word("true");
    return value || scanner_.take_word("false");
  }
  template <typename Value>
  bool read(std::map<std::string, Value>& map) {
    return each_member(scanner_, [&](const std::string& name) {
      return map.size() < kMaxDomains && read(map[name]);
    });
  }
  template <typename Item>
  bool read(std::vector<Item>& items) {
    if (!scanner_.take('[')) {
      return false;
    }
    while (!scanner_.take(']')) {
      if ((!items.empty() && !scanner_.take(',')) || items.size() >= kMaxItems ||
          !read(items.emplace_back())) {
        return false;
      }
    }
    return true;
  }
  bool skip() {
    std::string ignored;
    return scanner_.value(ignored, kDepth);
  }

 private:
  static constexpr std::int64_t kMaxInteger = std::int64_t{1} << 53U;

  bool read(GpuSummary& gpu) {
    return each_member(scanner_, [&](const std::string& name) {
      return name == "uuid"             ? read(gpu.uuid)
             : name == "index"          ? read(gpu.index)
             : name == "busy_s"         ? read(gpu.busy_seconds)
             : name == "sm_s"           ? read(gpu.sm_seconds)
             : name == "mem_peak_bytes" ? read(gpu.memory_peak_bytes)
                                        : skip();
    });
  }
  bool read(RegionSummary& region) {
    return each_member(scanner_, [&](const std::string& name) {
      return name == "region"          ? read(region.name)
             : name == "seconds"       ? read(region.seconds)
             : name == "count"         ? read(region.count)
             : name == "energy_j"      ? read(region.joules)
             : name == "self_energy_j" ? read(region.self_joules)
                                       : skip();
    });
  }
  bool read(ResultSummary& result) {
    return each_member(scanner_, [&](const std::string& name) {
      return name == "result" ? read(result.name)
             : name == "unit" ? read(result.measure)
             : name == "n"    ? read(result.total)
                              : skip();
    });
  }
  bool read(FomSummary& fom) {
    return each_member(scanner_, [&](const std::string& name) {
      return name == "fom"       ? read(fom.name)
             : name == "unit"    ? read(fom.measure)
             : name == "last"    ? read_signed(fom.last)
             : name == "mean"    ? read_signed(fom.mean)
             : name == "seconds" ? read(fom.seconds)
                                 : skip();
    });
  }
  bool read_signed(double& value) {
    const auto number = parse_double(scanner_.number());
    value = number.value_or(0);
    return number && std::isfinite(value);
  }
  JsonScanner& scanner_;
};

void write_marks(JsonWriter& json, const NodeSummary& summary) {
  json.key("regions").begin_array();
  for (const RegionSummary& region : summary.regions) {
    json.begin_object().member("region", region.name).member("seconds", region.seconds);
    json.member("count", static_cast<std::int64_t>(region.count));
    write_optional(json, "energy_j", region.joules);
    write_optional(json, "self_energy_j", region.self_joules);
    json.end_object();
  }
  json.end_array().key("results").begin_array();
  for (const ResultSummary& result : summary.results) {
    json.begin_object().member("result", result.name).member("unit", result.measure);
    json.member("n", result.total).end_object();
  }
  json.end_array().key("fom").begin_array();
  for (const FomSummary& fom : summary.foms) {
    json.begin_object().member("fom", fom.name).member("unit", fom.measure);
    json.member("last", fom.last).member("mean", fom.mean).member("seconds", fom.seconds);
    json.end_object();
  }
  json.end_array();
}

bool read_member(Reader& reader, const std::string& name, NodeSummary& summary, double& version) {
  return name == "v"                  ? reader.read(version)
         : name == "job"              ? reader.read(summary.job)
         : name == "name"             ? reader.read(summary.name)
         : name == "cluster"          ? reader.read(summary.cluster)
         : name == "node"             ? reader.read(summary.node)
         : name == "unit"             ? reader.read(summary.unit)
         : name == "t0"               ? reader.read(summary.begin_ms)
         : name == "t1"               ? reader.read(summary.end_ms)
         : name == "ended"            ? reader.read(summary.ended)
         : name == "exit_status"      ? reader.read(summary.exit_status)
         : name == "seconds"          ? reader.read(summary.seconds)
         : name == "cpus"             ? reader.read(summary.cpus)
         : name == "cpu_seconds"      ? reader.read(summary.cpu_seconds)
         : name == "cpu_max"          ? reader.read(summary.cpu_max)
         : name == "mem_peak_bytes"   ? reader.read(summary.memory_peak_bytes)
         : name == "mem_limit_bytes"  ? reader.read(summary.memory_limit_bytes)
         : name == "energy_j"         ? reader.read(summary.energy_joules)
         : name == "idle_energy_j"    ? reader.read(summary.idle_energy_joules)
         : name == "method"           ? reader.read(summary.method)
         : name == "gpus"             ? reader.read(summary.gpus)
         : name == "regions"          ? reader.read(summary.regions)
         : name == "results"          ? reader.read(summary.results)
         : name == "fom"              ? reader.read(summary.foms)
         : name == "placement"        ? reader.read(summary.placement)
         : name == "placement_faults" ? reader.read(summary.placement_faults)
         : name == "samples"          ? reader.read(summary.samples)
         : name == "gaps"             ? reader.read(summary.gaps)
                                      : reader.skip();
}

}  // namespace

double NodeSummary::total_joules() const {
  double sum = 0;
  for (const auto& [domain, joules] : energy_joules) {
    sum += joules;
  }
  return sum;
}

double NodeSummary::joules(std::string_view domain) const {
  const auto found = energy_joules.find(std::string(domain));
  return found == energy_joules.end() ? 0 : found->second;
}

double NodeSummary::elapsed_seconds() const {
  return end_ms > begin_ms ? static_cast<double>(end_ms - begin_ms) / 1e3 : 0;
}

std::string to_json(const NodeSummary& summary) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object();
  json.member("v", 1).member("job", summary.job).member("name", summary.name);
  json.member("cluster", summary.cluster).member("node", summary.node).member("unit", summary.unit);
  json.member("user_mode", true).member("t0", summary.begin_ms).member("t1", summary.end_ms);
  json.member("ended", summary.ended);
  if (summary.exit_status) {
    json.member("exit_status", *summary.exit_status);
  }
  json.member("seconds", summary.seconds).member("cpus", summary.cpus);
  write_map(json, "method", summary.method);
  json.member("cpu_seconds", summary.cpu_seconds);
  write_optional(json, "cpu_max", summary.cpu_max);
  write_optional(json, "mem_peak_bytes", summary.memory_peak_bytes);
  write_optional(json, "mem_limit_bytes", summary.memory_limit_bytes);
  write_map(json, "energy_j", summary.energy_joules);
  write_map(json, "idle_energy_j", summary.idle_energy_joules);
  json.key("gpus").begin_array();
  for (const GpuSummary& gpu : summary.gpus) {
    json.begin_object().member("uuid", gpu.uuid).member("index", gpu.index);
    write_optional(json, "busy_s", gpu.busy_seconds);
    write_optional(json, "sm_s", gpu.sm_seconds);
    write_optional(json, "mem_peak_bytes", gpu.memory_peak_bytes);
    json.end_object();
  }
  json.end_array();
  write_marks(json, summary);
  json.member("placement", summary.placement).key("placement_faults").begin_array();
  for (const std::string& fault : summary.placement_faults) {
    json.value(fault);
  }
  json.end_array();
  json.member("samples", static_cast<std::int64_t>(summary.samples));
  json.member("gaps", static_cast<std::int64_t>(summary.gaps));
  json.end_object();
  return text + "\n";
}

Result<NodeSummary> parse_summary(std::string_view text) {
  JsonScanner scanner(text);
  Reader reader(scanner);
  NodeSummary summary;
  double version = 0;
  const bool good = each_member(scanner, [&](const std::string& name) {
    return read_member(reader, name, summary, version);
  });
  if (!good || !scanner.at_end()) {
    return fail(ErrorCode::kParse, "not a summary of a node");
  }
  if (version != 1) {
    return fail(ErrorCode::kParse, "version {} of a summary; expected 1", version);
  }
  return summary;
}

}  // namespace ceems::exporter::run
