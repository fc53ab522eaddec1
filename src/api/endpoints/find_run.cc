#include "api/endpoints/find_run.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace ceems::api {
namespace {

/// How often one ID may have run; a report needs the last of them.
constexpr std::size_t kMaxRuns = 1000;

}  // namespace

Result<StoredUnit> find_run(const Services& services,
                            const Call& call,
                            const std::string& uuid,
                            std::optional<std::int64_t> start_ms) {
  store::UnitQuery query;
  query.owners = call.admin_route ? access::chosen_rows(call.identity, {}, call.params.projects)
                                  : access::own_rows(call.identity, call.params.projects);
  query.projects = call.params.projects;
  query.clusters = call.params.clusters;
  query.uuids = {uuid};
  query.limit = kMaxRuns;
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(units, timer.run([&] { return read_stored_units(*services.reader, query); }));
  if (start_ms) {
    std::erase_if(units,
                  [&](const StoredUnit& unit) { return unit.unit.started_at_ts != *start_ms; });
  }
  const auto last = std::ranges::max_element(
      units, {}, [](const StoredUnit& unit) { return unit.unit.started_at_ts; });
  if (last == units.end()) {
    return fail(ErrorCode::kNotFound, "no such unit");
  }
  return std::move(*last);
}

std::optional<StoredUnit> find_asked_run(const Services& services, Call& call) {
  if (call.params.uuids.size() != 1 || call.params.clusters.size() != 1) {
    answer_error(*call.response, ApiErrorType::kBadData, "one cluster_id and one uuid are needed");
    return std::nullopt;
  }
  const auto start = parse_start(call.params);
  if (!start) {
    answer_bad_request(call, start.error());
    return std::nullopt;
  }
  if (call.identity.role == access::Role::kAdmin) {
    call.admin_route = true;
    call.foreign = true;
  }
  auto found = find_run(services, call, call.params.uuids.front(), *start);
  if (found) {
    return *std::move(found);
  }
  if (found.error().code == ErrorCode::kNotFound) {
    answer_error(*call.response, ApiErrorType::kNotFound, found.error().message);
  } else {
    answer_failure(*call.response, found.error());
  }
  return std::nullopt;
}

Result<std::optional<std::int64_t>> parse_start(const Params& params) {
  if (params.start.empty()) {
    return std::nullopt;
  }
  const auto start_ms = parse_int<std::int64_t>(params.start);
  if (!start_ms || *start_ms < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "query parameter 'start': expected milliseconds since 1970");
  }
  return start_ms;
}

}  // namespace ceems::api
