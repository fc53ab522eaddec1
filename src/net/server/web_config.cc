#include "net/server/web_config.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::net {

namespace fs = std::filesystem;
using config::Node;

namespace {

struct Name {
  std::string_view go;
  std::string_view openssl;
};

/// The cipher suites that Go lists as secure (crypto/tls.CipherSuites). Suites of TLS 1.3 are
/// accepted but have no effect, as in Go.
constexpr std::array<Name, 13> kCiphers = {{
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"},
    {"TLS_AES_128_GCM_SHA256", ""},
    {"TLS_AES_256_GCM_SHA384", ""},
    {"TLS_CHACHA20_POLY1305_SHA256", ""},
}};

constexpr std::array<Name, 4> kCurves = {{
    {"CurveP256", "P-256"},
    {"CurveP384", "P-384"},
    {"CurveP521", "P-521"},
    {"X25519", "X25519"},
}};

constexpr std::array<std::pair<std::string_view, TlsVersion>, 4> kVersions = {{
    {"TLS10", TlsVersion::kTls10},
    {"TLS11", TlsVersion::kTls11},
    {"TLS12", TlsVersion::kTls12},
    {"TLS13", TlsVersion::kTls13},
}};

constexpr std::array<std::pair<std::string_view, ClientAuth>, 7> kClientAuth = {{
    {"NoClientCert", ClientAuth::kNoClientCert},
    {"RequestClientCert", ClientAuth::kRequestClientCert},
    {"RequireAnyClientCert", ClientAuth::kRequireAnyClientCert},
    {"VerifyClientCertIfGiven", ClientAuth::kVerifyClientCertIfGiven},
    {"RequireAndVerifyClientCert", ClientAuth::kRequireAndVerifyClientCert},
    {"RequireClientCert", ClientAuth::kRequireAnyClientCert},  // old spelling
    {"", ClientAuth::kNoClientCert},
}};

Result<> read_text(const Node& node, std::string& into) {
  if (!node.present()) {
    return {};
  }
  CEEMS_TRY(text, node.as_string());
  into = std::move(text);
  return {};
}

Result<> expect_map(const Node& node) {
  return node.present() && !node.is_map() ? fail(node.error("expected a mapping")) : Result<>();
}

/// Reads a text that must be one of `choices`. If it is absent, `into` keeps its value.
template <typename Value>
Result<> read_choice(const Node& node,
                     std::span<const std::pair<std::string_view, Value>> choices,
                     Value& into) {
  if (!node.present()) {
    return {};
  }
  CEEMS_TRY(text, node.as_string());
  std::string expected;
  for (const auto& [name, value] : choices) {
    if (text == name) {
      into = value;
      return {};
    }
    if (!name.empty()) {
      expected += (expected.empty() ? "" : ", ") + std::string(name);
    }
  }
  return fail(
      node.error(fmt::format("expected one of {}; got '{}'", expected, printable(text, 60))));
}

Result<> read_names(const Node& node,
                    std::string_view what,
                    std::span<const Name> known,
                    std::vector<std::string>& into) {
  if (!node.present()) {
    return {};
  }
  if (!node.is_list()) {
    return fail(node.error("expected a list"));
  }
  for (const Node& item : node.items()) {
    CEEMS_TRY(text, item.as_string());
    const auto found = std::ranges::find(known, std::string_view(text), &Name::go);
    if (found == known.end()) {
      return fail(
          item.error(fmt::format("unknown or insecure {} '{}'", what, printable(text, 80))));
    }
    if (!found->openssl.empty()) {
      into.emplace_back(found->openssl);
    }
  }
  return {};
}

Result<> read_files(const Node& node, const fs::path& directory, WebConfig::Tls& tls) {
  for (const auto& [key, into] : std::initializer_list<std::pair<std::string_view, std::string*>>{
           {"cert", &tls.cert}, {"key", &tls.key}, {"client_ca", &tls.client_ca}}) {
    CEEMS_TRY(read_text(node[key], *into));
  }
  for (const auto& [key, into] : std::initializer_list<std::pair<std::string_view, std::string*>>{
           {"cert_file", &tls.cert_file},
           {"key_file", &tls.key_file},
           {"client_ca_file", &tls.client_ca_file}}) {
    CEEMS_TRY(read_text(node[key], *into));
    if (!into->empty() && fs::path(*into).is_relative()) {
      *into = (directory / *into).lexically_normal().string();
    }
  }
  return {};
}

/// Checks the rules that involve several keys, and sets `enabled`.
Result<> settle_tls(const Node& node, bool auth_given, WebConfig::Tls& tls) {
  const bool cert = !tls.cert.empty() || !tls.cert_file.empty();
  const bool key = !tls.key.empty() || !tls.key_file.empty();
  const bool ca = !tls.client_ca.empty() || !tls.client_ca_file.empty();
  if (!cert && !key && !ca && !auth_given) {
    return {};
  }
  if (!cert) {
    return fail(node.error("cert_file or cert is missing"));
  }
  if (!key) {
    return fail(node.error("key_file or key is missing"));
  }
  if (ca && tls.client_auth == ClientAuth::kNoClientCert) {
    return fail(node.error("a client CA needs a client_auth_type other than NoClientCert"));
  }
  if (tls.min_version > tls.max_version) {
    return fail(node.error("min_version is above max_version"));
  }
  tls.enabled = true;
  return {};
}

Result<> read_tls(const Node& node, const fs::path& directory, WebConfig::Tls& tls) {
  CEEMS_TRY(expect_map(node));
  CEEMS_TRY(node.only_keys({"cert", "key", "client_ca", "cert_file", "key_file", "client_ca_file",
                            "client_auth_type", "client_allowed_sans", "cipher_suites",
                            "curve_preferences", "min_version", "max_version",
                            "prefer_server_cipher_suites"}));
  CEEMS_TRY(read_files(node, directory, tls));
  const Node auth = node["client_auth_type"];
  CEEMS_TRY(read_choice<ClientAuth>(auth, kClientAuth, tls.client_auth));
  const Node sans = node["client_allowed_sans"];
  if (sans.present()) {
    CEEMS_TRY(list, sans.as_string_list());
    tls.client_allowed_sans = std::move(list);
  }
  CEEMS_TRY(read_names(node["cipher_suites"], "cipher suite", kCiphers, tls.cipher_suites));
  CEEMS_TRY(read_names(node["curve_preferences"], "curve", kCurves, tls.curve_preferences));
  for (const auto& [key, into] : std::initializer_list<std::pair<std::string_view, TlsVersion*>>{
           {"min_version", &tls.min_version}, {"max_version", &tls.max_version}}) {
    CEEMS_TRY(read_choice<TlsVersion>(node[key], kVersions, *into));
  }
  const Node prefer = node["prefer_server_cipher_suites"];
  if (prefer.present()) {
    CEEMS_TRY(prefer.as_bool());
  }
  const bool auth_given = auth.present() && auth.as_string() != "";
  return settle_tls(node, auth_given, tls);
}

Result<> check_header(const Node& node, std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 5> kNames = {
      "Strict-Transport-Security", "X-Content-Type-Options", "X-Frame-Options", "X-XSS-Protection",
      "Content-Security-Policy"};
  if (std::ranges::find(kNames, name) == kNames.end()) {
    return fail(node.error("this header cannot be configured"));
  }
  if (name == "X-Content-Type-Options" && value != "nosniff") {
    return fail(node.error("expected nosniff"));
  }
  if (name == "X-Frame-Options" && value != "deny" && value != "sameorigin") {
    return fail(node.error("expected deny or sameorigin"));
  }
  if (value.find_first_of("\r\n") != std::string_view::npos) {
    return fail(node.error("a header is one line"));
  }
  return {};
}

Result<> read_http(const Node& node, Headers& headers) {
  CEEMS_TRY(expect_map(node));
  CEEMS_TRY(node.only_keys({"http2", "headers"}));
  if (node["http2"].present()) {
    CEEMS_TRY(node["http2"].as_bool());
  }
  const Node list = node["headers"];
  CEEMS_TRY(expect_map(list));
  for (const auto& [name, entry] : list.entries()) {
    std::string value;
    CEEMS_TRY(read_text(entry, value));
    CEEMS_TRY(check_header(entry, name, value));
    if (!value.empty()) {
      headers.emplace_back(name, std::move(value));
    }
  }
  return {};
}

Result<> read_users(const Node& node, WebConfig& config) {
  CEEMS_TRY(expect_map(node));
  for (const auto& [name, entry] : node.entries()) {
    auto hash = entry.as_string();
    if (!hash || !is_bcrypt_hash(*hash)) {
      return fail(entry.error("expected a bcrypt hash, such as $2y$10$… of 60 characters"));
    }
    config.basic_auth_users.emplace_back(name, *std::move(hash));
  }
  return {};
}

}  // namespace

bool is_bcrypt_hash(std::string_view text) {
  constexpr std::size_t kLength = 60;
  constexpr std::size_t kPrefix = 7;  // "$2y$10$"
  if (text.size() != kLength || !text.starts_with("$2") || text[3] != '$' || text[6] != '$' ||
      std::string_view("aby").find(text[2]) == std::string_view::npos) {
    return false;
  }
  const auto cost = parse_int(text.substr(4, 2));
  return cost && *cost >= 4 && *cost <= 31 && has_only_words(text.substr(kPrefix), "./");
}

Result<WebConfig> parse_web_config(const Node& root, const fs::path& directory) {
  WebConfig config;
  CEEMS_TRY(expect_map(root));
  CEEMS_TRY(root.only_keys({"tls_server_config", "http_server_config", "basic_auth_users"}));
  CEEMS_TRY(read_tls(root["tls_server_config"], directory, config.tls));
  CEEMS_TRY(read_http(root["http_server_config"], config.headers));
  CEEMS_TRY(read_users(root["basic_auth_users"], config));
  return config;
}

}  // namespace ceems::net
