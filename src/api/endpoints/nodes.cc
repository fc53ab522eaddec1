// Nodes and what they do now.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "access/lists.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/missing_clusters.h"
#include "api/request/list_params.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/text/cells.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

constexpr int kNodeDigits = 4;

/// A node with its cluster.
struct Row {
  std::string cluster;
  Node node;
};

std::optional<double> moment(std::optional<std::int64_t> ms) {
  return ms ? std::optional(static_cast<double>(*ms)) : std::nullopt;
}

struct NodeColumn {
  std::string_view name;
  std::string (*text)(const Row& row);  ///< null: a number
  std::optional<double> (*number)(const Row& row);
  bool measured = true;
};
constexpr std::array<NodeColumn, 13> kColumns{{
    {"cluster_id", [](const Row& row) { return row.cluster; }, nullptr},
    {"host", [](const Row& row) { return row.node.host; }, nullptr},
    {"state", [](const Row& row) { return row.node.state; }, nullptr},
    {"units", nullptr, [](const Row& row) { return row.node.units; }},
    {"cpus", nullptr, [](const Row& row) { return row.node.cpus; }, false},
    {"cpu", nullptr, [](const Row& row) { return row.node.cpu; }},
    {"mem", nullptr, [](const Row& row) { return row.node.mem; }},
    {"gpu", nullptr, [](const Row& row) { return row.node.gpu; }},
    {"gpus", nullptr, [](const Row& row) { return row.node.gpus; }, false},
    {"watts", nullptr, [](const Row& row) { return row.node.watts; }},
    {"idle_since", nullptr, [](const Row& row) { return moment(row.node.idle_since_ms); }, false},
    {"idle_kwh", nullptr, [](const Row& row) { return row.node.idle_kwh; }},
    {"seen", nullptr, [](const Row& row) { return moment(row.node.seen_ms); }, false},
}};
const NodeColumn* find_column(std::string_view name) {
  const auto* found = std::ranges::find(kColumns, name, &NodeColumn::name);
  return found == kColumns.end() ? nullptr : found;
}

int state_rank(std::string_view state) {
  return state == "idle" ? 0 : state == "silent" ? 1 : 2;
}

struct NodeQuestion {
  std::vector<const NodeColumn*> columns;
  const NodeColumn* sort = find_column("state");
  bool descending = false;
  std::size_t limit = 100;
  std::size_t skip = 0;
  std::vector<std::string> clusters, states;
  std::string host;                ///< empty: all
  std::vector<std::string> words;  ///< each is in the name of the host; in lower case
  bool csv = false;
};

Result<NodeQuestion> read_question(const Call& call, std::string_view listing) {
  const Params& params = call.params;
  NodeQuestion question;
  for (const std::string& name : params.list(Param::kColumns)) {
    const NodeColumn* column = find_column(name);
    if (column == nullptr) {
      return wrong_parameter(
          fmt::format("'columns': expected columns, got '{}'", printable(name, 40)));
    }
    question.columns.push_back(column);
  }
  if (question.columns.empty()) {
    for (const NodeColumn& column : kColumns) {
      question.columns.push_back(&column);
    }
  }
  if (!params.sort.empty()) {
    question.sort = find_column(params.sort);
  }
  if (question.sort == nullptr) {
    return wrong_parameter("'sort': expected a column");
  }
  if (!params.order.empty() && params.order != "asc" && params.order != "desc") {
    return wrong_parameter("'order': expected 'asc' or 'desc'");
  }
  const bool text = question.sort->text != nullptr;
  question.descending = params.order.empty() ? !text : params.order == "desc";
  CEEMS_TRY(limit, parse_number("limit", params.limit, 1, 1000, 100));
  question.limit = limit;
  CEEMS_TRY(cursor, parse_list_cursor(params, listing));
  if (const std::optional<ListCursor>& last = cursor) {
    question.skip = static_cast<std::size_t>(std::max<std::int64_t>(last->place.id, 0));
  }
  question.clusters = split_lists(params.clusters);
  question.states = params.list(Param::kState);
  for (const std::string& state : question.states) {
    if (state != "busy" && state != "idle" && state != "silent") {
      return wrong_parameter("'state': expected busy, idle or silent");
    }
  }
  question.host = params.text(Param::kHost);
  const std::string words = to_lower(params.text(Param::kWords));
  for (const std::string_view word : split(words, ' ')) {
    if (!word.empty()) {
      question.words.emplace_back(word);
    }
  }
  const std::string_view format = params.text(Param::kFormat);
  if (!format.empty() && format != "json" && format != "csv") {
    return wrong_parameter("'format': expected 'json' or 'csv'");
  }
  question.csv = format == "csv";
  return question;
}

