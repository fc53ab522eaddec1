#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json_reader.h"
#include "base/strings.h"
#include "base/text/cells.h"
#include "base/time/time_text.h"
#include "base/time/time_zone.h"
#include "base/utf8.h"
#include "cacct/api.h"
#include "cacct/commands.h"
#include "cacct/insight_fleet.h"
#include "cacct/options.h"
#include "cacct/output/answer.h"
#include "cacct/output/columns.h"
#include "cacct/output/json_values.h"
#include "cacct/output/pager.h"
#include "cacct/session.h"

namespace ceems::cacct {
namespace {

constexpr double kPercentOf = 100;

namespace sj = simdjson::dom;

constexpr std::array<std::string_view, 8> kTopics{"idle", "stragglers", "neighbours", "budgets",
                                                  "bill", "helped",     "feedback",   "nodes"};

/// At most so many digits after the point; "-" if it is not known.
std::string shown(std::optional<double> number, int digits) {
  return number ? fmt::format("{:.{}f}", *number, digits) : "-";
}

std::string moment(std::optional<double> ms) {
  const TimeZone local = TimeZone::find("Local").value_or(TimeZone());
  std::string text = ms ? local.local(static_cast<std::int64_t>(*ms)).substr(0, 16) : "-";
  std::ranges::replace(text, 'T', ' ');
  return text;
}

/// The lines with a margin of two blanks.
std::string indented(const Columns& columns) {
  std::string out;
  for (const std::string& line : columns.lines()) {
    out += (line.empty() ? "" : "  " + line) + "\n";
  }
  return out;
}

std::string idle_text(const sj::array& rows) {
  if (rows.size() == 0) {
    return "No idle jobs right now.\n";
  }
  double watts = 0;
  Columns columns({{"JOB"},
                   {"USER"},
                   {"PROJECT"},
                   {"PARTITION"},
                   {"IDLE SINCE"},
                   {"FOR", true},
                   {"W", true},
                   {"KWH", true},
                   {"COST", true},
                   {"EXEMPT"}});
  for (const sj::element row : rows) {
    watts += number_of(row, "watts").value_or(0);
    const auto array = text_of(row, "array");
    columns.add({array.empty() ? text_of(row, "uuid") : array, text_of(row, "user"),
                 text_of(row, "project"), text_of(row, "partition"),
                 moment(number_of(row, "since_ts")),
                 duration_text(number_of(row, "idle_s").value_or(0)),
                 shown(number_of(row, "watts"), 0), shown(number_of(row, "kwh"), 2),
                 shown(number_of(row, "cost"), 2), text_of(row, "exempt")});
  }
  return fmt::format("{} idle job{}, {} W\n{}", rows.size(), rows.size() == 1 ? "" : "s",
                     grouped(watts), indented(columns));
}

std::string share_text(const sj::array& rows) {
  Columns columns({{""},
                   {"JOBS", true},
                   {"KWH", true},
                   {"IDLE POWER KWH", true},
                   {"SHARE", true},
                   {"NOT USED KWH", true},
                   {"SHARE", true}});
  const auto share = [](std::optional<double> part) {
    return part ? fmt::format("{:.0f} %", *part * kPercentOf) : "-";
  };
  for (const sj::element row : rows) {
    const auto not_used = number_of(row, "not_used_kwh");
    columns.add({text_of(row, "value"), shown(number_of(row, "units"), 0),
                 shown(number_of(row, "kwh"), 2), shown(number_of(row, "idle_kwh"), 2),
                 share(number_of(row, "share")), not_used ? shown(not_used, 2) : "unknown",
                 share(number_of(row, "not_used_share"))});
  }
  return "Energy of the idle power of what jobs had reserved, and of what they did not use of "
         "it\n" +
         indented(columns);
}

std::string budget_text(const sj::array& rows) {
  if (rows.size() == 0) {
    return "None of your projects has a budget.\n";
  }
  std::string out;
  for (const sj::element row : rows) {
    const std::string unit = text_of(row, "unit");
    const std::string name = unit == "kwh" ? "kWh" : unit == "kgco2" ? "kg CO2e" : unit;
    const std::string cluster = text_of(row, "cluster_id");
    const auto used = number_of(row, "used");
    const std::string state = text_of(row, "state");
    const std::string project = text_of(row, "project");
    out += fmt::format("{}{}, {}: {}", project == "*" ? "all projects" : project,
                       cluster.empty() ? "" : " (" + cluster + ")", text_of(row, "period"),
                       state == "over" ? "over budget, " : "");
    out += fmt::format("{} of {} {}", used ? grouped(*used) : "unknown",
                       grouped(number_of(row, "amount").value_or(0)), name);
    if (const auto share = number_of(row, "used_share")) {
      out += fmt::format(" ({:.0f} %)", *share * kPercentOf);
    }
    sj::array forecast;
    if (used && row["forecast"].get(forecast) == simdjson::SUCCESS && forecast.size() == 2) {
      double low = 0;
      double high = 0;
      if (forecast.at(0).get(low) == simdjson::SUCCESS &&
          forecast.at(1).get(high) == simdjson::SUCCESS) {
        out += fmt::format("; heading for {} to {}", grouped(low), grouped(high));
      }
    }
    out += state == "ended" ? "; ended\n" : "\n";
  }
  return out;
}

/// What the parts of the bill are called.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kParts{{
    {"active", "jobs, active use"},
    {"reserved_idle", "jobs, reserved and idle"},
    {"system", "system (kernel, daemons)"},
    {"unallocated", "free nodes (unreserved)"},
    {"nodes", "= compute nodes"},
    {"other", "storage, network, service nodes"},
    {"cooling", "cooling and losses"},
    {"unexplained", "unexplained"},
    {"meter", "= utility meter"},
}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kHints{{
    {"uncovered_nodes", "nodes without readings"},
    {"modelled_nodes", "nodes whose energy is modelled"},
    {"psu_losses", "losses of power supplies that RAPL does not see"},
    {"bill_clock", "the bill does not begin and end at midnight"},
}};

template <typename Table>
std::string_view called(const Table& table, std::string_view name) {
  const auto found =
      std::ranges::find(table, name, &std::pair<std::string_view, std::string_view>::first);
  return found == table.end() ? name : found->second;
}

std::string bill_text(const sj::array& rows) {
  bool billed = false;
  std::string hints;
  std::string period;
  std::vector<std::vector<std::string>> lines;
  for (const sj::element row : rows) {
    const std::string part = text_of(row, "part");
    const auto share = number_of(row, "share");
    const auto kwh = number_of(row, "kwh");
    const auto scaled = number_of(row, "billed_kwh");
    billed = billed || scaled;
    std::string how = text_of(row, "how");
    if (part == "nodes") {
      if (const auto coverage = number_of(row, "coverage")) {
        how += fmt::format(", {:.0f} % of the time", *coverage * kPercentOf);
      }
    }
    if (part == "meter") {
      period = fmt::format("{} to {}", moment(number_of(row, "period_start")),
                           moment(number_of(row, "period_end")));
      const auto hours = number_of(row, "hours");
      if (hours && kwh && !share) {
        period += fmt::format(
            "\nNodes were read in {:.0f} % of these hours, too few to compare with the meter.",
            *hours * kPercentOf);
      }
    }
    sj::array listed;
    if (row["hints"].get(listed) == simdjson::SUCCESS) {
      for (const sj::element hint : listed) {
        hints += fmt::format("  about {} kWh: {}\n", grouped(number_of(hint, "kwh").value_or(0)),
                             called(kHints, text_of(hint, "kind")));
      }
    }
    lines.push_back({std::string(called(kParts, part)), kwh ? grouped(*kwh) : "-",
                     share ? fmt::format("{:.0f} %", *share * kPercentOf) : "-", how,
                     scaled ? grouped(*scaled) : "-"});
  }
  std::vector<ListColumn> titles{{""}, {"KWH", true}, {"PART", true}, {""}};
  if (billed) {
    titles.push_back({"BILLED KWH", true});
  }
  Columns columns(titles);
  for (auto& line : lines) {
    line.resize(titles.size());
    columns.add(std::move(line));
  }
  return fmt::format("{}\n{}{}{}", period, indented(columns),
                     hints.empty() ? "" : "What may explain the rest:\n", hints);
}

std::string helped_text(const sj::array& rows) {
  if (rows.size() == 0) {
    return "No suggestion was followed.\n";
  }
  Columns columns({{"ACCOUNT"},
                   {"SUGGESTION"},
                   {"KINDS", true},
                   {"JOBS", true},
                   {"CORE-HOURS", true},
                   {"GPU-HOURS", true},
                   {"GIB-HOURS", true},
                   {"KWH", true}});
  double kwh = 0;
  for (const sj::element row : rows) {
    const auto known = number_of(row, "kwh");
    kwh += known.value_or(0);
    const auto hours = [&row](const char* name) {
      return grouped(number_of(row, name).value_or(0));
    };
    columns.add({text_of(row, "project"), text_of(row, "rule"), shown(number_of(row, "kinds"), 0),
                 shown(number_of(row, "runs"), 0), hours("core_hours"), hours("gpu_hours"),
                 hours("gib_hours"), shown(known, 1)});
  }
  return fmt::format("What jobs reserved less after a suggestion, about {:.1f} kWh\n{}", kwh,
                     indented(columns));
}

std::string feedback_text(const sj::array& rows) {
  if (rows.size() == 0) {
    return "No suggestion has answers of five people yet.\n";
  }
  Columns columns({{"SUGGESTION"}, {"ANSWERS", true}, {"PEOPLE", true}, {"NOT HELPFUL", true}});
  for (const sj::element row : rows) {
    const auto wrong = number_of(row, "false_share");
    columns.add({text_of(row, "rule"), shown(number_of(row, "answers"), 0),
                 shown(number_of(row, "people"), 0),
                 wrong ? fmt::format("{:.0f} %", *wrong * kPercentOf) : "-"});
  }
  return "Answers that a suggestion did not help or does not apply\n" + indented(columns);
}

std::string cell_of(const sj::element& value) {
  std::string_view text;
  double number = 0;
  bool yes = false;
  if (value.get(text) == simdjson::SUCCESS) {
    return csv_cell(terminal_safe(text));
  }
  if (value.get(yes) == simdjson::SUCCESS) {
    return yes ? "true" : "false";
  }
  return value.get(number) == simdjson::SUCCESS ? fmt::to_string(number) : std::string();
}

constexpr std::array<const char*, 14> kIdleColumns{
    "cluster_id", "uuid", "user",  "project", "partition", "since_ts", "idle_s",
    "cpus",       "gpus", "watts", "kwh",     "cost",      "exempt",   "array"};
constexpr std::array<const char*, 9> kShareColumns{
    "value", "units",           "kwh",          "measured_kwh",  "idle_kwh",
    "share", "not_used_of_kwh", "not_used_kwh", "not_used_share"};
constexpr std::array<const char*, 10> kBudgetColumns{"project", "cluster_id", "unit", "amount",
                                                     "used",    "used_share", "burn", "period",
                                                     "from_ts", "state"};
constexpr std::array<const char*, 5> kBillColumns{"part", "kwh", "share", "how", "billed_kwh"};
constexpr std::array<const char*, 9> kHelpedColumns{"cluster_id", "project",   "rule",
                                                    "kinds",      "runs",      "core_hours",
                                                    "gpu_hours",  "gib_hours", "kwh"};

constexpr std::array<const char*, 6> kFeedbackColumns{"rule", "answers",        "people",
                                                      "no",   "not_applicable", "false_share"};

constexpr std::array<const char*, 11> kNodeColumns{
    "cluster_id", "kind", "node", "class", "score", "effect", "before", "n", "users", "p", "first"};
constexpr std::size_t kOwnerColumns = 5;  // of the list of all running jobs
constexpr std::array<const char*, 15> kStragglerColumns{
    "cluster_id", "uuid",   "user",   "project",   "partition",
    "node",       "device", "metric", "z",         "deviation",
    "windows",    "kind",   "cause",  "your_code", "waiting_kwh_max"};
constexpr std::array<const char*, 20> kNeighbourColumns{
    "cluster_id", "kind",    "node",  "victim",      "suspect",  "signal",  "activity",
    "with",       "without", "times", "file_system", "of",       "victims", "rate",
    "since_ts",   "seconds", "bytes", "requests",    "metadata", "share"};

std::span<const char* const> columns_of(std::string_view topic, bool by) {
  if (topic == "idle") {
    return by ? std::span<const char* const>(kShareColumns) : kIdleColumns;
  }
  if (topic == "stragglers") {
    return std::span(kStragglerColumns).subspan(by ? 0 : kOwnerColumns);
  }
  if (topic == "neighbours") {
    return kNeighbourColumns;
  }
  if (topic == "helped") {
    return kHelpedColumns;
  }
  if (topic == "feedback") {
    return kFeedbackColumns;
  }
  if (topic == "nodes") {
    return kNodeColumns;
  }
  return topic == "budgets" ? std::span<const char* const>(kBudgetColumns) : kBillColumns;
}

Result<std::string> print(const InsightOptions& options, const Caller& caller) {
  // Only these topics may be about one job.
  const bool may_have_job = !options.topic.empty() && (options.topic.front() == "stragglers" ||
                                                       options.topic.front() == "neighbours");
  const bool of_job = may_have_job && options.topic.size() == 2;
  const std::string topic = options.topic.size() == 1 || of_job ? options.topic.front() : "";
  if (std::ranges::find(kTopics, topic) == kTopics.end()) {
    return fail(ErrorCode::kInvalidArgument, "expected one of {}", fmt::join(kTopics, ", "));
  }
  if (!options.node.empty() && (topic != "neighbours" || of_job)) {
    return fail(ErrorCode::kInvalidArgument,
                "--node is for all jobs of a node: cacct insight neighbours --node NODE");
  }
  if (options.json && options.csv) {
    return fail(ErrorCode::kInvalidArgument, "--json and --csv exclude each other");
  }
  CEEMS_TRY(session, open_session(caller));
  const Config& config = session.config;
  session.log.write(log::Level::kInfo, "insight",
                    {{"user", caller.login},
                     {"uid", caller.uid},
                     {"gid", caller.gid},
                     {"topic", topic},
                     {"users", options.all_users ? "all" : ""}});
  CEEMS_TRY(api, Api::create(config.api_url, config.api_client, config.user_header, caller.login));
  CEEMS_TRY(answer,
            api.insight({.topic = topic,
                         .cluster_id = config.cluster_id,
                         .projects = comma_parts(options.projects),
                         .month = topic == "bill" ? options.month : "",
                         .by = topic == "idle" ? options.by : "",
                         .uuid = of_job ? options.topic.back() : "",
                         .host = options.node,
                         .all_users = options.all_users || topic == "bill" || topic == "feedback" ||
                                      topic == "nodes" || (may_have_job && !of_job)}));
  fmt::print(stderr, "{}", insight_missing(topic, answer));
  const bool by = topic == "idle" ? !options.by.empty() : topic == "stragglers" && !of_job;
  if (options.json) {
    std::string out;
    if (!append_json(out, answer)) {
      return unexpected_answer();
    }
    return terminal_safe(out) + "\n";
  }
  if (options.csv) {
    return insight_csv(topic, by, answer);
  }
  CEEMS_TRY(text, insight_text(topic, by, answer));
  if (topic == "helped" && options.all_users) {
    CEEMS_TRY(answers, api.insight({.topic = "feedback", .all_users = true}));
    CEEMS_TRY(said, insight_text("feedback", false, answers));
    text += "\n" + said;
  }
  return text;
}

}  // namespace

