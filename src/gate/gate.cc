#include "gate/gate.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "base/strings.h"
#include "gate/named_clusters.h"
#include "gate/unit_filters.h"
#include "model/protocol.h"

namespace ceems::gate {
namespace {

constexpr std::size_t kMaxInlineBytes = 4096;  // parsing takes some 10 ns per byte
// With their texts and units, these take at most some 10 MB.
constexpr std::size_t kMaxQueries = 500;
constexpr std::size_t kMaxPatterns = 2000;
constexpr std::size_t kMaxPatternBytes = 1024;
constexpr std::size_t kMaxLanguages = 500;

/// The value of a header, or empty if the header is missing or given twice: two programs may then
/// read different values.
std::string only_value(const net::Headers& headers, std::string_view name) {
  const std::string* value = nullptr;
  for (const auto& [key, text] : headers) {
    if (same_in_any_case(key, name)) {
      if (value != nullptr) {
        return {};
      }
      value = &text;
    }
  }
  return value == nullptr ? std::string{} : *value;
}

/// When units lived whose series a request for these times may find. Series go on for a while after
/// a unit has ended. The times are rounded, so that the panels of a dashboard ask the same
/// question.
promql::TimeSpan lives_around(const promql::TimeSpan& read) {
  constexpr std::int64_t kQuarterMs = 900'000;
  const std::int64_t from = std::max<std::int64_t>(read.from_ms, 0) / kQuarterMs - 1;
  const std::int64_t to = std::clamp<std::int64_t>(read.to_ms, 0, kFarTime) / kQuarterMs + 2;
  return {.from_ms = from * kQuarterMs, .to_ms = to * kQuarterMs};
}

}  // namespace

std::string_view type_name(BackendType type) {
  return type == BackendType::kTsdb ? "tsdb" : "pyroscope";
}

Gate::Gate(BackendType type, GateRules rules, Owners* owners, const Clock& clock)
    : type_(type),
      patterns_(std::make_unique<promql::KnownPatterns>(kMaxPatterns, kMaxPatternBytes)),
      languages_(std::make_unique<promql::KnownLanguages>(kMaxLanguages, kMaxPatternBytes)),
      queries_(std::make_unique<CheckedQueries>(kMaxQueries, kMaxInlineBytes)),
      rules_(std::move(rules)),
      owners_(owners),
      clock_(&clock) {
  for (SelectionRules* const selection : {&rules_.tsdb.selection, &rules_.profiles.selection}) {
    selection->language.patterns.known = patterns_.get();
    selection->language.patterns.languages = languages_.get();
    selection->refuse_open = !rules_.confine;
  }
  if (!rules_.pin_cluster) {  // pinning changes the text with the cluster of the request
    rules_.tsdb.checked = queries_.get();
  }
}

Checked<Decision> Gate::decide(const ParsedRequest& request, const net::Headers& headers) const {
  return decide(request, headers, owners_, Budget::kFull);
}

std::optional<Decision> Gate::decide_inline(const ParsedRequest& request,
                                            const net::Headers& headers) const {
  Owners* owners = nullptr;
  if (owners_ != nullptr) {
    owners = owners_->cached_only();
    // Parsing calls to Pyroscope takes too long: they may be compressed and nested.
    if (owners == nullptr || type_ != BackendType::kTsdb ||
        request.raw().target.size() + request.raw().body.size() > kMaxInlineBytes) {
      return std::nullopt;
    }
  }
  auto decided = decide(request, headers, owners, Budget::kInline);
  return decided ? std::optional(std::move(*decided)) : std::nullopt;
}

Checked<Decision> Gate::identify(const net::Headers& headers, Owners* owners, Budget budget) const {
  Decision decision;
  decision.cluster = only_value(headers, model::kClusterHeader);
  const auto known = [&](const std::string& cluster) {
    return !cluster.empty() && std::ranges::find(rules_.clusters, cluster) != rules_.clusters.end();
  };
  if (!known(decision.cluster)) {
    return std::unexpected(unknown_cluster());
  }
  if (owners == nullptr) {
    decision.admin = true;
    return decision;
  }
  decision.user = only_value(headers, model::kUserHeader);
  if (decision.user.empty()) {
    return std::unexpected(unauthorized());
  }
  if (rules_.user_of) {
    decision.user = rules_.user_of(decision.user);
  }
  if (decision.user == model::kServiceAccount) {
    return std::unexpected(forbidden_resource("user"));
  }
  const auto admin = owners->is_admin(decision.user);
  if (!admin && budget == Budget::kInline) {
    return std::unexpected(forbidden_resource("budget"));
  }
  decision.admin = admin && *admin;
  return decision;
}

bool Gate::admits_head(const ParsedRequest& request, const net::Headers& headers) const {
  const auto caller = identify(headers, owners_, Budget::kFull);
  if (!caller) {
    return false;
  }
  if (caller->admin) {
    return owners_ == nullptr || request.path().has_value();
  }
  return type_ == BackendType::kTsdb ? TsdbRequest::accepts_route(request, rules_.tsdb)
                                     : ProfileRequest::accepts_route(request, rules_.profiles);
}

Checked<Decision> Gate::decide(const ParsedRequest& request,
                               const net::Headers& headers,
                               Owners* owners,
                               Budget budget) const {
  auto caller = identify(headers, owners, budget);
  if (!caller || owners == nullptr) {
    return caller;
  }
  if (caller->admin) {
    return route_admin(request, budget, *std::move(caller));
  }
  const auto server = rules_.servers.find(caller->cluster);
  const TsdbServer kind = server == rules_.servers.end() ? TsdbServer::kPrometheus : server->second;
  return type_ == BackendType::kTsdb
             ? check(TsdbRequest::read(request, rules_.tsdb, budget, kind), *owners,
                     *std::move(caller))
             : check(ProfileRequest::read(request, rules_.profiles), *owners, *std::move(caller));
}

Checked<Decision> Gate::route_admin(const ParsedRequest& request,
                                    Budget budget,
                                    Decision decision) const {
  CEEMS_TRY(cluster, type_ == BackendType::kTsdb ? cluster_named(request, rules_.tsdb, budget)
                                                 : cluster_named(request, rules_.profiles));
  decision.cluster = cluster.value_or(decision.cluster);
  return decision;
}

template <typename Request>
Checked<Decision> Gate::check(Checked<Request> request, Owners& owners, Decision decision) const {
  if (!request) {
    return std::unexpected(std::move(request).error());
  }
  CEEMS_TRY(allowed, allow(*request, owners, decision));
  const auto server = rules_.servers.find(decision.cluster);
  if constexpr (std::is_same_v<Request, TsdbRequest>) {
    if (server != rules_.servers.end()) {
      CEEMS_TRY(request->keep_parameters_of(server->second));
    }
  }
  if (rules_.lifetimes && !allowed.empty()) {
    CEEMS_TRY(restrict_times(*request, owners, decision, allowed));
  }
  if (rules_.pin_cluster) {
    request->selection().pin(decision.cluster);
  }
  decision.forward = request->forward();
  if constexpr (std::is_same_v<Request, TsdbRequest>) {
    if (server != rules_.servers.end() && server->second == TsdbServer::kVictoriaMetrics &&
        allowed.size() > kUnitsInPattern && request->selection().widen()) {
      decision.filtered = request->forward_filtered(allowed);
    }
  }
  return decision;
}

template <typename Request>
Checked<bool> Gate::restrict_times(Request& request,
                                   Owners& owners,
                                   const Decision& decision,
                                   const UnitSet& units) const {
  const auto shared = owners.shared_ids(decision.user, decision.cluster, units);
  if (!shared) {
    return std::unexpected(forbidden_units("owners_unknown"));
  }
  return shared->empty() ? true : request.restrict_times(*shared, now_ms());
}

std::int64_t Gate::now_ms() const {
  using std::chrono::milliseconds;
  return std::chrono::floor<milliseconds>(clock_->now()).time_since_epoch().count();
}

template <typename Request>
Checked<UnitSet> Gate::allow(Request& request, Owners& owners, Decision& decision) const {
  Selection& selection = request.selection();
  if (const auto& cluster = selection.cluster()) {
    if (std::ranges::find(rules_.clusters, *cluster) == rules_.clusters.end()) {
      return std::unexpected(forbidden_units("cluster_label"));
    }
    decision.cluster = *cluster;
  }
  if (selection.is_open() && !rules_.confine) {
    return std::unexpected(forbidden_units("no_unit"));
  }
  if (!selection.units().empty()) {
    const auto owned = owners.may_see(decision.user, decision.cluster, selection.units());
    if (!owned || !*owned) {
      return std::unexpected(forbidden_units(owned ? "foreign_unit" : "owners_unknown"));
    }
    decision.units.assign(selection.units().begin(), selection.units().end());
  }
  UnitSet units = selection.units();
  if (selection.is_open()) {
    CEEMS_TRY(own, confine(selection, owners, decision, request.times_read(now_ms())));
    units.merge(own);
  }
  return units;
}

Checked<UnitSet> Gate::confine(Selection& selection,
                               Owners& owners,
                               const Decision& decision,
                               const promql::TimeSpan& read) const {
  const std::size_t max_units = type_ == BackendType::kTsdb ? rules_.tsdb.selection.max_units
                                                            : rules_.profiles.selection.max_units;
  auto own = owners.units_of(decision.user, decision.cluster, lives_around(read), max_units);
  if (own && own->empty()) {  // one of another time selects nothing in this one
    own = owners.units_of(decision.user, decision.cluster, kAllTimes, 1);
  }
  if (!own) {
    return std::unexpected(forbidden_units("owners_unknown"));
  }
  if (own->size() > max_units) {
    return std::unexpected(too_many_units(max_units));
  }
  own->erase("");  // it would match every series without a unit
  if (own->empty()) {
    return std::unexpected(forbidden_units("no_unit"));
  }
  CEEMS_TRY(selection.confine(*own));
  return std::move(*own);
}

}  // namespace ceems::gate
