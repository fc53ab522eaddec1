#include "report/stored.h"

#include <zstd.h>

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/json.hpp>

#include "base/json.h"
#include "crypto/base64.h"

namespace ceems::report {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;  // of JSON

/// Writes members. What is empty or not known is left out.
class Writing {
 public:
  explicit Writing(JsonWriter& json) : json_(json) {}

  void operator()(std::string_view name, const std::string& text) {
    if (!text.empty()) {
      json_.member(name, text);
    }
  }
  void operator()(std::string_view name, const Number& number) {
    if (number) {
      json_.member(name, *number);
    }
  }
  void operator()(std::string_view name, const std::int64_t& number) { json_.member(name, number); }
  void operator()(std::string_view name, const std::size_t& number) {
    json_.member(name, static_cast<std::int64_t>(number));
  }
  void operator()(std::string_view name, const bool& set) {
    if (set) {
      json_.member(name, set);
    }
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void operator()(std::string_view name, const Enum& value) {
    json_.member(name, static_cast<std::int64_t>(value));
  }
  template <typename Value, typename Compare>
  void operator()(std::string_view name, const std::map<std::string, Value, Compare>& map) {
    json_.key(name).begin_object();
    for (const auto& [key, value] : map) {
      json_.member(key, value);
    }
    json_.end_object();
  }
  void operator()(std::string_view name, const std::vector<std::string>& texts) {
    json_.key(name).begin_array();
    for (const std::string& text : texts) {
      json_.value(text);
    }
    json_.end_array();
  }
  void lines(const std::vector<advice::Line>& lines) { (*this)("lines", lines); }
  template <typename Part>
  void operator()(std::string_view name, const std::vector<Part>& parts) {
    json_.key(name).begin_array();
    for (const Part& part : parts) {
      json_.begin_object();
      members(*this, part);
      json_.end_object();
    }
    json_.end_array();
  }

 private:
  JsonWriter& json_;
};

/// Reads the same members. What is missing, or of another kind, keeps its value.
class Reading {
 public:
  explicit Reading(const json::object& object) : object_(&object) {}

  void operator()(std::string_view name, std::string& text) const {
    if (const auto* value = find(name); value != nullptr && value->is_string()) {
      text = value->as_string();
    }
  }
  void operator()(std::string_view name, Number& number) const {
    if (const auto* value = find(name); value != nullptr && value->is_number()) {
      number = value->to_number<double>();
    }
  }
  void operator()(std::string_view name, std::int64_t& number) const {
    if (const auto* value = find(name); value != nullptr && value->is_int64()) {
      number = value->as_int64();
    }
  }
  void operator()(std::string_view name, std::size_t& number) const {
    std::int64_t read = 0;
    (*this)(name, read);
    number = read > 0 ? static_cast<std::size_t>(read) : 0;
  }
  void operator()(std::string_view name, bool& set) const {
    if (const auto* value = find(name); value != nullptr && value->is_bool()) {
      set = value->as_bool();
    }
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum& value) const {
    std::int64_t read = static_cast<std::int64_t>(value);
    (*this)(name, read);
    constexpr std::int64_t kMost = 3;  // of all enumerations
    value = static_cast<Enum>(read >= 0 && read <= kMost ? read : 0);
  }
  template <typename Value, typename Compare>
  void operator()(std::string_view name, std::map<std::string, Value, Compare>& map) const {
    if (const auto* value = find(name); value != nullptr && value->is_object()) {
      for (const auto& [key, member] : value->as_object()) {
        if constexpr (std::is_same_v<Value, double>) {
          if (member.is_number()) {
            map.emplace(key, member.template to_number<double>());
          }
        } else if (member.is_string()) {
          map.emplace(key, member.as_string());
        }
      }
    }
  }
  void operator()(std::string_view name, std::vector<std::string>& texts) const {
    for_each(name, [&texts](const json::value& value) {
      if (value.is_string()) {
        texts.emplace_back(value.as_string());
      }
    });
  }
  /// Reports that were stored before other managers had lines have the options of sbatch only.
  void lines(std::vector<advice::Line>& lines) const {
    (*this)("lines", lines);
    std::vector<std::string> options;
    std::vector<std::string> was;
    (*this)("sbatch", options);
    (*this)("was", was);
    for (std::size_t i = 0; i < options.size(); ++i) {
      lines.push_back(
          {.type = "#SBATCH " + options[i], .was = i < was.size() ? was[i] : std::string()});
    }
  }
  template <typename Part>
  void operator()(std::string_view name, std::vector<Part>& parts) const {
    for_each(name, [&parts](const json::value& value) {
      if (value.is_object()) {
        members(Reading(value.as_object()), parts.emplace_back());
      }
    });
  }

 private:
  [[nodiscard]] const json::value* find(std::string_view name) const {
    return object_->if_contains(json::string_view(name.data(), name.size()));
  }
  template <typename Each>
  void for_each(std::string_view name, const Each& each) const {
    if (const auto* value = find(name); value != nullptr && value->is_array()) {
      for (const json::value& one : value->as_array()) {
        each(one);
      }
    }
  }

