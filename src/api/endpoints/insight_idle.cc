// Units that do nothing with what they have reserved.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "access/lists.h"
#include "api/accounting/accounting.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/missing_clusters.h"
#include "api/request/list_params.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using store::Fact;
constexpr int kIdleDigits = 6;

/// On the plain path, admins see everybody's as on the other one.
void set_owners(Call& call, store::FactFilter& filter) {
  const bool all = call.admin_route || call.identity.role == access::Role::kAdmin;
  if (all) {
    access::list_everybodys(call.identity, {}, filter);
    call.foreign = true;
  } else {
    access::list_own(call.identity, access::parse_part(call.params.scope), filter);
  }
}

/// A unit that is idle now.
struct IdleRow {
  std::string cluster, uuid, array, user, project, partition;
  std::int64_t since_ms = 0;
  std::optional<double> watts, cost, gpus, cpus;
};

class IdleNow {
 public:
  IdleNow(const Services& services, Call& call) : services_(services), call_(call) {}

  void answer() {
    const auto wanted = split_lists(call_.params.clusters);
    for (const SiteCluster& cluster : services_.site->clusters) {
      if (!wanted.empty() && std::ranges::find(wanted, cluster.id) == wanted.end()) {
        continue;
      }
      if (const auto done = read(cluster); !done) {
        answer_failure(*call_.response, done.error());
        return;
      }
    }
    std::ranges::sort(rows_, [](const IdleRow& a, const IdleRow& b) {
      return std::tuple(-a.watts.value_or(0), a.cluster, a.uuid) <
             std::tuple(-b.watts.value_or(0), b.cluster, b.uuid);
    });
    std::string data;
    JsonWriter json(data);
    json.begin_array();
    for (const IdleRow& row : rows_) {
      append(json, row);
    }
    json.end_array();
    asked_.answer(*call_.response, data);
  }

 private:
  /// A cluster without a TSDB, or whose TSDB does not know such series, has no rows.
  Result<> read(const SiteCluster& cluster) {
    if (services_.fleet == nullptr || !cluster.series) {
      asked_.without_tsdb(cluster.id);
      return {};
    }
    const auto answer = services_.fleet->idle_units(cluster.id);
    if (!answer) {
      asked_.failed(cluster.id, answer.error());
      return {};
    }
    asked_.answered();
    const std::vector<IdleUnit>& idle = *answer;
    if (idle.empty()) {
      return {};
    }
    std::map<std::string, const IdleUnit*> by_id;
    store::FactListQuery query;
    query.filter.projects = split_lists(call_.params.projects);
    query.filter.clusters = {cluster.id};
    query.filter.state_running = true;
    for (const IdleUnit& unit : idle) {
      by_id.emplace(unit.uuid, &unit);
      query.filter.uuids.push_back(unit.uuid);
    }
    set_owners(call_, query.filter);
    query.columns = {Fact::kUuid,      Fact::kStarted, Fact::kUser, Fact::kProject,
                     Fact::kPartition, Fact::kCpus,    Fact::kGpus, Fact::kArray};
    query.sort = Fact::kUuid;
    query.limit = idle.size() * 2;
    QueryTimer timer(*services_.metrics, Query::kUnits);
    auto rows = timer.run([&] { return services_.reader->unit_facts(query); });
    while (rows) {
      CEEMS_TRY(row, timer.run([&] { return (*rows)->next(); }));
      if (!row) {
        return {};
      }
      timer.count_row();
      take(cluster.id, **rows, by_id);
    }
    return fail(rows.error());
  }

  void take(const std::string& cluster,
            const store::Cursor& row,
            const std::map<std::string, const IdleUnit*>& by_id) {
    const auto found = by_id.find(std::string(row.text(0)));
    // A unit may be idle for an hour at the earliest an hour after it began.
    if (found == by_id.end() || services_.now_ms() - row.integer(1) < kHourMs) {
      return;
    }
    rows_.push_back({.cluster = cluster,
                     .uuid = found->first,
                     .array = std::string(row.text(7)),
                     .user = std::string(row.text(2)),
                     .project = std::string(row.text(3)),
                     .partition = std::string(row.text(4)),
                     .since_ms = std::max(found->second->since_ms, row.integer(1)),
                     .watts = found->second->watts,
                     .cost = {},
                     .gpus = value_of(store::FactKind::kMilli, row.integer(6)),
                     .cpus = value_of(store::FactKind::kMilli, row.integer(5))});
  }