Result<std::string> insight_text(std::string_view topic, bool by, const std::string& answer) {
  sj::parser parser;
  CEEMS_TRY(rows, data_in<sj::array>(parser, answer));
  if (topic == "idle") {
    return by ? share_text(rows) : idle_text(rows);
  }
  if (topic == "stragglers") {
    return stragglers_text(rows);
  }
  if (topic == "neighbours") {
    return neighbours_text(rows);
  }
  if (topic == "helped") {
    return helped_text(rows);
  }
  if (topic == "feedback") {
    return feedback_text(rows);
  }
  if (topic == "nodes") {
    return sick_nodes_text(rows);
  }
  return topic == "budgets" ? budget_text(rows) : bill_text(rows);
}

std::string insight_missing(std::string_view topic, const std::string& answer) {
  sj::parser parser;
  sj::array clusters;
  std::string out;
  if (parser.parse(answer)["missing"].get(clusters) == simdjson::SUCCESS) {
    for (const sj::element cluster : clusters) {
      if (text_of(cluster, "reason") == "unavailable") {
        // Nodes are listed anyway, by the jobs that failed on them.
        out += fmt::format("cacct: cluster {}: {}: its time-series server does not respond\n",
                           text_of(cluster, "cluster_id"),
                           topic == "nodes" ? "no signs of broken hardware" : "not in the list");
      }
    }
  }
  return out;
}

