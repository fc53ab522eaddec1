#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"
#include "net/http.h"

namespace ceems::net {

enum class TlsVersion { kTls10, kTls11, kTls12, kTls13 };

/// Names as in Go's crypto/tls.
enum class ClientAuth {
  kNoClientCert,
  kRequestClientCert,
  kRequireAnyClientCert,
  kVerifyClientCertIfGiven,
  kRequireAndVerifyClientCert,
};

/// Content of a web configuration file (format: docs/web-config.md).
struct WebConfig {
  struct Tls {
    bool enabled = false;
    std::string cert, key, client_ca;                 ///< PEM; not used where the file is given
    std::string cert_file, key_file, client_ca_file;  ///< absolute, or relative to the process
    ClientAuth client_auth = ClientAuth::kNoClientCert;
    std::optional<std::vector<std::string>> client_allowed_sans;
    TlsVersion min_version = TlsVersion::kTls12;
    TlsVersion max_version = TlsVersion::kTls13;
    std::vector<std::string> cipher_suites;      ///< in OpenSSL's names, TLS 1.2 and below
    std::vector<std::string> curve_preferences;  ///< in OpenSSL's names
  };
  Tls tls;
  Headers headers;
  std::vector<std::pair<std::string, std::string>> basic_auth_users;  ///< name, bcrypt hash
};

/// Checks and reads a document; a null one (an empty file) is valid. `directory` is where relative
/// file names start. Errors: "file:line: key: message", never with a hash or key in it.
Result<WebConfig> parse_web_config(const config::Node& root,
                                   const std::filesystem::path& directory);

/// True for a bcrypt hash of the kinds 2a, 2b, 2y.
bool is_bcrypt_hash(std::string_view text);

}  // namespace ceems::net