  void append(JsonWriter& json, const IdleRow& row) {
    constexpr double kWattsOfKw = 1000;
    const std::int64_t now = services_.now_ms();
    const std::int64_t idle_ms = now - row.since_ms;
    const double hours = static_cast<double>(idle_ms) / static_cast<double>(kHourMs);
    std::optional<double> kwh;
    if (row.watts) {
      kwh = *row.watts / kWattsOfKw * hours;
    }
    const auto number = [&json](std::string_view name, std::optional<double> value) {
      json.key(name);
      append_number(json, value ? std::optional(rounded(*value, kIdleDigits)) : value);
    };
    const auto& exempt = services_.accounting->options().idle_exempt_partitions;
    json.begin_object().member("cluster_id", row.cluster).member("uuid", row.uuid);
    if (!row.array.empty()) {
      json.member("array", row.array);
    }
    json.member("user", row.user).member("project", row.project);
    json.member("partition", row.partition).member("since_ts", row.since_ms);
    json.member("idle_s", idle_ms / kSecondMs);
    number("cpus", row.cpus);
    number("gpus", row.gpus);
    number("watts", row.watts);
    number("kwh", kwh);
    if (services_.accounting->priced()) {
      number("cost", costs_.of(row.cluster, row.since_ms, now, kwh, row.cpus.value_or(0) * hours,
                               row.gpus.value_or(0) * hours));
    }
    json.key("exempt");
    if (std::ranges::find(exempt, row.partition) != exempt.end()) {
      json.value("partition");
    } else {
      json.value(nullptr);
    }
    json.end_object();
  }

  const Services& services_;
  Call& call_;
  Costs costs_ = services_.accounting->costs();
  std::vector<IdleRow> rows_;
  AskedClusters asked_{"cannot read which units are idle"};
};

constexpr std::array<std::pair<std::string_view, Fact>, 4> kShareBy{
    {{"project", Fact::kProject},
     {"partition", Fact::kPartition},
     {"user", Fact::kUser},
     {"cluster", Fact::kClusterId}}};

Result<store::SummaryQuery> share_query(const Services& services, const Call& call) {
  const auto by = std::ranges::find(kShareBy, call.params.text(Param::kBy),
                                    &std::pair<std::string_view, Fact>::first);
  if (by == kShareBy.end()) {
    return wrong_parameter("'by': expected project, partition, user or cluster");
  }
  CEEMS_TRY(ended, parse_days(call.params, services.now_ms()));
  store::SummaryQuery query;
  query.filter.projects = split_lists(call.params.projects);
  query.filter.clusters = split_lists(call.params.clusters);
  query.filter.ended = ended;
  query.facets = {by->second};
  return query;
}

/// The shares of the idle power of what was reserved, and of what was not used of that, of units
/// that ended in the period.
void answer_shares(const Services& services, Call& call) {
  auto query = share_query(services, call);
  if (!query) {
    answer_bad_request(call, query.error());
    return;
  }
  set_owners(call, query->filter);
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto many =
      timer.run([&] { return services.reader->has_more_units(query->filter, kMaxUnits); });
  if (many && *many) {
    answer_bad_request(call, wrong_parameter("'from': choose a shorter period").error());
    return;
  }
  auto sums =
      many ? timer.run([&] { return services.reader->unit_summary(*query); }) : fail(many.error());
  if (!sums) {
    answer_failure(*call.response, sums.error());
    return;
  }
  // Groups of which it is not known what they did not use come last.
  auto& values = sums->facets.front();
  std::ranges::stable_sort(values, std::ranges::greater(), [](const store::FacetValue& one) {
    return std::tuple(one.not_used_of_kwh > 0 ? one.not_used_kwh : -1, one.idle_kwh);
  });
  std::string data;
  JsonWriter json(data);
  const auto number = [&json](std::string_view name, std::optional<double> value) {
    json.key(name);
    append_number(json, value ? std::optional(rounded(*value, kIdleDigits)) : value);
  };
  json.begin_array();
  for (const store::FacetValue& one : values) {
    const auto if_known = [](double of_kwh, double value) {
      return of_kwh > 0 ? std::optional(value) : std::nullopt;
    };
    json.begin_object().member("value", one.value).member("units", one.units);
    number("kwh", one.kwh);
    number("measured_kwh", one.idle_of_kwh);
    number("idle_kwh", if_known(one.idle_of_kwh, one.idle_kwh));
    number("share", if_known(one.idle_of_kwh, one.idle_kwh / one.idle_of_kwh));
    number("not_used_of_kwh", one.not_used_of_kwh);
    number("not_used_kwh", if_known(one.not_used_of_kwh, one.not_used_kwh));
    number("not_used_share", if_known(one.not_used_of_kwh, one.not_used_kwh / one.not_used_of_kwh));
    json.end_object();
  }
  json.end_array();
  answer_data(*call.response, data);
}