bool is_wanted(const Node& node, const NodeQuestion& question) {
  if (!question.host.empty() && node.host != question.host) {
    return false;
  }
  const std::string host = to_lower(node.host);
  return std::ranges::all_of(question.words,
                             [&host](const std::string& word) { return host.contains(word); });
}

/// The order of the rows; those without the value come last, and equal ones by name.
void sort_rows(std::vector<Row>& rows, const NodeQuestion& question) {
  std::ranges::sort(rows, [&question](const Row& a, const Row& b) {
    const auto names = [](const Row& row) { return std::tie(row.cluster, row.node.host); };
    if (question.sort->text != nullptr) {
      const bool by_state = question.sort->name == "state";
      const std::string x = question.sort->text(a);
      const std::string y = question.sort->text(b);
      if (x != y) {
        const bool less = by_state ? state_rank(x) < state_rank(y) : x < y;
        return less != question.descending;
      }
      return names(a) < names(b);
    }
    const auto value = [&question](const Row& row) {
      const auto number = question.sort->number(row);
      // Idle for longer than the TSDB was asked.
      const bool longest =
          !number && question.sort->name == "idle_since" && row.node.state == "idle";
      return longest ? std::optional(0.0) : number;
    };
    const auto x = value(a);
    const auto y = value(b);
    if (x.has_value() != y.has_value()) {
      return x.has_value();
    }
    if (x != y) {
      return (*x < *y) != question.descending;
    }
    return names(a) < names(b);
  });
}

std::optional<double> shown(const NodeColumn& column, const Row& row) {
  const auto value = column.number(row);
  return value && column.measured ? std::optional(rounded(*value, kNodeDigits)) : value;
}

std::string csv_of(const std::vector<Row>& rows,
                   const NodeQuestion& question,
                   const TimeZone& zone) {
  std::string out;
  for (const NodeColumn* column : question.columns) {
    out += out.empty() ? "" : ",";
    out += column->name;
  }
  out += "\r\n";
  for (const Row& row : rows) {
    bool first = true;
    for (const NodeColumn* column : question.columns) {
      out += std::exchange(first, false) ? "" : ",";
      if (column->text != nullptr) {
        out += csv_cell(column->text(row));
      } else if (const auto value = shown(*column, row)) {
        const bool time = column->name == "idle_since" || column->name == "seen";
        out += time ? zone.local_with_offset(static_cast<std::int64_t>(*value))
                    : fmt::to_string(*value);
      }
    }
    out += "\r\n";
  }
  return out;
}

std::int64_t month_start(const TimeZone& zone, std::int64_t now_ms) {
  std::int64_t day = zone.day_start(now_ms);
  while (zone.day(day).substr(8, 2) != "01") {
    day = zone.day_start(day - kDayMs / 2);
  }
  return day;
}

