#include "store/facts/rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_members.h"
#include "base/strings.h"
#include "model/exit_reason.h"
#include "store/json.h"
#include "store/merge.h"
#include "store/schema/fact_columns.h"
#include "store/shown_id.h"
#include "store/unit_name.h"

namespace ceems::store {
namespace {

constexpr std::size_t kMaxText = 512;
constexpr std::size_t kMaxNormalName = 128;
constexpr std::size_t kMaxWord = 32;
/// No sum of a few million of them overflows.
constexpr double kMaxNumber = 4e12;
constexpr double kMaxSmallParts = 1e15;

std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) {
    return std::string(text);
  }
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;  // not within a character
  }
  return std::string(text.substr(0, end));
}

/// The number in units of 1/scale; -1 if it is not one, or is negative.
std::int64_t scaled(std::optional<double> value, double scale) {
  if (!value || !std::isfinite(*value) || *value < 0) {
    return kUnknownFact;
  }
  return std::llround(std::min(*value * scale, scale > 1 ? kMaxSmallParts : kMaxNumber * 1e3));
}

model::MetricMap map_of(const FactSource& source, std::size_t place) {
  return parse_metric_map(source.maps.at(place)).value_or(model::MetricMap());
}
model::MetricMap map_of(const FactSource& source, model::Metric metric) {
  return map_of(source, static_cast<std::size_t>(metric) + 1);
}

