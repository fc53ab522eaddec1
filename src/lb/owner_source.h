#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "gate/owners.h"
#include "lb/config.h"
#include "store/reader.h"

namespace ceems::lb {

/// Where one configuration looks up who owns units: the database of the API server, or its REST
/// API.
struct OwnerSource {
  std::shared_ptr<store::Reader> reader;  ///< null where the API server is asked
  std::unique_ptr<gate::Owners> direct;
  std::unique_ptr<gate::Owners> cached;  ///< in front of `direct`; the one to ask
};

/// Null where the configuration names neither: then there is no access control. Of both the
/// database is used, as it answers sooner and without another program; of the file only where it
/// exists. Errors say what cannot be opened.
Result<std::shared_ptr<OwnerSource>> open_owners(const Config& config);

/// Refuses backends whose ID is not that of a cluster of the API server: kInvalidArgument, with the
/// IDs that are. Other errors where these cannot be read.
Result<> check_clusters(const Config& config, OwnerSource& source);

/// Runs `read` with the capability to read files that belong to others, as certificates and
/// databases may.
void read_as_root(const std::function<void()>& read);

}  // namespace ceems::lb
