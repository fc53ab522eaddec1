#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gate/owners.h"
#include "net/client/client.h"

namespace ceems::gate {

/// How requests of the service account say whose they are.
enum class ServiceName : std::uint8_t {
  kInHeader,  ///< by its name in the header that names people, as in CEEMS 0.10.2
  kOmitted,   ///< by a credential in the client options; the header is left out
};

/// Owners that ask a running API server, at users/admin?role=admin, units/verify and units, as its
/// service account or as the user. A server that answers a request for several units without
/// `X-Ceems-Verified: each` is asked about each unit separately, up to 100 of them. A question that
/// breaks off, or whose answer is a 502, is asked once more. `url` is the base URL of the server,
/// with its route prefix. Set a short timeout in the options: requests wait
/// for the answers. kInvalidArgument if the options contradict each other.
Result<std::unique_ptr<Owners>> api_owners(std::string url,
                                           net::ClientOptions options,
                                           ServiceName service = ServiceName::kInHeader);

/// The IDs of the clusters that the API server knows.
Result<std::vector<std::string>> api_clusters(const std::string& url,
                                              const net::ClientOptions& options,
                                              ServiceName service = ServiceName::kInHeader);

/// The texts under `key` of the objects in the `data` of an answer. Objects without it are skipped.
/// kUnavailable if the status is not 200, kParse if the answer is not a list.
Result<std::vector<std::string>> parse_names(const net::ClientResponse& response,
                                             std::string_view key);

}  // namespace ceems::gate