void get_idle(const Services& services, Call& call) {
  if (!call.params.text(Param::kBy).empty()) {
    answer_shares(services, call);
  } else {
    IdleNow(services, call).answer();
  }
}

}  // namespace

Endpoints insight_idle_endpoints() {
  const Endpoint idle{
      .handler = get_idle,
      .data =
          {.name = "IdleUnit",
           .definitions = R"json("IdleUnit": {
        "type": "object",
        "description": "A unit that does nothing now; or, with `by`, the energy of the idle power of what units had reserved, and of what they did not use of that.",
        "properties": {
          "cluster_id": {"type": "string", "description": "ID of the cluster."},
          "uuid": {"type": "string", "description": "ID of the unit."},
          "array": {"type": "string", "description": "The ID that SLURM shows of a task of an array or a part of a heterogeneous job. Absent of others."},
          "user": {"type": "string", "description": "Owner."},
          "project": {"type": "string", "description": "Project."},
          "partition": {"type": "string", "description": "Partition or queue."},
          "since_ts": {"type": "integer", "description": "Idle at least since then, in milliseconds since 1970."},
          "idle_s": {"type": "integer", "description": "Seconds since then."},
          "cpus": {"type": ["number", "null"], "description": "CPUs that it has reserved."},
          "gpus": {"type": ["number", "null"], "description": "GPUs that it has reserved."},
          "watts": {"type": ["number", "null"], "description": "What it draws now."},
          "kwh": {"type": ["number", "null"], "description": "That power over this time."},
          "cost": {"type": ["number", "null"], "description": "What that costs. Absent without a price."},
          "exempt": {"type": ["string", "null"], "description": "Why nobody minds: `partition`."},
          "value": {"type": "string", "description": "With `by`: the project, partition, user or cluster."},
          "units": {"type": "integer", "description": "With `by`: units that ended in the period."},
          "measured_kwh": {"type": "number", "description": "With `by`: energy of those of which idle power is known."},
          "idle_kwh": {"type": ["number", "null"], "description": "With `by`: the part of it that is idle power."},
          "share": {"type": ["number", "null"], "description": "With `by`: that part, from 0 to 1."},
          "not_used_of_kwh": {"type": "number", "description": "With `by`: energy of the units whose unused part is known."},
          "not_used_kwh": {"type": ["number", "null"], "description": "With `by`: the part of it that is the idle power of what they had reserved and did not use at that time. The groups are in this order."},
          "not_used_share": {"type": ["number", "null"], "description": "With `by`: that part, from 0 to 1."}
        }
      })json",
           .example =
               R"({"cluster_id":"hpc-a","uuid":"5120","user":"ada","project":"fluids","partition":"gpu",)"
               R"("since_ts":1794900000000,"idle_s":7800,"cpus":64,"gpus":4,"watts":612,"kwh":1.326,)"
               R"("cost":0.31,"exempt":null})"},
      .params = {Param::kClusterId, Param::kProject, Param::kFrom, Param::kTo, Param::kBy},
      .window = WindowKind::kOwn,
      .by_cluster = true,
      .tagged = false,
      .waits = true};
  return {idle.for_users(
              "insight/idle",
              "The caller's units that do nothing now, or the idle power of what they reserved.",
              {Param::kScope}),
          idle.for_admins(
              "insight/idle/admin",
              "Everybody's units that do nothing now, or the idle power of what they reserved.")};
}

}  // namespace ceems::api