std::optional<double> entry(const model::MetricMap& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

/// "global", or the mean of what there is instead.
std::int64_t use_of(const model::MetricMap& map) {
  constexpr double kHundredths = 100;
  constexpr std::int64_t kMaxShare = 1'000'000;  // 10,000 %: more is a mistake of the source
  return std::min(scaled(entry(map, "global"), kHundredths), kMaxShare);
}

/// Emissions of the same source, which that of the CPU part decides, as on the web page.
std::optional<double> grams_of(const model::MetricMap& cpu, const model::MetricMap& gpu) {
  const std::string_view source = first_source(cpu.empty() ? gpu : cpu);
  if (source.empty()) {
    return std::nullopt;
  }
  return value_or_zero(cpu, source) + value_or_zero(gpu, source);
}

/// What was allocated, where the manager does not say it: time of the resource by running time.
std::optional<double> by_time(const model::MetricMap& times, std::string_view name, double unit) {
  const double wall = value_or_zero(times, "walltime");
  const auto time = entry(times, name);
  return wall > 0 && time ? std::optional(*time / wall * unit) : std::nullopt;
}

std::int64_t positive(std::optional<double> value, double scale) {
  return value && *value > 0 ? scaled(value, scale) : kUnknownFact;
}

constexpr double kMilli = 1000;
constexpr double kNano = 1e9;
constexpr double kMicro = 1e6;

/// The values of a row by the names of their columns.
class Row {
 public:
  template <typename Value>
  Row& set(std::size_t place, Value&& value) {
    values_.at(place) = std::forward<Value>(value);
    return *this;
  }
  [[nodiscard]] const SqlValue& at(std::size_t place) const { return values_.at(place); }
  [[nodiscard]] std::vector<SqlValue> take() && { return std::move(values_); }

 private:
  std::vector<SqlValue> values_{kFactRows.size()};
};

/// The place of a column, which is not looked for at run time.
consteval std::size_t operator""_column(const char* name, std::size_t size) {
  return fact_place(std::string_view(name, size));
}

/// What was measured, in the columns that also change when a gap is filled.
void set_measured(Row& row, const FactSource& source, const model::MetricMap& times) {
  using model::Metric;
  const auto count = [&times](std::string_view name) {
    return std::max<std::int64_t>(scaled(entry(times, name), 1), 0);
  };
  const auto use = [&source](Metric metric) { return use_of(map_of(source, metric)); };
  const auto energy = [&source](Metric metric) {
    return scaled(entry(map_of(source, metric), "total"), kNano);
  };
  const std::int64_t gpu_seconds = count("alloc_gputime");
  const std::int64_t cpu = energy(Metric::kTotalCpuEnergyUsageKwh);
  const std::int64_t gpu = energy(Metric::kTotalGpuEnergyUsageKwh);
  const bool known = cpu >= 0 || gpu >= 0;
  row.set("wall"_column, count("walltime"))
      .set("cpu_seconds"_column, count("alloc_cputime"))
      .set("gpu_seconds"_column, gpu_seconds)
      .set("cpu_use"_column, use(Metric::kAvgCpuUsage))
      .set("mem_use"_column, use(Metric::kAvgCpuMemUsage))
      .set("gpu_use"_column, gpu_seconds > 0 ? use(Metric::kAvgGpuUsage) : kUnknownFact)
      .set("gpu_mem_use"_column, gpu_seconds > 0 ? use(Metric::kAvgGpuMemUsage) : kUnknownFact)
      .set("cpu_energy"_column, cpu)
      .set("gpu_energy"_column, gpu)
      .set("energy"_column,
           known ? std::max<std::int64_t>(cpu, 0) + std::max<std::int64_t>(gpu, 0) : kUnknownFact)
      .set("grams"_column, scaled(grams_of(map_of(source, Metric::kTotalCpuEmissionsGms),
                                           map_of(source, Metric::kTotalGpuEmissionsGms)),
                                  kMicro));
  std::int64_t peak = kUnknownFact;
  std::int64_t idle_energy = kUnknownFact;
  std::int64_t not_used = kUnknownFact;
  std::int64_t idle_ms = 0;
  std::int64_t seen_ms = 0;
  if (source.window != nullptr) {
    peak = scaled(source.window->peak_memory_bytes, 1);
    idle_energy = scaled(source.window->idle_kwh, kNano);
    not_used = scaled(source.window->not_used_kwh, kNano);
    const auto share = source.window->gpu_idle_share;
    const double seconds = source.window_gpu_seconds;
    if (share && *share >= 0 && *share <= 1 && seconds > 0 && seconds < kMaxNumber / kMilli) {
      seen_ms = std::llround(seconds * kMilli);
      idle_ms = std::llround(*share * seconds * kMilli);
    }
  }
  row.set("peak_memory"_column, peak)
      .set("idle_energy"_column, idle_energy)
      .set("not_used_energy"_column, not_used)
      .set("gpu_idle_ms"_column, idle_ms)
      .set("gpu_seen_ms"_column, seen_ms);
}

void set_key(Row& row, const FactSource& source) {
  row.set("cluster_id"_column, source.cluster_id)
      .set("uuid"_column, source.unit->uuid)
      .set("started_at_ts"_column, source.unit->started_at_ts);
}

constexpr std::array<std::string_view, 13> kSourceTexts{
    "cluster_id",    "uuid",        "name",  "username",         "project",
    "state",         "allocation",  "tags",  "resource_manager", "started_at_ts",
    "created_at_ts", "ended_at_ts", "ignore"};

/// The word for the state. Of units that LSF, OpenPBS and Kubernetes ended because they used too
/// much memory, it is that of SLURM: their own word is the same for every failure, and the reason
/// is in the tags (TERM_MEMLIMIT of bhist(1); JOB_EXEC_KILL_MEM and ..._VMEM of OpenPBS's job.h;
/// OOMKilled of the kubelet).
std::string state_of(const model::Unit& unit, const JsonMembers& tags) {
  const bool too_much_memory = model::ran_out_of_memory(
      unit.resource_manager, unit.state, tags.text("exit_reason"), tags.text("exit_status"));
  return too_much_memory && unit.ended_at_ts > 0 ? "OUT_OF_MEMORY" : state_word(unit.state);
}

}  // namespace

