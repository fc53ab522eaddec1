#include "api/endpoints/unit_period.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time/durations.h"
#include "promql/reach.h"

namespace ceems::api {
namespace {

/// Created, started and ended, which identify a life of an ID.
using Times = std::array<std::int64_t, 3>;

/// The lives of the ID that the caller may see the series of. Marks calls for units of other users.
Result<std::vector<Times>> visible_lives(const Services& services, Call& call) {
  store::UnitQuery query;
  query.owners = access::series_rows(call.identity, call.params.projects);
  query.clusters = call.params.clusters;
  query.uuids = call.params.uuids;
  const auto fields = select_fields(store::unit_fields(),
                                    {"username", "created_at_ts", "started_at_ts", "ended_at_ts"});
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(rows, timer.run([&] { return services.reader->units(query, *fields); }));
  std::vector<Times> lives;
  while (true) {
    CEEMS_TRY(row, timer.run([&] { return rows->next(); }));
    if (!row) {
      return lives;
    }
    const bool own = rows->text(0) == call.identity.user;
    call.foreign = call.foreign || (!own && call.identity.role == access::Role::kAdmin);
    lives.push_back({rows->integer(1), rows->integer(2), rows->integer(3)});
  }
}

/// All lives of the ID. One that is not among the caller's own, each of which counts once, is
/// somebody else's.
Result<gate::SharedId> lives_of(const Services& services, Call& call) {
  CEEMS_TRY(own, visible_lives(services, call));
  if (own.empty()) {
    return gate::SharedId{};
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(lives, timer.run([&] {
    return services.reader->unit_lives({}, call.params.clusters.front(), call.params.uuids);
  }));
  for (store::UnitLife& life : lives) {
    const auto found =
        std::ranges::find(own, Times{life.created_ms, life.started_ms, life.ended_ms});
    life.in_scope = found != own.end();
    if (life.in_scope) {
      own.erase(found);
    }
  }
  auto by_id = gate::lives_by_id(std::move(lives));
  return std::move(by_id[call.params.uuids.front()]);
}

/// From the first start to the last end, at most until now.
store::TimeRange bounds_of(const std::vector<promql::TimeSpan>& lives, std::int64_t now_ms) {
  store::TimeRange bounds{.from_ms = lives.front().from_ms, .to_ms = 0};
  for (const promql::TimeSpan& life : lives) {
    bounds.from_ms = std::max<std::int64_t>(std::min(bounds.from_ms, life.from_ms), 0);
    bounds.to_ms = std::max(bounds.to_ms, std::min(life.to_ms, now_ms));
  }
  return bounds;
}

/// The requested time, or the default, in milliseconds.
std::int64_t in_milliseconds(std::optional<std::int64_t> seconds, std::int64_t default_ms) {
  return seconds ? *seconds * kSecondMs : default_ms;
}

}  // namespace

std::optional<UnitPeriod> period_of_unit(const Services& services, Call& call) {
  const Params& params = call.params;
  if (params.uuids.size() != 1 || params.clusters.size() != 1) {
    answer_error(*call.response, ApiErrorType::kBadData, "one cluster_id and one uuid are needed");
    return std::nullopt;
  }
  const auto from = parse_seconds("from", params.from);
  const auto to = parse_seconds("to", params.to);
  if (!from || !to) {
    answer_bad_request(call, !from ? from.error() : to.error());
    return std::nullopt;
  }
  auto lives = lives_of(services, call);
  if (!lives) {
    answer_failure(*call.response, lives.error());
    return std::nullopt;
  }
  if (lives->own.empty()) {
    answer_error(*call.response, ApiErrorType::kForbidden, "user do not have permissions on uuids");
    return std::nullopt;
  }
  const store::TimeRange life = bounds_of(lives->own, services.now_ms());
  return UnitPeriod{
      .range = {.from_ms = std::max({in_milliseconds(*from, life.from_ms), life.from_ms - kMinuteMs,
                                     std::int64_t{0}}),
                .to_ms = std::min(in_milliseconds(*to, life.to_ms), life.to_ms + kMinuteMs)},
      .lives = std::move(*lives)};
}

}  // namespace ceems::api
