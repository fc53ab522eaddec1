// What the palette of the page finds: a few units, people, projects and nodes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "access/lists.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/request/list_params.h"
#include "api/request/shown_ids.h"
#include "base/json.h"
#include "base/strings.h"
#include "store/facts.h"
#include "store/nodes.h"

namespace ceems::api {
namespace {

// No search reads more than this, however large the site and whatever was typed.
constexpr std::size_t kMaxFoundUnits = 6, kMaxFoundNames = 5;
constexpr std::size_t kMaxSought = 100;        // bytes of `q`
constexpr std::size_t kMaxRuns = 64;           // units by their ids
constexpr std::size_t kNewestUnits = 1000;     // whose names are looked at, for each owner
constexpr std::size_t kNewestOfOwners = 4000;  // of all owners together
constexpr std::size_t kMaxLedSearched = 20;
constexpr std::size_t kMaxNamesRead = 20'000;
constexpr std::size_t kLeastIdDigits = 3;

/// How well something matches; the lower, the better.
enum Rank : int { kExact, kIdBegins, kBegins, kHolds, kNoMatch };

Rank rank_of(std::string_view name, std::string_view sought) {
  const std::string lower = to_lower(name);
  const auto at = lower.find(sought);
  return at == std::string::npos         ? kNoMatch
         : lower.size() == sought.size() ? kExact
         : at == 0                       ? kBegins
                                         : kHolds;
}

/// The best matches among names, each with the cluster it is of.
class BestNames {
 public:
  explicit BestNames(std::string_view sought) : sought_(sought) {}
  void add(std::string_view cluster, std::string_view name) {
    if (const Rank rank = rank_of(name, sought_); rank != kNoMatch) {
      best_.emplace(rank, name, cluster);
      if (best_.size() > kMaxFoundNames) {
        best_.erase(std::prev(best_.end()));
      }
    }
  }
  void append(JsonWriter& json, std::string_view list, std::string_view member) const {
    json.key(list).begin_array();
    for (const auto& [rank, name, cluster] : best_) {
      json.begin_object();
      if (!cluster.empty()) {
        json.member("cluster_id", cluster);
      }
      json.member(member, name).end_object();
    }
    json.end_array();
  }

 private:
  std::string_view sought_;
  std::set<std::tuple<Rank, std::string, std::string>> best_;
};

struct FoundUnit {
  Rank rank = kNoMatch;
  std::string cluster = {}, uuid = {}, shown = {}, name = {}, user = {}, project = {}, state = {};
  std::int64_t started_ms = 0;
};

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

class UnitSearch {
 public:
  UnitSearch(const Services& services, const Call& call, bool everybody, std::string sought)
      : services_(&services),
        call_(&call),
        everybody_(everybody),
        sought_(std::move(sought)),
        job_(job_of_step(sought_)) {}

  Result<std::vector<FoundUnit>> run() {
    // By itself, so that no number of newer ids that begin so can hide it.
    store::FactFilter exact;
    exact.uuids = {job_, sought_};
    CEEMS_TRY(read(std::move(exact), call_->identity, kMaxRuns));
    const std::size_t mark = job_.find_first_of("_+");
    if (is_digits(job_) && job_.size() >= kLeastIdDigits) {
      // The ids that begin so, by their names: a range of the index could be of any length.
      store::FactFilter ids;
      for (int i = 0; i < 10; ++i) {
        ids.uuids.push_back(fmt::format("{}{}", job_, i));
      }
      for (int i = 0; i < 100; ++i) {
        ids.uuids.push_back(fmt::format("{}{:02}", job_, i));
      }
      CEEMS_TRY(read(std::move(ids), call_->identity, kMaxRuns));
      CEEMS_TRY(read_tasks(job_ + "_"));
      CEEMS_TRY(read_tasks(job_ + "+"));
    } else if (mark != std::string::npos && is_digits(job_.substr(0, mark)) &&
               is_digits(job_.substr(mark + 1))) {
      CEEMS_TRY(read_tasks(job_));
    }
    // An index bounds the rows of one owner. Several owners share them.
    access::Identity one = call_->identity;
    auto led = std::exchange(one.led, {});
    led.resize(everybody_ ? 0 : std::min(led.size(), kMaxLedSearched));
    const std::size_t newest = std::min(kNewestUnits, kNewestOfOwners / (1 + led.size()));
    CEEMS_TRY(read({}, one, newest));
    for (auto& project : led) {
      one.led = {std::move(project)};
      CEEMS_TRY(read({}, one, newest, store::Fact::kEnded, access::Part::kLed));
    }
    std::ranges::stable_sort(found_, {}, &FoundUnit::rank);
    found_.resize(std::min(found_.size(), kMaxFoundUnits));
    return std::move(found_);
  }

