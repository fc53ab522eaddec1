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

/// Who may see which units. Safe for concurrent use. An error means: not known, so no.
class Owners {
 public:
  virtual ~Owners() = default;
  virtual Result<bool> is_admin(const std::string& user) = 0;
  /// May the user see every one of these units of the cluster? False for none.
  virtual Result<bool> may_see(const std::string& user,
                               const std::string& cluster,
                               const UnitSet& units) = 0;
  /// Ids of the user's own units in the cluster, at most `most` + 1, for rules that confine open
  /// selectors to them.
  virtual Result<UnitSet> units_of(const std::string& user,
                                   const std::string& cluster,
                                   std::size_t most) = 0;

  /// Of these ids of the cluster those that units of others had, too.
  virtual Result<SharedIds> shared_ids(const std::string& user,
                                       const std::string& cluster,
                                       const UnitSet& units) = 0;

  /// Owners that answer at once, from memory alone: what they do not know is an error. Null where
  /// nothing is remembered. Lives as long as this.
  virtual Owners* cached_only() { return nullptr; }
};

/// Owners as the database of the API server knows them: an admin is who the list of admins names;
/// a unit may be seen by the members of its project in its cluster, and by those whom the resource
/// manager says lead it; units_of() gives the user's units and those of led projects. Leads of the
/// API server's configuration are not in the database. `reader` must outlive them.
std::unique_ptr<Owners> database_owners(store::Reader& reader);

struct OwnerCacheOptions {
  std::chrono::milliseconds age{15000};  ///< of an answer; 0: nothing is kept
  std::size_t entries = 20000;
};

/// Remembers the answers of `owners`, yes and no, for a short time and up to a bound. Errors are
/// not remembered: an outage denies, and ends when it ends; it is logged when it begins and when it
/// is over. Both must outlive it.
std::unique_ptr<Owners> cached_owners(Owners& owners,
                                      const Clock& clock,
                                      OwnerCacheOptions options = {});

}  // namespace ceems::gate
