#include "api/check/past_runs.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "access/lists.h"
#include "api/answer/numbers.h"
#include "base/log.h"
#include "base/time/durations.h"
#include "report/family.h"
#include "store/facts.h"
#include "store/unit_name.h"

namespace ceems::api {
namespace {

using report::Number;
using store::Fact;

constexpr std::size_t kOwnRuns = 1000;        // the newest of the caller
constexpr std::size_t kStatisticRuns = 1000;  // of a project or partition
constexpr std::size_t kSiteRuns = 10'000;     // by which ranges are checked
constexpr std::size_t kRunsOfPerson = 20;     // of a project or partition
constexpr std::size_t kFamilyRuns = 60;
constexpr std::size_t kLeastFamily = 2, kLeastRuns = 3;
constexpr std::size_t kLeastHeldBefore = 5;  // runs of a family that ranges are checked of
constexpr std::size_t kMaxHeld = 10;         // newest runs of a family that are checked
constexpr std::int64_t kPartitionMs = 7 * kDayMs;

constexpr std::array kColumns{Fact::kStarted, Fact::kCreated, Fact::kEnded,     Fact::kName,
                              Fact::kUser,    Fact::kProject, Fact::kPartition, Fact::kNodes,
                              Fact::kCpus,    Fact::kGpus,    Fact::kTimeLimit, Fact::kKwh,
                              Fact::kGrams};

Number seconds_between(std::int64_t from_ms, std::int64_t to_ms) {
  return from_ms > 0 && to_ms >= from_ms
             ? Number(static_cast<double>(to_ms - from_ms) / static_cast<double>(kSecondMs))
             : std::nullopt;
}

PastRun run_of(const store::Cursor& row) {
  const auto number = [&row](std::size_t column) {
    return value_of(store::column_of(kColumns.at(column)).kind, row.integer(column));
  };
  PastRun run;
  run.family = {.user = std::string(row.text(4)),
                .project = std::string(row.text(5)),
                .name = store::normal_name(row.text(3)),
                .queue = std::string(row.text(6)),
                .nodes = row.integer(7),
                .cpus = row.integer(8),
                .gpus = row.integer(9)};
  run.wait = seconds_between(row.integer(1), row.integer(0));
  run.elapsed = seconds_between(row.integer(0), row.integer(2));
  run.cpus = number(8);
  run.gpus = number(9);
  run.time_limit = number(10);
  run.kwh = number(11);
  run.grams = number(12);
  return run;
}

/// The newest completed runs that the filter selects.
Result<std::vector<PastRun>> read_runs(store::Reader& reader,
                                       store::FactFilter filter,
                                       std::int64_t now_ms,
                                       std::int64_t back_ms,
                                       std::size_t limit) {
  store::FactListQuery query{.filter = std::move(filter),
                             .columns = {kColumns.begin(), kColumns.end()},
                             .sort = Fact::kEnded,
                             .descending = true,
                             .limit = limit};
  query.filter.ended = store::TimeRange{now_ms - back_ms, now_ms};
  query.filter.states = {"COMPLETED", "DONE", "FINISHED", "SUCCEEDED"};
  CEEMS_TRY(rows, reader.unit_facts(query));
  std::vector<PastRun> runs;
  while (true) {
    CEEMS_TRY(row, rows->next());
    if (!row) {
      return runs;
    }
    if (rows->integer(0) > 0) {
      runs.push_back(run_of(*rows));
    }
  }
}

bool is_of_family(const PastRun& run, const JobRequest& request, std::string_view name) {
  return run.family.name == name &&
         (request.project.empty() || run.family.project == request.project) &&
         (request.partition.empty() || run.family.queue == request.partition);
}

/// Managers may give whole cores or sockets, so there may be more CPUs than were asked for.
bool is_as_large(const PastRun& run, const JobRequest& request) {
  constexpr double kThreads = 2;
  const double cpus = run.cpus.value_or(0);
  const double asked = request.cpus.value_or(cpus);
  return (!request.nodes || static_cast<double>(run.family.nodes) == *request.nodes) &&
         run.gpus.value_or(0) == request.gpus.value_or(run.gpus.value_or(0)) && cpus >= asked &&
         cpus <= kThreads * asked;
}

/// How many times as large the request is: by GPUs if it asks for any, else by CPUs.
double size_of(const PastRun& run, const JobRequest& request) {
  const Number& asked = request.wants_gpus() ? request.gpus : request.cpus;
  const Number& had = request.wants_gpus() ? run.gpus : run.cpus;
  return asked && had && *had > 0 ? *asked / *had : 1;
}

/// The run as if it had been as large as the request and, with `limits`, as long in proportion to
/// the time limits of both.
PastRun scaled_to(PastRun run, const JobRequest& request, bool limits) {
  const double longer = limits && request.time_limit && run.time_limit && *run.time_limit > 0
                            ? *request.time_limit / *run.time_limit
                            : 1;
  const double more = size_of(run, request) * longer;
  const auto scale = [](Number& number, double by) {
    if (number) {
      *number *= by;
    }
  };
  scale(run.elapsed, longer);
  scale(run.kwh, more);
  scale(run.grams, more);
  return run;
}

/// Of the same kind of machine as the request, and as large as it.
std::vector<PastRun> alike(const std::vector<PastRun>& runs, const JobRequest& request) {
  std::vector<PastRun> all;
  const bool known = request.cpus || request.gpus;
  for (const PastRun& run : runs) {
    if (!known || (run.gpus.value_or(0) > 0) == request.wants_gpus()) {
      all.push_back(scaled_to(run, request, true));
    }
  }
  return all;
}

/// No more than a few runs of each person. Empty unless they are of several people, none of whom
/// has most of them.
std::vector<PastRun> of_many_people(const std::vector<PastRun>& runs) {
  std::map<std::string_view, std::size_t> counts;
  std::vector<PastRun> kept;
  for (const PastRun& run : runs) {
    if (++counts[run.family.user] <= kRunsOfPerson) {
      kept.push_back(run);
    }
  }
  std::size_t most = 0;
  for (const auto& [user, count] : counts) {
    most = std::max(most, std::min(count, kRunsOfPerson));
  }
  return counts.size() >= kLeastPeople && 2 * most <= kept.size() ? kept : std::vector<PastRun>();
}

PastRun run_of(const store::FamilyRun& one, const store::Family& family) {
  return {.family = family,
          .cpus = one.cpus,
          .gpus = {},
          .time_limit = one.time_limit,
          .wait = seconds_between(one.created_at_ts, one.key.started_at_ts),
          .elapsed = seconds_between(one.key.started_at_ts, one.ended_at_ts),
          .kwh = one.kwh,
          .grams = one.grams};
}

class Search {
 public:
  Search(store::Reader& reader,
         const access::Identity& identity,
         const JobRequest& request,
         std::int64_t now_ms)
      : reader_(reader), identity_(identity), request_(request), now_ms_(now_ms) {}