Result<std::string> insight_csv(std::string_view topic, bool by, const std::string& answer) {
  sj::parser parser;
  CEEMS_TRY(rows, data_in<sj::array>(parser, answer));
  const auto columns = columns_of(topic, by);
  std::string out = fmt::format("{}\r\n", fmt::join(columns, ","));
  for (const sj::element row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      sj::element value;
      out += i == 0 ? "" : ",";
      out += row[columns[i]].get(value) == simdjson::SUCCESS ? cell_of(value) : std::string();
    }
    out += "\r\n";
  }
  return out;
}

void add_insight_flags(config::FlagSet& flags, InsightOptions& options) {
  flags.positionals(
      "TOPIC", options.topic,
      "idle: jobs that do nothing; stragglers JOB: slow GPUs and nodes of a job, or without JOB of "
      "all running jobs, for operators; neighbours JOB: "
      "whether other jobs slow a job down, or "
      "without JOB who asks most of file systems, for operators; budgets: of your "
      "projects; helped: what jobs reserved less "
      "after suggestions, in the last 30 days; feedback: how often people said that suggestions "
      "did not help, for operators; bill: energy of a month against the utility's meter, for "
      "operators; nodes: which are probably sick, for operators.");
  flags.add("json", options.json, {.help = "Print the JSON of the API server."});
  flags.add("csv", options.csv, {.help = "Print CSV."});
  flags.add("allusers", options.all_users,
            {.help = "Show jobs of all users. Only operators may do that.", .letter = 'a'});
  flags.add("account", options.projects,
            {.help = "Show these accounts only (repeatable, or with commas).", .letter = 'A'});
  flags.add("month", options.month,
            {.help = "The month of the bill, such as 2026-11. The default is this one.",
             .placeholder = "MONTH"});
  flags.add(
      "by", options.by,
      {.help = "With idle: the energy of the idle power of what was reserved, and of what was "
               "not used of it, in the last 30 days, by project, partition or user.",
       .placeholder = "WHAT"});
  flags.add("node", options.node,
            {.help = "With neighbours: which jobs slow others down on this node.",
             .placeholder = "NODE"});
}

int run_insight(const InsightOptions& options, const Caller& caller) {
  return show_or_explain(print(options, caller));
}

}  // namespace ceems::cacct
