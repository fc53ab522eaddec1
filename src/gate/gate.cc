#include "gate/gate.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "gate/named_clusters.h"

namespace ceems::gate {
namespace {

constexpr std::string_view kUserHeader = "X-Grafana-User";
constexpr std::string_view kClusterHeader = "X-Ceems-Cluster-Id";
constexpr std::string_view kServiceAccount = "ceems-int-svc";
constexpr std::size_t kLongestAtOnce = 4096;  // bytes; parsing takes some 10 ns for each
// With their texts and units some 10 MB at most.
constexpr std::size_t kMostQueries = 500;
constexpr std::size_t kMostPatterns = 2000;
constexpr std::size_t kLongestPattern = 1024;

/// The value of a header; empty where it is not there, or stands twice: two programs may read
/// different ones.
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

}  // namespace

std::string_view type_name(BackendType type) {
  return type == BackendType::kTsdb ? "tsdb" : "pyroscope";
}

Gate::Gate(BackendType type, GateRules rules, Owners* owners, const Clock& clock)
    : type_(type),
      patterns_(std::make_unique<promql::KnownPatterns>(kMostPatterns, kLongestPattern)),
      queries_(std::make_unique<CheckedQueries>(kMostQueries, kLongestAtOnce)),
      rules_(std::move(rules)),
      owners_(owners),
      clock_(&clock) {
  rules_.tsdb.selection.language.patterns.known = patterns_.get();
  rules_.profiles.selection.language.patterns.known = patterns_.get();
  if (!rules_.pin_cluster) {  // which changes the text by the cluster of the request
    rules_.tsdb.checked = queries_.get();
  }
}

Checked<Passage> Gate::decide(const RawRequest& raw, const net::Headers& headers) const {
  return decide(raw, headers, {.owners = owners_, .effort = Effort::kAny});
}

std::optional<Passage> Gate::decide_at_once(const RawRequest& raw,
                                            const net::Headers& headers) const {
  Means means{.owners = nullptr, .effort = Effort::kAtOnce};
  if (owners_ != nullptr) {
    means.owners = owners_->remembered();
    // Calls of profiles are packed and nested.
    if (means.owners == nullptr || type_ != BackendType::kTsdb ||
        raw.target.size() + raw.body.size() > kLongestAtOnce) {
      return std::nullopt;
    }
  }
  auto decided = decide(raw, headers, means);
  return decided ? std::optional(std::move(*decided)) : std::nullopt;
}

Checked<Passage> Gate::decide(const RawRequest& raw,
                              const net::Headers& headers,
                              const Means& means) const {
  Passage passage;
  passage.cluster = only_value(headers, kClusterHeader);
  const auto known = [&](const std::string& cluster) {
    return !cluster.empty() && std::ranges::find(rules_.clusters, cluster) != rules_.clusters.end();
  };
  if (!known(passage.cluster)) {
    return std::unexpected(unknown_cluster());
  }
  if (means.owners == nullptr) {
    passage.admin = true;
    return passage;
  }
  passage.user = only_value(headers, kUserHeader);
  if (passage.user.empty()) {
    return std::unexpected(unauthorized());
  }
  if (passage.user == kServiceAccount) {
    return std::unexpected(forbidden_resource("user"));
  }
  const auto admin = means.owners->is_admin(passage.user);
  if (!admin && means.effort == Effort::kAtOnce) {
    return std::unexpected(forbidden_resource("effort"));
  }
  passage.admin = admin && *admin;
  if (passage.admin) {
    return route_admin(raw, means.effort, std::move(passage));
  }
  return type_ == BackendType::kTsdb
             ? check(TsdbRequest::read(raw, rules_.tsdb, means.effort), means, std::move(passage))
             : check(ProfileRequest::read(raw, rules_.profiles), means, std::move(passage));
}

Checked<Passage> Gate::route_admin(const RawRequest& raw, Effort effort, Passage passage) const {
  const auto cluster = type_ == BackendType::kTsdb ? cluster_named(raw, rules_.tsdb, effort)
                                                   : cluster_named(raw, rules_.profiles);
  if (!cluster) {
    return std::unexpected(cluster.error());
  }
  passage.cluster = cluster->value_or(passage.cluster);
  return passage;
}

template <typename Request>
Checked<Passage> Gate::check(Checked<Request> request, const Means& means, Passage passage) const {
  if (!request) {
    return std::unexpected(std::move(request).error());
  }
  const auto allowed = allow(request->selection(), *means.owners, passage);
  if (!allowed) {
    return std::unexpected(allowed.error());
  }
  if (rules_.lifetimes && !allowed->empty()) {
    if (auto kept = keep_apart(*request, *means.owners, passage, *allowed); !kept) {
      return std::unexpected(std::move(kept).error());
    }
  }
  if (rules_.pin_cluster) {
    request->selection().pin(passage.cluster);
  }
  passage.forward = request->forward();
  return passage;
}

template <typename Request>
Checked<bool> Gate::keep_apart(Request& request,
                               Owners& owners,
                               const Passage& passage,
                               const UnitSet& units) const {
  const auto shared = owners.shared_ids(passage.user, passage.cluster, units);
  if (!shared) {
    return std::unexpected(forbidden_units("owners_unknown"));
  }
  using std::chrono::milliseconds;
  const auto now = std::chrono::floor<milliseconds>(clock_->now()).time_since_epoch();
  return shared->empty() ? true : request.keep_apart(*shared, now.count());
}

Checked<UnitSet> Gate::allow(Selection& selection, Owners& owners, Passage& passage) const {
  if (const auto& cluster = selection.cluster()) {
    if (std::ranges::find(rules_.clusters, *cluster) == rules_.clusters.end()) {
      return std::unexpected(forbidden_units("cluster_label"));
    }
    passage.cluster = *cluster;
  }
  if (selection.is_open() && !rules_.confine) {
    return std::unexpected(forbidden_units("no_unit"));
  }
  if (!selection.units().empty()) {
    const auto owned = owners.may_see(passage.user, passage.cluster, selection.units());
    if (!owned || !*owned) {
      return std::unexpected(forbidden_units(owned ? "foreign_unit" : "owners_unknown"));
    }
    passage.units.assign(selection.units().begin(), selection.units().end());
  }
  UnitSet units = selection.units();
  if (selection.is_open()) {
    auto own = confine(selection, owners, passage);
    if (!own) {
      return own;
    }
    units.merge(*own);
  }
  return units;
}

Checked<UnitSet> Gate::confine(Selection& selection, Owners& owners, const Passage& passage) const {
  const std::size_t most = type_ == BackendType::kTsdb ? rules_.tsdb.selection.most_units
                                                       : rules_.profiles.selection.most_units;
  auto own = owners.units_of(passage.user, passage.cluster, most);
  if (!own) {
    return std::unexpected(forbidden_units("owners_unknown"));
  }
  if (own->size() > most) {
    return std::unexpected(forbidden_units("too_many_units"));
  }
  own->erase("");  // would match every series without unit
  if (own->empty()) {
    return std::unexpected(forbidden_units("no_unit"));
  }
  if (auto confined = selection.confine(*own); !confined) {
    return std::unexpected(std::move(confined).error());
  }
  return std::move(*own);
}

}  // namespace ceems::gate