  Result<PastRuns> find() {
    store::FactFilter own;
    own.clusters = {request_.cluster_id};
    access::list_own(identity_, access::Part::kOwn, own);
    CEEMS_TRY(runs, read_runs(reader_, own, now_ms_, report::kFamilyMs, kOwnRuns));
    CEEMS_TRY(read_family(runs));
    if (past_.runs.size() >= kLeastFamily) {
      return std::move(past_);
    }
    if (take(Basis::kUser, identity_.user, alike(in_partition(runs), request_)) ||
        take(Basis::kUser, identity_.user, alike(runs, request_))) {
      return std::move(past_);
    }
    CEEMS_TRY(read_others());
    return std::move(past_);
  }

 private:
  /// Uses these runs if there are enough of them.
  bool take(Basis basis, const std::string& name, std::vector<PastRun> runs) {
    if (runs.size() < kLeastRuns) {
      return false;
    }
    past_.basis = basis;
    past_.name = name;
    past_.runs = std::move(runs);
    return true;
  }

  [[nodiscard]] std::vector<PastRun> in_partition(std::vector<PastRun> runs) const {
    std::erase_if(runs, [this](const PastRun& run) {
      return !request_.partition.empty() && run.family.queue != request_.partition;
    });
    return runs;
  }

  /// The runs of the family: of just this size, else of any size.
  Result<> read_family(const std::vector<PastRun>& own) {
    if (request_.name.empty()) {
      return {};
    }
    const std::string name = store::normal_name(request_.name);
    std::vector<PastRun> others;
    std::optional<store::Family> family;
    for (const PastRun& run : own) {
      if (is_of_family(run, request_, name)) {
        others.push_back(scaled_to(run, request_, false));
        if (!family && is_as_large(run, request_)) {
          family = run.family;
        }
      }
    }
    if (!family && own.size() == kOwnRuns) {
      family = asked_family(name);
    }
    if (family) {
      CEEMS_TRY(runs, reader_.family_runs({.run = {.cluster_id = request_.cluster_id},
                                           .ended = {now_ms_ - report::kFamilyMs, now_ms_},
                                           .limit = kFamilyRuns,
                                           .family = family}));
      std::erase_if(runs, [](const auto& run) { return run.state == "OUT_OF_MEMORY"; });
      past_.family = std::move(runs);
    }
    std::vector<PastRun> same;
    if (family) {
      same.reserve(past_.family.size());
      for (const store::FamilyRun& run : past_.family) {
        same.push_back(run_of(run, *family));
      }
    }
    past_.runs = same.size() >= kLeastFamily ? std::move(same) : std::move(others);
    if (!past_.runs.empty()) {
      past_.basis = Basis::kFamily;
      past_.name = name;
    }
    return {};
  }

