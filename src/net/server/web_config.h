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

/// The names are the same as in Go's crypto/tls.
enum class ClientAuth {
  kNoClientCert,
  kRequestClientCert,
  kRequireAnyClientCert,
  kVerifyClientCertIfGiven,
  kRequireAndVerifyClientCert,
};

/// The content of a web configuration file, in the format of docs/web-config.md.
struct WebConfig {
  struct Tls {
    bool enabled = false;
    std::string cert, key, client_ca;  ///< PEM; not used if the file is given
    /// Absolute, or relative to the working directory.
    std::string cert_file, key_file, client_ca_file;
    ClientAuth client_auth = ClientAuth::kNoClientCert;
    std::optional<std::vector<std::string>> client_allowed_sans;
    TlsVersion min_version = TlsVersion::kTls12;
    TlsVersion max_version = TlsVersion::kTls13;
    std::vector<std::string> cipher_suites;      ///< OpenSSL's names, for TLS 1.2 and below
    std::vector<std::string> curve_preferences;  ///< OpenSSL's names
  };
  Tls tls;
  Headers headers;
  std::vector<std::pair<std::string, std::string>> basic_auth_users;  ///< name, bcrypt hash
};

/// Parses and checks a document. A null document (an empty file) is valid. Relative file names are
/// resolved against `directory`. Errors are of the form "file:line: key: message" and never contain
/// a hash or key.
Result<WebConfig> parse_web_config(const config::Node& root,
                                   const std::filesystem::path& directory);

/// True for a bcrypt hash of the kinds 2a, 2b, 2y.
bool is_bcrypt_hash(std::string_view text);

}  // namespace ceems::net