std::string state_word(std::string_view state) {
  std::string word;
  for (const char c : trim(state)) {
    const bool lower = c >= 'a' && c <= 'z';
    if (!is_word(c, "_-") || word.size() == kMaxWord) {
      break;
    }
    word += lower ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return word;
}

WriterCall put_facts(const FactSource& source) {
  constexpr double kMebi = 1024 * 1024;
  const model::Unit& unit = *source.unit;
  const JsonMembers allocation = JsonMembers::parse(unit.allocation);
  const JsonMembers tags = JsonMembers::parse(unit.tags);
  const model::MetricMap times = map_of(source, 0);
  const auto first = [](std::optional<double> one, std::optional<double> other) {
    return one ? one : other;
  };
  auto cpus = first(allocation.number("cpus"), allocation.number("vcpus"));
  auto gpus = first(allocation.number("gpus"), allocation.number("vgpus"));
  // OpenStack counts memory in MiB, and pods name their GPUs as they like.
  auto memory = unit.resource_manager == "openstack" ? std::nullopt : allocation.number("mem");
  cpus = first(cpus, by_time(times, "alloc_cputime", 1));
  gpus = first(gpus, by_time(times, "alloc_gputime", 1));
  memory = first(memory, by_time(times, "alloc_cpumemtime", kMebi));
  Row row;
  set_key(row, source);
  set_measured(row, source, times);
  row.set("name"_column, shortened(unit.name, kMaxText))
      .set("name_norm"_column, shortened(normal_name(unit.name), kMaxNormalName))
      .set("username"_column, unit.username)
      .set("project"_column, unit.project)
      .set("state"_column, state_of(unit, tags))
      .set("queue"_column, shortened(tags.first("partition", "queue"), kMaxText))
      .set("array_id"_column, array_id(allocation))
      .set("created_at_ts"_column, unit.created_at_ts)
      .set("ended_at_ts"_column, std::max<std::int64_t>(unit.ended_at_ts, 0))
      .set("cpus"_column, scaled(cpus, kMilli))
      .set("memory"_column, scaled(memory, 1))
      .set("gpus"_column, scaled(gpus, kMilli))
      .set("nodes"_column, positive(allocation.number("nodes"), 1))
      .set("time_limit"_column, positive(allocation.number("time_limit"), 1))
      .set("req_cpus"_column, positive(allocation.number("req_cpus"), kMilli))
      .set("req_memory"_column, positive(allocation.number("req_mem"), 1))
      .set("ignore"_column, std::int64_t{unit.ignore ? 1 : 0});
  return {.statement = WriterStatement::kPutFacts, .values = std::move(row).take()};
}

WriterCall fill_facts_of(const FactSource& source) {
  static const std::vector<std::size_t> kPlaces = fill_facts_places();
  Row row;
  set_key(row, source);
  set_measured(row, source, map_of(source, 0));
  WriterCall call{.statement = WriterStatement::kFillFacts};
  for (const std::size_t place : kPlaces) {
    call.values.push_back(row.at(place));
  }
  return call;
}

WriterCall delete_facts(std::string_view cluster_id,
                        std::string_view uuid,
                        std::int64_t started_at_ts) {
  return {.statement = WriterStatement::kDeleteFacts,
          .values = {std::string(cluster_id), std::string(uuid), started_at_ts}};
}

std::string fact_source_columns() {
  std::string columns;
  for (const std::string_view name : kSourceTexts) {
    columns += fmt::format("{}{}", columns.empty() ? "" : ",", name);
  }
  columns += ",total_time_seconds";
  for (std::size_t metric = 0; metric < kFactMetrics; ++metric) {
    columns += fmt::format(",{}", column_name(static_cast<model::Metric>(metric)));
  }
  return columns;
}

FactSource make_source(const AnswerRow& row,
                       model::Unit& unit,
                       std::array<std::string, model::kMetricCount + 1>& maps) {
  FactSource source;
  source.cluster_id = row.text(0);
  std::size_t column = 1;
  for (std::string model::Unit::* text :
       {&model::Unit::uuid, &model::Unit::name, &model::Unit::username, &model::Unit::project,
        &model::Unit::state, &model::Unit::allocation, &model::Unit::tags,
        &model::Unit::resource_manager}) {
    unit.*text = row.text(column++);
  }
  unit.started_at_ts = row.integer(column++);
  unit.created_at_ts = row.integer(column++);
  unit.ended_at_ts = row.integer(column++);
  unit.ignore = row.integer(column++) != 0;
  for (std::size_t map = 0; map <= kFactMetrics; ++map) {
    maps.at(map) = row.text(column++);
    source.maps.at(map) = maps.at(map);
  }
  source.unit = &unit;
  return source;
}

}  // namespace ceems::store