 private:
  /// Tasks of arrays and parts of heterogeneous jobs whose ids begin so. The id itself comes first.
  Result<> read_tasks(std::string prefix) {
    store::FactFilter tasks;
    tasks.array_prefix = std::move(prefix);
    return read(std::move(tasks), call_->identity, kMaxRuns, store::Fact::kArray);
  }

  Result<> read(store::FactFilter filter,
                const access::Identity& who,
                std::size_t limit,
                store::Fact sort = store::Fact::kEnded,
                access::Part part = access::Part::kAll) {
    using store::Fact;
    if (everybody_) {
      access::list_everybodys(who, {}, filter);
    } else {
      access::list_own(who, part, filter);
    }
    const store::FactListQuery query{
        .filter = std::move(filter),
        .columns = {Fact::kClusterId, Fact::kUuid, Fact::kArray, Fact::kName, Fact::kUser,
                    Fact::kProject, Fact::kState, Fact::kStarted},
        .sort = sort,
        .descending = sort == Fact::kEnded,
        .limit = limit};
    QueryTimer timer(*services_->metrics, Query::kUnits);
    CEEMS_TRY(cursor, timer.run([&] { return services_->reader->unit_facts(query); }));
    while (true) {
      CEEMS_TRY(row, timer.run([&] { return cursor->next(); }));
      if (!row) {
        return {};
      }
      timer.count_row();
      add(*cursor);
    }
  }

  void add(const store::Cursor& row) {
    const std::string_view uuid = row.text(1), shown = row.text(2);
    const Rank rank = uuid == sought_ || uuid == job_ || shown == job_ ? kExact
                      : to_lower(uuid).starts_with(job_) || shown.starts_with(job_)
                          ? kIdBegins
                          : std::max(rank_of(row.text(3), sought_), kBegins);
    if (rank != kNoMatch && seen_.emplace(row.text(0), uuid, row.integer(7)).second) {
      found_.push_back({.rank = rank,
                        .cluster = std::string(row.text(0)),
                        .uuid = std::string(uuid),
                        .shown = std::string(shown.empty() ? uuid : shown),
                        .name = std::string(row.text(3)),
                        .user = std::string(row.text(4)),
                        .project = std::string(row.text(5)),
                        .state = std::string(row.text(6)),
                        .started_ms = row.integer(7)});
    }
  }

