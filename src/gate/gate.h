#pragma once

#include <cstdint>
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
  std::vector<std::string> clusters = {};  ///< ids of the backends of this listener
  TsdbRules tsdb = {};
  ProfileRules profiles = {};
  /// Confines selectors without units to the caller's own instead of refusing them.
  bool confine = false;
  /// Confines selectors to the cluster as well, by its label: for backends that hold several
  /// clusters, where the id of a unit may be another's on another cluster. Every series must bear
  /// the label.
  bool pin_cluster = false;
  /// Keeps requests to times at which their units' ids were nobody else's.
  bool lifetimes = false;
};

/// How a request may pass.
struct Decision {
  std::string user;
  std::string cluster;  ///< whose backends get it
  bool admin = false;
  /// What goes on instead of the user's own request. Empty for admins, whose requests go on as they
  /// came.
  Forward forward = {};
  std::vector<std::string> units = {};  ///< for the log
};

/// Decides requests for one type of backends (docs/lb/access.md). Denies whatever it does not
/// understand, and everything while owners are unknown. The service account of the API server,
/// which its database lists as an admin, is refused as a user. Safe for concurrent use.
class Gate {
 public:
  /// `owners` and `clock` must outlive the gate; null owners: there is no access control,
  /// everything passes.
  Gate(BackendType type, GateRules rules, Owners* owners, const Clock& clock = real_clock());

  /// `headers` are those of the client.
  [[nodiscard]] Checked<Decision> decide(const RawRequest& raw, const net::Headers& headers) const;

  /// The same within microseconds, for short requests that pass by what is in memory: it neither
  /// looks up owners nor compiles patterns. Nothing for all others: decide() has to be called.
  [[nodiscard]] std::optional<Decision> decide_inline(const RawRequest& raw,
                                                      const net::Headers& headers) const;

 private:
  [[nodiscard]] Checked<Decision> decide(const RawRequest& raw,
                                         const net::Headers& headers,
                                         Owners* owners,
                                         Budget budget) const;
  /// Admins pass with everything; their requests are read for the cluster only.
  [[nodiscard]] Checked<Decision> route_admin(const RawRequest& raw,
                                              Budget budget,
                                              Decision decision) const;
  template <typename Request>
  Checked<Decision> check(Checked<Request> request, Owners& owners, Decision decision) const;
  /// The units that the request selects, when the user may see them all.
  Checked<UnitSet> allow(Selection& selection, Owners& owners, Decision& decision) const;
  Checked<UnitSet> confine(Selection& selection, Owners& owners, const Decision& decision) const;
  /// Keeps the request from times at which ids of these units were those of others.
  template <typename Request>
  Checked<bool> restrict_times(Request& request,
                               Owners& owners,
                               const Decision& decision,
                               const UnitSet& units) const;

  BackendType type_;
  std::unique_ptr<promql::KnownPatterns> patterns_;
  std::unique_ptr<CheckedQueries> queries_;
  GateRules rules_;
  Owners* owners_;
  const Clock* clock_;
};

}  // namespace ceems::gate
