#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "gate/owners.h"
#include "lb/config.h"
#include "store/reader.h"

namespace ceems::lb {

/// Who owns units, as one configuration says where to ask: the database of the API server, or its
/// REST API.
struct OwnerSource {
  std::shared_ptr<store::Reader> reader;  ///< null where the API server is asked
  std::unique_ptr<gate::Owners> direct;
  std::unique_ptr<gate::Owners> cached;  ///< in front of `direct`; the one to ask
};

/// Null where the configuration names neither: there is no access control then. The database comes
/// first, it answers sooner and without another program. Errors say what cannot be opened.
Result<std::shared_ptr<OwnerSource>> open_owners(const Config& config);

/// Refuses backends whose id is no cluster of the API server. kInvalidArgument names the ids that
/// are; other errors where nobody can tell.
Result<> check_clusters(const Config& config, OwnerSource& source);

/// Runs `read` with the capability to read files of others, which certificates and databases may
/// be.
void read_as_root(const std::function<void()>& read);

}  // namespace ceems::lb
