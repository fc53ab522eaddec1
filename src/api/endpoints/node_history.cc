// A node over time, and the units that ran on it.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "access/lists.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/chart_lines.h"
#include "api/request/list_params.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {
constexpr int kHistoryDigits = 4;

/// A node and a period.
struct NodeTime {
  std::string cluster, host;
  store::TimeRange period = {};
};

/// As the parameters say; the last 24 h by default.
Result<NodeTime> read_node_time(const Services& services, const Call& call) {
  constexpr std::int64_t kMaxDays = 31;
  const auto clusters = split_lists(call.params.clusters);
  const auto from = parse_seconds("from", call.params.from);
  const auto to = parse_seconds("to", call.params.to);
  NodeTime read{.cluster = {}, .host = std::string(call.params.text(Param::kHost))};
  if (!from || !to) {
    return fail((from ? to : from).error());
  }
  if (clusters.size() != 1) {
    return wrong_parameter("'cluster_id': expected one cluster");
  }
  if (read.host.empty()) {
    return wrong_parameter("'host': expected the name of a node");
  }
  read.cluster = clusters.front();
  read.period.to_ms = to->value_or(services.now_ms() / kSecondMs) * kSecondMs;
  const std::optional<std::int64_t>& since = *from;
  read.period.from_ms = since ? *since * kSecondMs : read.period.to_ms - kDayMs;
  if (read.period.from_ms < 0 || read.period.from_ms >= read.period.to_ms ||
      read.period.to_ms - read.period.from_ms > kMaxDays * kDayMs) {
    return wrong_parameter(fmt::format("'from': expected at most {} days before 'to'", kMaxDays));
  }
  return read;
}

void get_node_series(const Services& services, Call& call) {
  const auto asked = read_node_time(services, call);
  if (!asked) {
    answer_bad_request(call, asked.error());
    return;
  }
  const std::vector<std::string> names = call.params.list(Param::kMetric);
  for (const std::string& name : names) {
    if (std::ranges::find(Fleet::node_series_names(), name) == Fleet::node_series_names().end()) {
      answer_bad_request(call,
                         wrong_parameter(fmt::format("'metric': expected {}",
                                                     fmt::join(Fleet::node_series_names(), ", ")))
                             .error());
      return;
    }
  }
  auto series = services.fleet != nullptr
                    ? services.fleet->node_series(asked->cluster, asked->host, names,
                                                  asked->period.from_ms, asked->period.to_ms)
                    : fail(ErrorCode::kNotFound, "no TSDB");
  if (!series && series.error().code != ErrorCode::kNotFound) {
    log::warn("cannot read the time series of a node", {{"err", series.error().message}});
    answer_tsdb_failure(*call.response);
    return;
  }
  for (Series& line : series ? *series : series.emplace()) {
    for (auto& [ms, value] : line.points) {
      value = rounded(value, kHistoryDigits);
    }
  }
  answer_data(*call.response, series_json(*series));
}

