#pragma once

#include <string>
#include <vector>

namespace ceems::net {

/// A certificate and its key in PEM, generated for a test.
struct TestCertificate {
  std::string cert;
  std::string key;
};

/// Makes a P-256 certificate that is valid for an hour, or for `seconds`. `sans` are of the form
/// "DNS:localhost", "IP:127.0.0.1", "URI:x" or "email:y". Without an issuer it is a self-signed CA
/// certificate; otherwise the issuer signs it.
TestCertificate make_certificate(const std::string& name,
                                 const std::vector<std::string>& sans,
                                 const TestCertificate* issuer = nullptr,
                                 long seconds = 3600);

}  // namespace ceems::net