  const Services* services_;
  const Call* call_;
  bool everybody_;
  std::string sought_;
  std::string job_;  ///< the job of "7100_4.batch", as sacct shows a step; else as sought
  std::vector<FoundUnit> found_;
  std::set<std::tuple<std::string, std::string, std::int64_t>> seen_;
};

/// Gives `take` the rows of a short table.
template <class Take>
Result<> read_names(QueryTimer& timer, store::Cursor& rows, Take take) {
  for (std::size_t i = 0; i < kMaxNamesRead; ++i) {
    CEEMS_TRY(row, timer.run([&] { return rows.next(); }));
    if (!row) {
      break;
    }
    take(rows);
  }
  return {};
}

std::size_t column_named(std::span<const store::Field> fields, std::string_view name) {
  return store::find_field(fields, name).value_or(0);
}

/// All users, or the caller and the members of projects that the caller leads.
Result<> find_people(const Services& services, const Call& call, bool everybody, BestNames& best) {
  QueryTimer timer(*services.metrics, Query::kUsers);
  if (everybody) {
    const std::size_t name = column_named(store::user_fields(), "name");
    CEEMS_TRY(rows, timer.run([&] {
      return services.reader->users(access::chosen_rows(call.identity, {}, {}), {});
    }));
    return read_names(timer, *rows,
                      [&](const store::Cursor& row) { best.add("", row.text(name)); });
  }
  best.add("", call.identity.user);
  if (call.identity.led.empty()) {
    return {};
  }
  const std::size_t users = column_named(store::project_fields(), "users");
  const store::UsageQuery led{.members = access::own_projects(call.identity, access::Part::kLed)};
  CEEMS_TRY(rows, timer.run([&] { return services.reader->projects(led); }));
  return read_names(timer, *rows, [&](const store::Cursor& row) {
    boost::system::error_code error;
    const auto names = boost::json::parse(row.text(users), error);
    if (error || !names.is_array()) {
      return;
    }
    for (const auto& one : names.get_array()) {
      if (one.is_string()) {
        best.add("", one.get_string());
      }
    }
  });
}

Result<> find_projects(const Services& services,
                       const Call& call,
                       bool everybody,
                       BestNames& best) {
  const std::size_t cluster = column_named(store::project_fields(), "cluster_id");
  const std::size_t name = column_named(store::project_fields(), "name");
  const store::UsageQuery query{.members = everybody ? access::chosen_rows(call.identity, {}, {})
                                                     : access::own_projects(call.identity)};
  QueryTimer timer(*services.metrics, Query::kProjects);
  CEEMS_TRY(rows, timer.run([&] { return services.reader->projects(query); }));
  return read_names(timer, *rows,
                    [&](const store::Cursor& row) { best.add(row.text(cluster), row.text(name)); });
}

Result<std::string> found_for(const Services& services,
                              const Call& call,
                              const std::string& sought) {
  const bool everybody = access::admin_area(call.identity) == access::Decision::kAllow;
  CEEMS_TRY(units, UnitSearch(services, call, everybody, sought).run());
  BestNames people(sought);
  BestNames projects(sought);
  BestNames nodes(sought);
  CEEMS_TRY(find_people(services, call, everybody, people));
  CEEMS_TRY(find_projects(services, call, everybody, projects));
  if (everybody) {
    CEEMS_TRY(known, services.reader->known_nodes({}));
    for (const store::KnownNode& node : known) {
      nodes.add(node.cluster_id, node.facts.node);
    }
  }
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("units").begin_array();
  for (const FoundUnit& unit : units) {
    json.begin_object().member("cluster_id", unit.cluster).member("uuid", unit.uuid);
    json.key("started_at_ts");
    append_json_cell(json, store::FactKind::kMoment, "", unit.started_ms);
    json.member("shown", unit.shown).key("name");
    append_json_cell(json, store::FactKind::kText, unit.name, 0);
    json.member("user", unit.user).member("project", unit.project);
    json.member("state", unit.state).end_object();
  }
  json.end_array();
  people.append(json, "people", "user");
  projects.append(json, "projects", "project");
  nodes.append(json, "nodes", "host");
  json.end_object();
  return data;
}

void get_search(const Services& services, Call& call) {
  const std::string sought = to_lower(trim(call.params.text(Param::kWords)));
  if (sought.empty() || sought.size() > kMaxSought) {
    answer_bad_request(
        call, wrong_parameter(fmt::format("'q': expected 1 to {} bytes", kMaxSought)).error());
    return;
  }
  call.foreign = access::admin_area(call.identity) == access::Decision::kAllow;
  const auto data = found_for(services, call, sought);
  if (!data) {
    answer_failure(*call.response, data.error());
    return;
  }
  answer_data(*call.response, *data);
}

}  // namespace

Endpoints search_endpoints() {
  return {
      {.path = "search",
       .caller = Caller::kUser,
       .summary = "A few units, people, projects and nodes that a text finds.",
       .handler = get_search,
       .data =
           {.name = "Found",
            .one = true,
            .definitions = R"json("Found": {
        "type": "object",
        "required": ["units", "people", "projects", "nodes"],
        "additionalProperties": false,
        "properties": {
          "units": {
            "type": "array",
            "description": "Units whose id is or begins with the text, and of the newest also those whose name holds it.",
            "items": {
              "type": "object",
              "required": ["cluster_id", "uuid", "started_at_ts", "shown", "name", "user", "project", "state"],
              "additionalProperties": false,
              "properties": {
                "cluster_id": {"type": "string", "description": "Its cluster."},
                "uuid": {"type": "string", "description": "Its id."},
                "started_at_ts": {"type": ["integer", "null"], "description": "Its start, in milliseconds since 1970."},
                "shown": {"type": "string", "description": "Its id as the resource manager shows it: `7100_4`."},
                "name": {"type": ["string", "null"], "description": "Its name; null where the caller may not see it."},
                "user": {"type": "string", "description": "Its owner."},
                "project": {"type": "string", "description": "Its project."},
                "state": {"type": "string", "description": "Its state."}
              }
            }
          },
          "people": {
            "type": "array",
            "items": {"type": "object", "required": ["user"], "additionalProperties": false, "properties": {"user": {"type": "string"}}}
          },
          "projects": {
            "type": "array",
            "items": {"type": "object", "required": ["cluster_id", "project"], "additionalProperties": false, "properties": {"cluster_id": {"type": "string"}, "project": {"type": "string"}}}
          },
          "nodes": {
            "type": "array",
            "description": "For admins and support only.",
            "items": {"type": "object", "required": ["cluster_id", "host"], "additionalProperties": false, "properties": {"cluster_id": {"type": "string"}, "host": {"type": "string"}}}
          }
        }
      })json",
            .example =
                R"({"units":[{"cluster_id":"hpc-a","uuid":"7101","started_at_ts":1794903120000,)"
                R"("shown":"7100_4","name":"sweep","user":"ada","project":"fluids",)"
                R"("state":"COMPLETED"}],"people":[{"user":"ada"}],)"
                R"("projects":[{"cluster_id":"hpc-a","project":"fluids"}],)"
                R"("nodes":[{"cluster_id":"hpc-a","host":"g14"}]})"},
       .params = {Param::kWords},
       .required = {Param::kWords},
       .audited = false,
       .refusals = {ApiErrorType::kBadData}}};
}

}  // namespace ceems::api
