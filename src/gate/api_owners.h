#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gate/owners.h"
#include "net/client/client.h"

namespace ceems::gate {

/// Owners as a running API server tells them: users/admin?role=admin, units/verify and units, asked
/// as its service account or as the user. Of servers that do not say `X-Ceems-Verified: each` to a
/// question for several units each is asked for by itself, 100 at most. `url` is that of the
/// server, with its route prefix. The options should have a short timeout: requests wait for the
/// answers. kInvalidArgument for options that contradict each other.
Result<std::unique_ptr<Owners>> api_owners(std::string url, net::ClientOptions options);

/// Ids of the clusters that the API server knows.
Result<std::vector<std::string>> api_clusters(const std::string& url,
                                              const net::ClientOptions& options);

/// The texts under `key` of the objects in `data` of an answer; what has none is skipped.
/// kUnavailable for answers that are no success, kParse for others that are no list.
Result<std::vector<std::string>> parse_names(const net::ClientResponse& response,
                                             std::string_view key);

}  // namespace ceems::gate