void get_nodes(const Services& services, Call& call) {
  constexpr std::string_view kListing = "nodes";
  const auto question = read_question(call, kListing);
  if (!question) {
    answer_bad_request(call, question.error());
    return;
  }
  std::vector<Row> rows;
  std::vector<MissingCluster> missing;
  std::map<std::string_view, std::int64_t> counts{{"busy", 0}, {"idle", 0}, {"silent", 0}};
  double watts = 0;
  double idle_watts = 0;
  std::optional<double> idle_kwh;
  double month_kwh = 0;
  double hours = 0;
  double measured = 0;
  const std::int64_t month = month_start(services.zone, services.now_ms());
  for (const SiteCluster& cluster : services.site->clusters) {
    const auto& wanted = question->clusters;
    if (!wanted.empty() && std::ranges::find(wanted, cluster.id) == wanted.end()) {
      continue;
    }
    if (services.fleet == nullptr || !cluster.series) {
      missing.push_back({cluster.id, kNoTsdb});
      continue;
    }
    auto nodes = services.fleet->nodes(cluster.id, month);
    if (!nodes) {
      missing.push_back({cluster.id, kUnavailable});
      continue;
    }
    for (Node& node : *nodes) {
      if (!is_wanted(node, *question)) {
        continue;
      }
      counts[node.state == "busy" ? "busy" : node.state == "idle" ? "idle" : "silent"] += 1;
      watts += node.watts.value_or(0);
      idle_watts += node.state == "idle" ? node.watts.value_or(0) : 0;
      if (node.idle_kwh) {
        idle_kwh = idle_kwh.value_or(0) + *node.idle_kwh;
        month_kwh += node.month_kwh.value_or(0);
        hours += node.month_hours.value_or(0);
        measured += 1;
      }
      const auto& states = question->states;
      if (states.empty() || std::ranges::find(states, node.state) != states.end()) {
        rows.push_back({.cluster = cluster.id, .node = std::move(node)});
      }
    }
  }
  sort_rows(rows, *question);
  if (question->csv) {
    call.response->body = csv_of(rows, *question, services.zone);
    call.response->set_header("Content-Type", "text/csv; charset=utf-8; header=present");
    call.response->set_header("Content-Disposition", "attachment; filename=\"nodes.csv\"");
    call.response->set_header("X-Content-Type-Options", "nosniff");
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("columns").begin_array();
  for (const NodeColumn* column : question->columns) {
    json.value(column->name);
  }
  json.end_array().key("rows").begin_array();
  const std::size_t begin = std::min(question->skip, rows.size());
  const std::size_t end = std::min(begin + question->limit, rows.size());
  for (std::size_t i = begin; i < end; ++i) {
    json.begin_array();
    for (const NodeColumn* column : question->columns) {
      if (column->text != nullptr) {
        json.value(column->text(rows[i]));
      } else {
        append_number(json, shown(*column, rows[i]));
      }
    }
    json.end_array();
  }
  json.end_array().key("counts").begin_object();
  for (const auto& [state, count] : counts) {
    json.member(state, count);
  }
  json.end_object().key("watts");
  append_number(json, rounded(watts, kNodeDigits));
  json.key("idle_watts");
  append_number(json, rounded(idle_watts, kNodeDigits));
  json.key("idle_kwh");
  append_number(json, idle_kwh ? std::optional(rounded(*idle_kwh, kNodeDigits)) : std::nullopt);
  json.key("month_kwh");
  append_number(json, idle_kwh ? std::optional(rounded(month_kwh, kNodeDigits)) : std::nullopt);
  json.key("covered");
  const double month_hours = static_cast<double>(services.now_ms() - month) / kHourMs;
  append_number(json, measured > 0 && month_hours > 0
                          ? std::optional(rounded(
                                std::min(hours / measured / std::max(month_hours, 1.0), 1.0), 3))
                          : std::nullopt);
  json.raw_member("missing", clusters_json(missing));
  json.end_object();
  // The list is at most a minute old, so a place in it is its number.
  const auto cursor = [&](bool there, std::size_t skip) {
    return there ? list_cursor_text(kListing,
                                    {.place = {.value = "", .id = static_cast<std::int64_t>(skip)},
                                     .backwards = false})
                 : "";
  };
  answer_data(*call.response, data, cursor(end < rows.size(), end),
              cursor(begin > 0, begin - std::min(begin, question->limit)));
}

}  // namespace

Endpoints nodes_endpoints() {
  return {
      {.path = "nodes/admin",
       .caller = Caller::kAdmin,
       .summary = "Nodes and what they do now.",
       .handler = get_nodes,
       .data =
           {.name = "NodeTable",
            .one = true,
            .definitions = R"json("NodeTable": {
        "type": "object",
        "required": ["columns", "rows", "counts", "watts", "idle_watts", "idle_kwh", "month_kwh", "covered", "missing"],
        "additionalProperties": false,
        "properties": {
          "columns": {"type": "array", "items": {"type": "string"}},
          "rows": {"type": "array", "items": {"type": "array"}, "description": "The values of each row; null: not known."},
          "counts": {"type": "object", "additionalProperties": {"type": "integer"}, "description": "Nodes by state."},
          "watts": {"type": "number", "description": "Power of all nodes."},
          "idle_watts": {"type": "number", "description": "Power of the idle nodes."},
          "idle_kwh": {"type": ["number", "null"], "description": "Energy since the month began that no unit had reserved, of all nodes."},
          "month_kwh": {"type": ["number", "null"], "description": "All energy of these nodes over the same samples."},
          "covered": {"type": ["number", "null"], "description": "The part of the hours since the month began of which there are samples, as a mean over nodes."},
          "missing": {"$ref": "#/components/schemas/MissingClusters"}
        }
      })json",
            .example =
                R"({"columns":["cluster_id","host","state","cpu"],"rows":[["hpc-a","n079","idle",0.4]],)"
                R"("counts":{"busy":341,"idle":38,"silent":3},"watts":412000,)"
                R"("idle_watts":7100,"idle_kwh":31000,"month_kwh":250000,"covered":0.998,)"
                R"("missing":[{"cluster_id":"cloud","reason":"no_tsdb"}]})"},
       .params = {Param::kClusterId, Param::kHost, Param::kWords, Param::kState, Param::kSort,
                  Param::kOrder, Param::kLimit, Param::kCursor, Param::kColumns, Param::kFormat},
       .table = true,
       .tagged = false,
       .waits = true,
       .audited = false}};
}

}  // namespace ceems::api
