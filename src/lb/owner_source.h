#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "gate/owners.h"
#include "lb/config.h"
#include "store/reader.h"

namespace ceems::lb {

/// Where owners of units are looked up: in the database of the API server, or by its REST API.
struct OwnerSource {
  std::shared_ptr<store::Reader> reader;  ///< null if the REST API is used
  std::unique_ptr<gate::Owners> direct;
  std::unique_ptr<gate::Owners> cached;  ///< caches the answers of `direct`; use this one
};

/// Null if the configuration names neither; then there is no access control. If it names both, the
/// database is used, because it is faster and needs no other program. A database file that does not
/// exist is ignored if there is also an API server. Errors say what cannot be opened.
Result<std::shared_ptr<OwnerSource>> open_owners(const Config& config);

/// Checks that the ID of each backend is that of a cluster of the API server. kInvalidArgument,
/// with the known IDs, if not. Other errors if these cannot be read.
Result<> check_clusters(const Config& config, OwnerSource& source);

/// Runs `read` with the capability to read files of other users, which certificates and databases
/// may be.
void read_as_root(const std::function<void()>& read);

}  // namespace ceems::lb
