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

/// What becomes of a request.
struct Passage {
  std::string user;
  std::string cluster;  ///< the backends that get it
  bool admin = false;
  /// Who is no admin gets this through and nothing else. Empty for admins, whose request goes on
  /// as it came.
  Forward forward = {};
  std::vector<std::string> units = {};  ///< for the log
};

/// Decides requests for one kind of backends (docs/lb/access.md). Denies whatever it does not
/// understand and whenever owners cannot be told. The service account of the API server, which its
/// data base lists as an admin, is nobody's name here. Safe for concurrent use.
class Gate {
 public:
  /// `owners` and `clock` must outlive the gate; null owners: there is no access control,
  /// everything passes.
  Gate(BackendType type, GateRules rules, Owners* owners, const Clock& clock = real_clock());

  /// `headers` are those of the client.
  [[nodiscard]] Checked<Passage> decide(const RawRequest& raw, const net::Headers& headers) const;

  /// The same for what passes and can be told so within microseconds: without asking anybody for
  /// owners, compiling patterns or reading long requests. Nothing for all else: decide() tells.
  [[nodiscard]] std::optional<Passage> decide_at_once(const RawRequest& raw,
                                                      const net::Headers& headers) const;

 private:
  /// What a decision may use.
  struct Means {
    Owners* owners;
    Effort effort;
  };
  [[nodiscard]] Checked<Passage> decide(const RawRequest& raw,
                                        const net::Headers& headers,
                                        const Means& means) const;
  /// Admins pass with everything; their requests are read for the cluster only.
  [[nodiscard]] Checked<Passage> route_admin(const RawRequest& raw,
                                             Effort effort,
                                             Passage passage) const;
  template <typename Request>
  Checked<Passage> check(Checked<Request> request, const Means& means, Passage passage) const;
  /// The units that the request is about, once it is allowed.
  Checked<UnitSet> allow(Selection& selection, Owners& owners, Passage& passage) const;
  Checked<UnitSet> confine(Selection& selection, Owners& owners, const Passage& passage) const;
  /// Keeps the request from what others did with ids of these units.
  template <typename Request>
  Checked<bool> keep_apart(Request& request,
                           Owners& owners,
                           const Passage& passage,
                           const UnitSet& units) const;

  BackendType type_;
  std::unique_ptr<promql::KnownPatterns> patterns_;
  std::unique_ptr<CheckedQueries> queries_;
  GateRules rules_;
  Owners* owners_;
  const Clock* clock_;
};

}  // namespace ceems::gate
