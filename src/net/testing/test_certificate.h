#pragma once

#include <string>
#include <vector>

namespace ceems::net {

/// A certificate and its key in PEM, made on the spot.
struct TestCertificate {
  std::string cert;
  std::string key;
};

/// P-256, good for an hour. `sans` as in "DNS:localhost", "IP:127.0.0.1", "URI:x", "email:y".
/// Self-signed and a CA without an issuer, else signed by it.
TestCertificate make_certificate(const std::string& name,
                                 const std::vector<std::string>& sans,
                                 const TestCertificate* issuer = nullptr);

}  // namespace ceems::net