  const json::object* object_;
};

/// The members of each part, for both directions: `part` is constant when they are written.
template <typename Archive, typename Part>
void members(Archive&& archive, Part& part) {
  using Kind = std::remove_const_t<Part>;
  if constexpr (std::is_same_v<Kind, GpuUse>) {
    archive("index", part.index);
    archive("uuid", part.uuid);
    archive("busy", part.busy);
    archive("sm", part.sm);
    archive("mem_peak", part.mem_peak);
    archive("mem_total", part.mem_total);
  } else if constexpr (std::is_same_v<Kind, NodeUse>) {
    archive("node", part.node);
    archive("cpus", part.cpus);
    archive("cpu_seconds", part.cpu_seconds);
    archive("mem_peak", part.mem_peak);
    archive("mem_alloc", part.mem_alloc);
    archive("gpus", part.gpus);
  } else if constexpr (std::is_same_v<Kind, advice::Line>) {
    archive("type", part.type);
    archive("was", part.was);
  } else if constexpr (std::is_same_v<Kind, advice::Finding>) {
    archive("rule", part.rule);
    archive("severity", part.severity);
    archive("confidence", part.confidence);
    archive("runs", part.runs);
    archive("say", part.say);
    archive("values", part.values);
    archive("text", part.text);
    archive.lines(part.lines);
    archive("saves_kwh", part.saves_kwh);
  } else {
    static_assert(std::is_same_v<Kind, Report>);
    archive("cluster_id", part.cluster_id);
    archive("uuid", part.uuid);
    archive("started_ms", part.started_ms);
    archive("ended_ms", part.ended_ms);
    archive("started_text", part.started_text);
    archive("state", part.state);
    archive("coverage", part.coverage);
    archive("from_jobstats", part.from_jobstats);
    archive("job_name", part.job.name);
    archive("job_user", part.job.user);
    archive("job_project", part.job.project);
    archive("job_partition", part.job.partition);
    archive("job_qos", part.job.qos);
    archive("job_state", part.job.state);
    archive("job_manager", part.job.manager);
    archive("job_nodes", part.job.nodes);
    archive("job_cpus", part.job.cpus);
    archive("job_gpus", part.job.gpus);
    archive("job_elapsed", part.job.elapsed);
    archive("job_limit", part.job.limit);
    archive("job_waited", part.job.waited);
    archive("job_array", part.job.array);
    archive("use_cpu", part.use.cpu);
    archive("use_mem", part.use.mem);
    archive("use_mem_peak_node", part.use.mem_peak_node);
    archive("use_mem_alloc_node", part.use.mem_alloc_node);
    archive("use_gpu_busy", part.use.gpu_busy);
    archive("use_gpu_sm", part.use.gpu_sm);
    archive("use_gpu_mem", part.use.gpu_mem);
    archive("nodes", part.nodes);
    archive("kwh", part.energy.kwh);
    archive("idle_kwh", part.energy.idle_kwh);
    archive("domains", part.energy.domains);
    archive("method", part.energy.method);
    archive("grams", part.co2.grams);
    archive("provider", part.co2.provider);
    archive("cost", part.cost.amount);
    archive("currency", part.cost.currency);
    archive("family_runs", part.compared.runs);
    archive("family_kwh", part.compared.median_kwh);
    archive("family_cpu_low", part.compared.cpu_low);
    archive("family_cpu_high", part.compared.cpu_high);
    archive("family_mem", part.compared.mem_median);
    archive("family_gpu_low", part.compared.gpu_low);
    archive("family_gpu_high", part.compared.gpu_high);
    archive("month_share", part.compared.project_month_share);
    archive("findings", part.findings);
  }
}

/// Empty if zstd fails, which needs a lack of memory.
std::string packed(std::string_view text) {
  constexpr int kLevel = 3;
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), kLevel);
  bytes.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return bytes;
}

std::optional<std::string> unpacked(std::string_view bytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > kMaxBytes) {
    return std::nullopt;
  }
  std::string text(size, '\0');
  const std::size_t done = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  return ZSTD_isError(done) == 0 && done == size ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace

std::string to_stored(const Report& report) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object();
  members(Writing(json), report);
  json.end_object();
  return crypto::base64_encode(packed(text));
}

Result<Report> from_stored(std::string_view text) {
  const auto bytes = crypto::base64_decode(text);
  const auto read = bytes ? unpacked(*bytes) : std::nullopt;
  json::error_code error;
  const json::value value = read ? json::parse(*read, error) : json::value();
  if (error || !value.is_object()) {
    return fail(ErrorCode::kParse, "a stored report is malformed");
  }
  Report report;
  members(Reading(value.as_object()), report);
  std::erase_if(report.findings,
                [](const advice::Finding& finding) { return !finding.text.contains("en"); });
  return report;
}

}  // namespace ceems::report
