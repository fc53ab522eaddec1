#include "api/request/params.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "base/time/durations.h"
#include "net/http.h"

namespace ceems::api {
namespace {
constexpr std::int64_t kDaySeconds = std::int64_t{24} * 60 * 60;
constexpr std::int64_t kRounding = 900;
constexpr std::int64_t kMaxSeconds = 253'402'300'799;  // 9999-12-31T23:59:59Z

void add_value(std::vector<std::string>& list, std::string value) {
  if (!value.empty() && std::ranges::find(list, value) == list.end()) {
    list.push_back(std::move(value));
  }
}

void set_first(std::string& target, std::string value) {
  if (target.empty()) {
    target = std::move(value);
  }
}

constexpr std::array<std::string_view, 5> kGroupColumns{"cluster_id", "username", "project",
                                                        "groupname", "resource_manager"};

/// Sorted by Param.
constexpr std::array kParams = {
    ParamInfo{Param::kClusterId, "cluster_id", ParamType::kTexts, "Only these clusters.", "hpc-a"},
    ParamInfo{
        Param::kProject, "project", ParamType::kTexts,
        "Only these projects. On `units` and `users` the service accounts `project:svc` of the "
        "caller's projects are included.",
        "fluids"},
    ParamInfo{Param::kUser, "user", ParamType::kTexts,
              "Only these users; for usage, all members of their projects.", "ada"},
    ParamInfo{Param::kUuid, "uuid", ParamType::kTexts,
              "Only units with these ids. A list of units then has no window: `from`, `to` and "
              "`running` are ignored.",
              "7001"},
    ParamInfo{Param::kFrom, "from", ParamType::kSeconds,
              "Start of the window, seconds since 1970. Default: 24 hours before the end.",
              "1767139200"},
    ParamInfo{Param::kTo, "to", ParamType::kSeconds,
              "End of the window, seconds since 1970. Default: 24 hours after `from`, or now if "
              "`from` is absent; for `usage/current` always now.",
              "1767225600"},
    ParamInfo{Param::kRunning, "running", ParamType::kFlag,
              "If present, units that have not ended are included.", "true"},
    ParamInfo{Param::kField, "field", ParamType::kFields,
              "Fields of the answer. Unknown names are ignored as long as one is known.",
              "project"},
    ParamInfo{Param::kTimeZone, "timezone", ParamType::kText,
              "IANA name of the time zone of the times. Default, also for unknown names: that of "
              "the server.",
              "Europe/Paris"},
    ParamInfo{Param::kGroupBy, "groupby", ParamType::kGroups,
              "Further columns to group by. Usage is always grouped by cluster, user and project.",
              "groupname"},
    ParamInfo{Param::kExperimental, "experimental", ParamType::kFlag,
              "If present, sums over days instead of units.", "true"},
    ParamInfo{Param::kTerminated, "__terminated", ParamType::kFlag,
              "If present, only units that have ended. For tests.", "true"},
    ParamInfo{Param::kRole, "role", ParamType::kText,
              "`admin`: list the administrators instead of the users; other filters are ignored.",
              "admin"},
    ParamInfo{Param::kLimit, "limit", ParamType::kCount,
              "Number of rows per page. Without it and without `cursor`, all rows are returned; on "
              "lists 100, and at most 1000.",
              "100"},
    ParamInfo{
        Param::kCursor, "cursor", ParamType::kCursor,
        "End of the previous page: `next` of its answer. All other parameters must be those of "
        "that request; the target of its `Link` header contains them.",
        ""},
    ParamInfo{
        Param::kScope, "scope", ParamType::kText,
        "For leads of projects: `own` shows only what they see as users, `led` only what they "
        "see as leads. Other values are ignored.",
        "own"},
    ParamInfo{
        Param::kSort, "sort", ParamType::kText,
        "`id` (default): by cluster, id and start. `ended_at`: by end; units that have not "
        "ended count as the newest. An index finds the first rows by end. On lists: a column, "
        "by default `ended`.",
        "id"},
    ParamInfo{Param::kOrder, "order", ParamType::kText,
              "`asc` or `desc`. Default: `desc` with `sort=ended_at`, else `asc`; on lists `desc`, "
              "for texts `asc`.",
              "asc"},
    ParamInfo{
        Param::kAnonymous, "anonymous", ParamType::kFlag,
        "If present, a caller without identity gets 200 with an empty list and the ways to log "
        "in, instead of 401.",
        "true"},
    ParamInfo{
        Param::kMatch, "match", ParamType::kTexts,
        "Only rows whose field matches a pattern: `FIELD:PATTERN`, with a pattern of RE2 that "
        "must match the whole text. With several, all must match. At most 8 patterns of 256 "
        "bytes. Fields: texts of the row, such as `project`, `username`, `name`, `state`.",
        "project:fl.*"},
    ParamInfo{Param::kPartition, "tags.partition", ParamType::kTexts,
              "Only units of these partitions (SLURM).", "gpu"},
    ParamInfo{Param::kQos, "tags.qos", ParamType::kTexts,
              "Only units with these qualities of service (SLURM, k8s).", "long"},
    ParamInfo{Param::kQueue, "tags.queue", ParamType::kTexts,
              "Only units of these queues (LSF, OpenPBS).", "normal"},
    ParamInfo{Param::kWords, "q", ParamType::kText,
              "Words; each begins the id or is in the name, user or project. Without `from` and "
              "`to` there is no window then. Of nodes: each is in the name.",
              "train ada"},
    ParamInfo{Param::kState, "state", ParamType::kTexts,
              "Only these states, in any case. `running`: those that have not ended; `failed`: all "
              "that count as failed. Several by commas, as with all lists of these endpoints.",
              "failed"},
    ParamInfo{Param::kPartitionName, "partition", ParamType::kTexts,
              "Only these partitions or queues.", "gpu"},
    ParamInfo{Param::kAdvice, "advice", ParamType::kTexts,
              "Only units with a finding of these rules; `any`: with any.", "mem-excess"},
    ParamInfo{Param::kCpu, "cpu", ParamType::kText,
              "Range of CPU use in percent: `0..20`, `50..`, `..5` or `0`. Units without the value "
              "are left out, with all ranges.",
              "0..20"},
    ParamInfo{Param::kMem, "mem", ParamType::kText, "Range of memory use in percent.", "..10"},
    ParamInfo{Param::kGpu, "gpu", ParamType::kText, "Range of GPU use in percent.", "0"},
    ParamInfo{Param::kGpuMem, "gpu_mem", ParamType::kText, "Range of GPU memory use in percent.",
              "50.."},
    ParamInfo{Param::kKwh, "kwh", ParamType::kText, "Range of energy in kWh.", "1.."},
    ParamInfo{Param::kUnused, "unused", ParamType::kText,
              "Range of the energy of the idle power of what was reserved, in kWh.", "0.5.."},
    ParamInfo{Param::kNotUsed, "not_used", ParamType::kText,
              "Range of the energy of the idle power of what was reserved and not used, in kWh.",
              "0.5.."},
    ParamInfo{Param::kGrams, "grams", ParamType::kText, "Range of emissions in g CO2e.", "1000.."},
    ParamInfo{Param::kWall, "wall", ParamType::kText, "Range of the running time in seconds.",
              "300.."},
    ParamInfo{Param::kColumns, "columns", ParamType::kTexts,
              "Columns of the answer, in this order. Default: all.", "uuid,name,kwh"},
    ParamInfo{
        Param::kFormat, "format", ParamType::kText,
        "`json` (default). Lists: `csv`. Usage: `csv`, `xlsx`. Reports: `text`, `ascii`, "
        "`markdown`, `html`, or `js1` "
        "and `js1-json` as jobstats writes them. Budgets: `sacctmgr`. Reports of the site: `md`, "
        "`csv`, `json`, `xlsx` or `html`, each a file.",
        "json"},
    ParamInfo{Param::kFacets, "facets", ParamType::kTexts,
              "Count units by these: `state`, `project`, `user`, `cluster`, `partition`, `advice`.",
              "state,user"},
    ParamInfo{Param::kHeat, "heat", ParamType::kText,
              "Count units by two of `cpu`, `mem`, `gpu`, `gpu_mem`.", "cpu,mem"},
    ParamInfo{Param::kBins, "bins", ParamType::kText, "Bins of `heat` in each direction: 2 to 50.",
              "20"},
    ParamInfo{Param::kStep, "step", ParamType::kText, "`hour`, `day` (default) or `month`.", "day"},
    ParamInfo{
        Param::kBy, "by", ParamType::kText,
        "`none` (default), `project`, `user`, `cluster` or `component`; of idle units `project`, "
        "`partition`, `user` or `cluster`; of what helped `project` (default) or `rule`; of a "
        "unit's series `sum` (default), `node`, `gpu` or "
        "`component`.",
        "project"},
    ParamInfo{
        Param::kTop, "top", ParamType::kText,
        "How many groups; the rest is one more. 1 to 50, default 5. Of kinds 1 to 100, default 20.",
        "5"},
    ParamInfo{Param::kPrevious, "previous", ParamType::kFlag,
              "If present, also the period of the same length before.", "true"},
    ParamInfo{Param::kHost, "host", ParamType::kText, "Name of a node.", "n079"},
    ParamInfo{
        Param::kMetric, "metric", ParamType::kTexts,
        "Only these series. Of a node: `cpu`, `memory`, `gpu`, `power`, `units`; default: all. "
        "Of the map of nodes one of `power` (default), `cpu`, `memory`, `gpu`, `state`. "
        "Of a unit: `cpu`, `memory`, `power`, `gpu_use`, `gpu_sm`, `gpu_memory`, `gpu_clock`, "
        "`gpu_power`, `io_read`, `io_write`, `net_in`, `net_out`, `psi_cpu`, `psi_memory`, "
        "`ipc`, `intensity`, `emissions`; default: the first three.",
        "cpu,power"},
    ParamInfo{Param::kStart, "start", ParamType::kText,
              "The start of the run, in milliseconds since 1970, of an id that ran several times. "
              "Default: the last run.",
              "1767139200000"},
    ParamInfo{Param::kSoFar, "so_far", ParamType::kFlag,
              "If present, a unit that still runs has a report, too.", "true"},
    ParamInfo{Param::kLanguage, "lang", ParamType::kText,
              "Language of the texts: `en`, `de` or `fr`. Default, also for others: `en`.", "en"},
    ParamInfo{Param::kWidth, "width", ParamType::kText,
              "Columns of a text, from 60 to 240. Default: 80.", "80"},
    ParamInfo{Param::kAllFindings, "all", ParamType::kFlag,
              "If present, texts show all suggestions, not only the first three.", "true"},
    ParamInfo{Param::kRule, "rule", ParamType::kTexts, "Only findings of these rules.",
              "mem-excess"},
    ParamInfo{Param::kSeverity, "severity", ParamType::kText,
              "Only findings that matter at least so much: `good` (all), `info` (default), "
              "`suggest` or `important`.",
              "suggest"},
    ParamInfo{Param::kMonth, "month", ParamType::kText, "A month. Default: this one.", "2026-11"},
    ParamInfo{Param::kAggregation, "agg", ParamType::kText,
              "`lines` (default): at most 64 lines a chart, and their quantiles if there are more. "
              "`bins`: at most 4096 lines of at most 24 points. `mean`: the mean of these.",
              "lines"},
    ParamInfo{Param::kPoints, "points", ParamType::kText,
              "The most points of a line: 2 to 300 (default).", "300"},
    ParamInfo{Param::kTokenId, "id", ParamType::kText, "The ID of a personal token.",
              "pRX3vZy0q1Tk"},
    ParamInfo{Param::kKind, "kind", ParamType::kText, "The kind of the report.", "ghg"},
    ParamInfo{Param::kPeriod, "period", ParamType::kText, "A year or a month.", "2025"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kParams.size(); ++i) {
    if (kParams.at(i).param != static_cast<Param>(i)) {
      return false;
    }
  }
  return true;
}
static_assert(in_order());

/// Adds a value of "tags.NAME".
void add_tag(std::vector<store::TagFilter>& tags, std::string_view name, std::string value) {
  if (value.empty()) {
    return;
  }
  auto filter = std::ranges::find(tags, name, &store::TagFilter::name);
  if (filter == tags.end()) {
    filter = tags.insert(filter, {.name = std::string(name)});
  }
  add_value(filter->values, std::move(value));
}

void take(Params& params, Param param, std::string value) {
  switch (param) {
    case Param::kClusterId:
      add_value(params.clusters, std::move(value));
      break;
    case Param::kProject:
      add_value(params.projects, std::move(value));
      break;
    case Param::kUser:
      add_value(params.users, std::move(value));
      break;
    case Param::kUuid:
      add_value(params.uuids, std::move(value));
      break;
    case Param::kField:
      add_value(params.fields, std::string(trim(value)));
      break;
    case Param::kGroupBy:
      add_value(params.group_by, std::string(trim(value)));
      break;
    case Param::kFrom:
      set_first(params.from, std::move(value));
      break;
    case Param::kTo:
      set_first(params.to, std::move(value));
      break;
    case Param::kTimeZone:
      set_first(params.time_zone, std::move(value));
      break;
    case Param::kRole:
      set_first(params.role, std::move(value));
      break;
    case Param::kLimit:
      set_first(params.limit, std::move(value));
      break;
    case Param::kCursor:
      set_first(params.cursor, std::move(value));
      break;
    case Param::kScope:
      set_first(params.scope, std::move(value));
      break;
    case Param::kSort:
      set_first(params.sort, std::move(value));
      break;
    case Param::kOrder:
      set_first(params.order, std::move(value));
      break;
    case Param::kRunning:
      params.running = true;
      break;
    case Param::kExperimental:
      params.experimental = true;
      break;
    case Param::kTerminated:
      params.terminated = true;
      break;
    case Param::kAnonymous:
      params.anonymous = true;
      break;
    case Param::kStart:
      set_first(params.start, std::move(value));
      break;
    case Param::kLanguage:
      set_first(params.language, std::move(value));
      break;
    case Param::kWidth:
      set_first(params.width, std::move(value));
      break;
    case Param::kSoFar:
      params.so_far = true;
      break;
    case Param::kAllFindings:
      params.all_findings = true;
      break;
    case Param::kMatch:
      add_value(params.match, std::move(value));
      break;
    case Param::kPartition:
    case Param::kQos:
    case Param::kQueue:
      add_tag(params.tags, info_of(param).name.substr(std::string_view("tags.").size()),
              std::move(value));
      break;
    default:
      params.others.emplace_back(param, std::move(value));
      break;
  }
}

struct Bounds {
  std::optional<std::int64_t> from, to;
};

Result<Bounds> parse_bounds(const Params& params) {
  Bounds bounds;
  CEEMS_TRY(from, parse_seconds("from", params.from));
  bounds.from = from;
  CEEMS_TRY(to, parse_seconds("to", params.to));
  bounds.to = to;
  return bounds;
}

Result<> check_length(std::int64_t from, std::int64_t to, std::int64_t max_period_ms) {
  if (max_period_ms > 0 && (to - from) > max_period_ms / kSecondMs) {
    return fail(ErrorCode::kInvalidArgument, "maximum query window exceeded");
  }
  return {};
}

std::int64_t floor_to(std::int64_t value, std::int64_t step) {
  const std::int64_t rest = value % step;
  return value - (rest < 0 ? rest + step : rest);
}

}  // namespace

std::string_view Params::text(Param param) const {
  for (const auto& [other, value] : others) {
    if (other == param && !value.empty()) {
      return value;
    }
  }
  return {};
}

std::vector<std::string> Params::list(Param param) const {
  std::vector<std::string> values;
  for (const auto& [other, value] : others) {
    if (other == param) {
      values.push_back(value);
    }
  }
  return split_lists(values);
}

bool Params::has(Param param) const {
  return std::ranges::any_of(others, [param](const auto& other) { return other.first == param; });
}

std::unexpected<Error> wrong_parameter(std::string_view message) {
  return fail(ErrorCode::kInvalidArgument, "query parameter {}", message);
}

std::vector<std::string> split_lists(const std::vector<std::string>& values) {
  std::vector<std::string> list;
  for (const std::string& value : values) {
    for (const std::string_view one : split(value, ',')) {
      add_value(list, std::string(trim(one)));
    }
  }
  return list;
}

std::span<const ParamInfo> all_params() {
  return kParams;
}

const ParamInfo& info_of(Param param) {
  return kParams.at(static_cast<std::size_t>(param));
}

std::span<const std::string_view> group_columns() {
  return kGroupColumns;
}

Params parse_params(std::string_view query) {
  return parse_params(query, ParamSet::all());
}

Params parse_params(std::string_view query, ParamSet accepted) {
  Params params;
  for (auto& [key, value] : net::parse_query(query)) {
    const auto info = std::ranges::find(kParams, std::string_view(key), &ParamInfo::name);
    if (info != kParams.end() && accepted.contains(info->param)) {
      take(params, info->param, std::move(value));
    }
  }
  return params;
}

Result<std::optional<std::int64_t>> parse_seconds(std::string_view name, std::string_view text) {
  if (text.empty()) {
    return std::nullopt;
  }
  const auto seconds = parse_int<std::int64_t>(text);
  if (!seconds || *seconds > kMaxSeconds || *seconds < -kMaxSeconds) {
    return fail(ErrorCode::kInvalidArgument, "query parameter '{}': malformed timestamp", name);
  }
  return *seconds;
}

Result<Sorting> parse_sorting(const Params& params) {
  if (!params.sort.empty() && params.sort != "id" && params.sort != "ended_at") {
    return fail(ErrorCode::kInvalidArgument, "query parameter 'sort': expected 'id' or 'ended_at'");
  }
  if (!params.order.empty() && params.order != "asc" && params.order != "desc") {
    return fail(ErrorCode::kInvalidArgument, "query parameter 'order': expected 'asc' or 'desc'");
  }
  const bool by_end = params.sort == "ended_at";
  return Sorting{.by = by_end ? store::UnitOrder::kByEnd : store::UnitOrder::kById,
                 .descending = params.order.empty() ? by_end : params.order == "desc"};
}

Result<std::optional<std::size_t>> parse_limit(const Params& params) {
  if (params.limit.empty()) {
    return params.cursor.empty() ? std::optional<std::size_t>()
                                 : static_cast<std::size_t>(kDefaultLimit);
  }
  const auto limit = parse_int<std::int64_t>(params.limit);
  if (!limit || *limit < 1 || *limit > kMaxLimit) {
    return fail(ErrorCode::kInvalidArgument,
                "query parameter 'limit': expected a whole number from 1 to {}", kMaxLimit);
  }
  return static_cast<std::size_t>(*limit);
}

Result<store::TimeRange> parse_window(const Params& params,
                                      std::int64_t now_ms,
                                      std::int64_t max_period_ms) {
  CEEMS_TRY(bounds, parse_bounds(params));
  std::int64_t to = now_ms / kSecondMs;
  std::int64_t from = to - kDaySeconds;
  if (bounds.from) {
    from = bounds.from.value_or(from);
    to = bounds.to.value_or(from + kDaySeconds);
  } else if (bounds.to) {
    to = bounds.to.value_or(to);
    from = to - kDaySeconds;
  }
  CEEMS_TRY(check_length(from, to, max_period_ms));
  return store::TimeRange{from * kSecondMs, to * kSecondMs};
}

Result<store::TimeRange> parse_rounded_window(const Params& params,
                                              std::int64_t now_ms,
                                              std::int64_t max_period_ms) {
  CEEMS_TRY(bounds, parse_bounds(params));
  const std::int64_t now = now_ms / kSecondMs;
  const std::int64_t from = bounds.from.value_or(now - kDaySeconds);
  const std::int64_t to = bounds.to.value_or(now);
  CEEMS_TRY(check_length(from, to, max_period_ms));
  return store::TimeRange{floor_to(from, kRounding) * kSecondMs,
                          floor_to(to + kRounding - 1, kRounding) * kSecondMs};
}

Result<std::vector<std::size_t>> select_fields(std::span<const store::Field> all,
                                               const std::vector<std::string>& names) {
  std::vector<std::size_t> fields;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (names.empty() || std::ranges::find(names, all[i].name) != names.end()) {
      fields.push_back(i);
    }
  }
  if (fields.empty()) {
    return fail(ErrorCode::kInvalidArgument, "invalid query fields");
  }
  return fields;
}

}  // namespace ceems::api