  /// The family as it would be stored of a job that gets what it asks for.
  [[nodiscard]] std::optional<store::Family> asked_family(const std::string& name) const {
    constexpr double kMilli = 1000;
    if (!request_.nodes || !request_.cpus || request_.project.empty()) {
      return std::nullopt;
    }
    const auto whole = [](const Number& number, double scale) {
      constexpr double kMax = 1e15;
      return static_cast<std::int64_t>(std::min(number.value_or(0) * scale, kMax));
    };
    return store::Family{.user = identity_.user,
                         .project = request_.project,
                         .name = name,
                         .queue = request_.partition,
                         .nodes = whole(request_.nodes, 1),
                         .cpus = whole(request_.cpus, kMilli),
                         .gpus = whole(request_.gpus, kMilli)};
  }

  /// What others did, as numbers of several people. One run of the family is better than none.
  Result<> read_others() {
    PastRuns own = std::exchange(past_, {});
    if (!request_.project.empty()) {
      store::FactFilter filter;
      filter.clusters = {request_.cluster_id};
      filter.projects = {request_.project};
      access::list_projects(identity_, access::Part::kAll, filter);
      CEEMS_TRY(runs, read_runs(reader_, filter, now_ms_, report::kFamilyMs, kStatisticRuns));
      if (take(Basis::kProject, request_.project, of_many_people(alike(runs, request_)))) {
        return {};
      }
    }
    if (!request_.partition.empty()) {
      store::FactFilter filter;
      filter.clusters = {request_.cluster_id};
      filter.partitions = {request_.partition};
      access::list_statistics(filter);
      const auto runs = read_runs(reader_, filter, now_ms_, kPartitionMs, kStatisticRuns);
      if (!runs) {  // no index has partitions
        log::debug("cannot read the runs of a partition", {{"err", runs.error().message}});
      } else if (take(Basis::kPartition, request_.partition,
                      of_many_people(alike(*runs, request_)))) {
        return {};
      }
    }
    past_ = std::move(own);
    return {};
  }

  store::Reader& reader_;
  const access::Identity& identity_;
  const JobRequest& request_;
  std::int64_t now_ms_;
  PastRuns past_;
};

}  // namespace

std::string_view to_string(Basis basis) {
  switch (basis) {
    case Basis::kFamily:
      return "family";
    case Basis::kUser:
      return "user";
    case Basis::kProject:
      return "project";
    case Basis::kPartition:
      return "partition";
    case Basis::kNone:
      break;
  }
  return "none";
}

Result<PastRuns> find_past_runs(store::Reader& reader,
                                const access::Identity& identity,
                                const JobRequest& request,
                                std::int64_t now_ms) {
  return Search(reader, identity, request, now_ms).find();
}

Result<report::Held> held_on(store::Reader& reader,
                             const std::string& cluster_id,
                             std::int64_t now_ms) {
  store::FactFilter filter;
  filter.clusters = {cluster_id};
  access::list_statistics(filter);
  CEEMS_TRY(runs, read_runs(reader, filter, now_ms, report::kFamilyMs, kSiteRuns));
  std::map<std::tuple<std::string, std::string, std::string, std::string, std::int64_t,
                      std::int64_t, std::int64_t>,
           std::vector<double>>
      families;
  for (PastRun& run : runs) {
    store::Family& one = run.family;
    if (run.kwh) {
      families[{std::move(one.user), std::move(one.project), std::move(one.name),
                std::move(one.queue), one.nodes, one.cpus, one.gpus}]
          .push_back(*run.kwh);
    }
  }
  report::Held all;
  std::map<std::string_view, std::size_t> people;
  for (const auto& [family, values] : families) {
    const auto held = report::hold_back(values, kLeastHeldBefore, kMaxHeld);
    all.of += held.of;
    all.held += held.held;
    people[std::get<0>(family)] += held.of;
  }
  const auto of_people =
      std::ranges::count_if(people, [](const auto& one) { return one.second > 0; });
  return static_cast<std::size_t>(of_people) >= kLeastPeople ? all : report::Held{};
}

}  // namespace ceems::api
