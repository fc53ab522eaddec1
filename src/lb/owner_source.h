#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "gate/owners.h"
#include "lb/config.h"
#include "store/reader.h"

namespace ceems::lb {

/// Where owners of units are looked up: in the database of the API server, or by its REST API.
struct OwnerSource {
  /// For check_clusters(); null if the REST API is used. Release it afterwards: it keeps a database
  /// file open that may be replaced.
  std::shared_ptr<store::Reader> reader;
  std::shared_ptr<gate::Owners> cached;
};

struct OwnerTimes {
  /// Of one question to the API server, and of waiting for a locked database.
  std::chrono::milliseconds question{1000};
  /// Between looks whether the database file was replaced or removed.
  std::chrono::milliseconds look{2000};
};

/// Null if the configuration names neither; then there is no access control. If it names both, the
/// database is used, because it is faster and needs no other program. A database file that does not
/// exist is ignored if there is also an API server. Errors say what cannot be opened.
///
/// Answers are cached. A source that hangs is not asked for a while (owner_breaker.h), and a
/// database file that is replaced or removed is noticed (followed_owners.h).
Result<std::shared_ptr<OwnerSource>> open_owners(const Config& config,
                                                 const OwnerTimes& times = {});

/// Checks that the ID of each backend is that of a cluster of the API server. kInvalidArgument,
/// with the known IDs, if not. Other errors if these cannot be read.
Result<> check_clusters(const Config& config, OwnerSource& source);

}  // namespace ceems::lb
