#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gate/owners.h"
#include "gate/profile_request.h"
#include "gate/request.h"
#include "gate/tsdb_request.h"
#include "net/http.h"
#include "promql/matcher/known_patterns.h"

namespace ceems::gate {

enum class BackendType : std::uint8_t { kTsdb, kProfiles };
/// "tsdb", "pyroscope"
std::string_view type_name(BackendType type);

struct GateRules {
  /// The name that clusters know for the value of the header; null: the same.
  std::function<std::string(std::string_view login)> user_of = {};
  std::vector<std::string> clusters = {};  ///< whose backends this listener has, by ID
  /// The kinds of servers, by cluster; Prometheus if the cluster is not named.
  std::map<std::string, TsdbServer, std::less<>> servers = {};
  TsdbRules tsdb = {};
  ProfileRules profiles = {};
  /// Confines selectors that name no unit to the user's own units, instead of refusing them.
  bool confine = false;
  /// Also confines selectors to the cluster, by its label. This is for backends that hold several
  /// clusters, in which the same ID may belong to units of different users. Every series must have
  /// the label.
  bool pin_cluster = false;
  /// Confines requests to times at which the IDs of their units did not belong to anybody else.
  bool lifetimes = false;
};

/// A request that may pass.
struct Decision {
  std::string user;
  std::string cluster;  ///< whose backends get the request
  bool admin = false;
  /// What is sent instead of the user's own request. Empty for admins, whose requests are not
  /// changed.
  Forward forward = {};
  /// The same request for servers that apply `extra_filters[]` (lb::MatcherSupport), if that makes
  /// much less work for them.
  std::optional<Forward> filtered = {};
  std::vector<std::string> units = {};  ///< for the log
};

/// Decides requests to one type of backends (docs/lb/access.md). It denies whatever it does not
/// understand, and everything while owners are unknown. It refuses the service account as a user,
/// although the database lists it as an admin. Safe for concurrent use.
class Gate {
 public:
  /// `owners` and `clock` must outlive the gate. Null `owners`: there is no access control and
  /// everything passes.
  Gate(BackendType type, GateRules rules, Owners* owners, const Clock& clock = real_clock());

  /// Whether a request with this method, path and header may pass if its body and parameters do.
  /// Reads only these. It may have to ask whether the user is an admin.
  [[nodiscard]] bool admits_head(const ParsedRequest& request, const net::Headers& headers) const;

  /// `headers` are those that the client sent.
  [[nodiscard]] Checked<Decision> decide(const ParsedRequest& request,
                                         const net::Headers& headers) const;

  /// The same within microseconds, for short requests that can be allowed from memory: it neither
  /// looks up owners nor compiles patterns. Returns nothing for all other requests; the caller must
  /// then call decide().
  [[nodiscard]] std::optional<Decision> decide_inline(const ParsedRequest& request,
                                                      const net::Headers& headers) const;

 private:
  /// Who asks for which cluster, and whether as an admin.
  [[nodiscard]] Checked<Decision> identify(const net::Headers& headers,
                                           Owners* owners,
                                           Budget budget) const;
  [[nodiscard]] Checked<Decision> decide(const ParsedRequest& request,
                                         const net::Headers& headers,
                                         Owners* owners,
                                         Budget budget) const;
  /// Admins may send anything. Their requests are only searched for the cluster that they name.
  [[nodiscard]] Checked<Decision> route_admin(const ParsedRequest& request,
                                              Budget budget,
                                              Decision decision) const;
  template <typename Request>
  Checked<Decision> check(Checked<Request> request, Owners& owners, Decision decision) const;
  /// The units that the request selects, if the user may see all of them.
  template <typename Request>
  Checked<UnitSet> allow(Request& request, Owners& owners, Decision& decision) const;
  /// Adds the user's units that lived when the request reads to open selectors.
  Checked<UnitSet> confine(Selection& selection,
                           Owners& owners,
                           const Decision& decision,
                           const promql::TimeSpan& read) const;
  /// Cuts off times at which the IDs of these units belonged to units of others.
  template <typename Request>
  Checked<bool> restrict_times(Request& request,
                               Owners& owners,
                               const Decision& decision,
                               const UnitSet& units) const;
  [[nodiscard]] std::int64_t now_ms() const;

  BackendType type_;
  std::unique_ptr<promql::KnownPatterns> patterns_;
  std::unique_ptr<promql::KnownLanguages> languages_;
  std::unique_ptr<CheckedQueries> queries_;
  GateRules rules_;
  Owners* owners_;
  const Clock* clock_;
};

}  // namespace ceems::gate