void get_units_on_node(const Services& services, Call& call) {
  const auto asked = read_node_time(services, call);
  if (!asked) {
    answer_bad_request(call, asked.error());
    return;
  }
  const store::TimeRange period = asked->period;
  auto ids = services.fleet != nullptr ? services.fleet->units_on(asked->cluster, asked->host,
                                                                  period.from_ms, period.to_ms)
                                       : fail(ErrorCode::kNotFound, "no TSDB");
  if (!ids && ids.error().code != ErrorCode::kNotFound) {
    answer_failure(*call.response, ids.error());
    return;
  }
  using store::Fact;
  constexpr std::array<std::pair<std::string_view, Fact>, 12> kShown{{{"uuid", Fact::kUuid},
                                                                      {"started", Fact::kStarted},
                                                                      {"ended", Fact::kEnded},
                                                                      {"state", Fact::kState},
                                                                      {"user", Fact::kUser},
                                                                      {"project", Fact::kProject},
                                                                      {"name", Fact::kName},
                                                                      {"cpus", Fact::kCpus},
                                                                      {"cpu", Fact::kCpu},
                                                                      {"gpu", Fact::kGpu},
                                                                      {"gpus", Fact::kGpus},
                                                                      {"kwh", Fact::kKwh}}};
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("columns").begin_array();
  store::FactListQuery query;
  for (const auto& [name, fact] : kShown) {
    json.value(name);
    query.columns.push_back(fact);
  }
  json.end_array().key("rows").begin_array();
  constexpr std::size_t kAtOnce = 200;
  constexpr std::size_t kMaxRows = 2000;
  access::list_everybodys(call.identity, {}, query.filter);
  query.filter.clusters = {asked->cluster};
  query.filter.ended = store::TimeRange{period.from_ms, services.now_ms() + kDayMs};
  query.filter.running = true;
  query.sort = Fact::kStarted;
  query.descending = false;
  query.limit = kMaxRows;
  QueryTimer timer(*services.metrics, Query::kUnits);
  const std::vector<std::string> all = ids.value_or(std::vector<std::string>());
  for (std::size_t begin = 0; begin < all.size(); begin += kAtOnce) {
    const auto end = std::min(begin + kAtOnce, all.size());
    query.filter.uuids.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                              all.begin() + static_cast<std::ptrdiff_t>(end));
    auto rows = timer.run([&] { return services.reader->unit_facts(query); });
    while (rows) {
      const auto row = timer.run([&] { return (*rows)->next(); });
      if (!row) {
        rows = fail(row.error());
        break;
      }
      if (!*row) {
        break;
      }
      timer.count_row();
      if ((*rows)->integer(1) > period.to_ms) {
        continue;  // it began later: the number was given again
      }
      json.begin_array();
      for (std::size_t i = 0; i < kShown.size(); ++i) {
        append_json_cell(json, store::column_of(kShown.at(i).second).kind, (*rows)->text(i),
                         (*rows)->integer(i));
      }
      json.end_array();
    }
    if (!rows) {
      answer_failure(*call.response, rows.error());
      return;
    }
  }
  json.end_array();
  if (ids) {
    json.member("source", "tsdb");
  } else {
    json.key("source").value(nullptr);
  }
  json.end_object();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints node_history_endpoints() {
  return {{.path = "nodes/series/admin",
           .caller = Caller::kAdmin,
           .summary = "CPU, memory, GPU, power and units of a node over time.",
           .handler = get_node_series,
           .data = lines_of_charts(),
           .params = {Param::kClusterId, Param::kHost, Param::kMetric, Param::kFrom, Param::kTo},
           .required = {Param::kClusterId, Param::kHost},
           .window = WindowKind::kOwn,
           .tagged = false,
           .waits = true,
           .audited = false},
          {.path = "units/on-node/admin",
           .caller = Caller::kAdmin,
           .summary = "Units that ran on a node.",
           .handler = get_units_on_node,
           .data = {.name = "NodeUnits",
                    .one = true,
                    .definitions = R"json("NodeUnits": {
        "type": "object",
        "required": ["columns", "rows", "source"],
        "additionalProperties": false,
        "properties": {
          "columns": {"type": "array", "items": {"type": "string"}},
          "rows": {"type": "array", "items": {"type": "array"}},
          "source": {"type": ["string", "null"], "description": "`tsdb`, or null where the cluster has none."}
        }
      })json",
                    .example = R"({"columns":["uuid","started","ended","cpu"],)"
                               R"("rows":[["7001",1933128450000,null,97.1]],"source":"tsdb"})"},
           .params = {Param::kClusterId, Param::kHost, Param::kFrom, Param::kTo},
           .required = {Param::kClusterId, Param::kHost},
           .window = WindowKind::kOwn,
           .tagged = false,
           .waits = true}};
}

}  // namespace ceems::api
