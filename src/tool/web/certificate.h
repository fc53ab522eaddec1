#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::tool {

struct CertificatePair {
  std::string certificate;  ///< PEM
  std::string key;          ///< PEM, PKCS#8
};

/// A self-signed certificate for servers with an ECDSA P-256 key. `hosts` are DNS names and
/// addresses; kInvalidArgument if one of them is neither.
Result<CertificatePair> make_certificate(const std::vector<std::string>& hosts,
                                         std::chrono::system_clock::time_point now,
                                         std::chrono::seconds validity);

}  // namespace ceems::tool
