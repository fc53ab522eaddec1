#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "gate/shared_ids.h"

namespace ceems::store {
class Reader;
}

namespace ceems::gate {

using UnitSet = std::set<std::string, std::less<>>;

/// Knows who may see which units. Safe for concurrent use. An error means that the answer is not
/// known, and callers must deny.
class Owners {
 public:
  virtual ~Owners() = default;
  virtual Result<bool> is_admin(const std::string& user) = 0;
  /// Whether the user may see all of these units of the cluster. False if `units` is empty.
  virtual Result<bool> may_see(const std::string& user,
                               const std::string& cluster,
                               const UnitSet& units) = 0;
  /// The IDs of the user's own units in the cluster that lived at some time of `alive`, in
  /// milliseconds since the epoch; at most `limit` + 1, so that the caller sees when there are more
  /// than `limit`.
  virtual Result<UnitSet> units_of(const std::string& user,
                                   const std::string& cluster,
                                   const promql::TimeSpan& alive,
                                   std::size_t limit) = 0;

  /// The IDs among `units` that other users' units of the cluster have had as well.
  virtual Result<SharedIds> shared_ids(const std::string& user,
                                       const std::string& cluster,
                                       const UnitSet& units) = 0;

  /// Owners that answer at once, from memory alone; what is not in memory is an error. Null if
  /// nothing is cached. They live as long as this object.
  virtual Owners* cached_only() { return nullptr; }
};

/// Owners that read the database of the API server. Admins are the users on the list of admins. A
/// unit may be seen by its owner, by the members of its project in its cluster and by the leads
/// that the resource manager reports for the project. units_of() returns the user's units and the
/// units of projects that the user leads. Leads from the API server's configuration are not in the
/// database. `reader` must outlive the owners.
std::unique_ptr<Owners> database_owners(store::Reader& reader);

struct OwnerCacheOptions {
  std::chrono::milliseconds age{15000};  ///< how long an answer is kept; 0: not at all
  std::size_t entries = 20000;
  std::size_t own_units = 200'000;  ///< in all lists of users' own units together, about 20 MB
};

/// Caches the answers of `owners`, positive and negative, for a short time and up to a number of
/// entries. Errors are not cached: requests are denied during an outage and no longer. The
/// beginning and the end of an outage are logged. `owners` and `clock` must outlive the cache.
std::unique_ptr<Owners> cached_owners(Owners& owners,
                                      const Clock& clock,
                                      OwnerCacheOptions options = {});

}  // namespace ceems::gate
