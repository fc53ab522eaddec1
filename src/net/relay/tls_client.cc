#include "net/relay/tls_client.h"

#include <arpa/inet.h>

#include <array>

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "crypto/openssl_handle.h"
#include "os/secret.h"

namespace ceems::net {
namespace {

Result<crypto::Bio> open_pem(const std::string& text, const std::string& file) {
  auto content = os::read_secret(text, file);
  if (!content) {
    Error error = std::move(content).error();
    error.code = ErrorCode::kInvalidArgument;
    return fail(std::move(error));
  }
  crypto::Bio bio(BIO_new(BIO_s_mem()));
  BIO_write(bio.get(), content->data(), static_cast<int>(content->size()));
  return bio;
}

std::unexpected<Error> bad(std::string_view key, const std::string& file, std::string_view what) {
  return fail(ErrorCode::kInvalidArgument, "tls_config.{}: {}{}: {}", key,
              file.empty() ? "" : file + ": ", what, crypto::openssl_reason());
}

/// The authorities of the system. They may take a megabyte, so all contexts share them. Never
/// freed, because contexts may outlive main().
X509_STORE* system_authorities() {
  static X509_STORE* const store = [] {
    X509_STORE* const made = X509_STORE_new();
    if (made != nullptr) {
      X509_STORE_set_default_paths(made);
      ERR_clear_error();  // a machine may have none
    }
    return made;
  }();
  return store;
}

Result<> use_authorities(SSL_CTX* context, const TlsOptions& options) {
  if (options.ca.empty() && options.ca_file.empty()) {
    if (X509_STORE* const store = system_authorities()) {
      SSL_CTX_set1_cert_store(context, store);
    }
    return {};
  }
  CEEMS_TRY_IN("tls_config.ca", bio, open_pem(options.ca, options.ca_file));
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  int count = 0;
  while (const crypto::Certificate next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(store, next.get());
    ++count;
  }
  if (count == 0) {
    return bad("ca", options.ca_file, "no certificate in it");
  }
  ERR_clear_error();
  return {};
}

Result<> use_identity(SSL_CTX* context, const TlsOptions& options) {
  if (options.cert.empty() && options.cert_file.empty()) {
    return {};
  }
  CEEMS_TRY_IN("tls_config.cert", bio, open_pem(options.cert, options.cert_file));
  const crypto::Certificate first(PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
  if (!first || SSL_CTX_use_certificate(context, first.get()) != 1) {
    return bad("cert", options.cert_file, "no certificate in it");
  }
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add0_chain_cert(context, next);
  }
  ERR_clear_error();
  CEEMS_TRY_IN("tls_config.key", key_bio, open_pem(options.key, options.key_file));
  const auto no_password = [](char*, int, int, void*) { return 0; };
  const crypto::Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_password, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return bad("key", options.key_file, "no private key in it that fits the certificate");
  }
  return {};
}

int version_number(const std::string& name, int otherwise) {
  constexpr std::array kVersions = {
      std::pair{"TLS10", TLS1_VERSION}, std::pair{"TLS11", TLS1_1_VERSION},
      std::pair{"TLS12", TLS1_2_VERSION}, std::pair{"TLS13", TLS1_3_VERSION}};
  for (const auto& [known, number] : kVersions) {
    if (name == known) {
      return number;
    }
  }
  return otherwise;
}

void expect_name(SSL_CTX* context, const std::string& name) {
  X509_VERIFY_PARAM* const rules = SSL_CTX_get0_param(context);
  std::array<unsigned char, 16> address{};
  const bool is_address = inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
                          inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str());
  } else {
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    X509_VERIFY_PARAM_set1_host(rules, name.c_str(), name.size());
  }
}

}  // namespace

Result<std::shared_ptr<ssl_ctx_st>> make_client_tls_context(const TlsOptions& options,
                                                            const std::string& host) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (!context) {
    return fail(ErrorCode::kInternal, "TLS cannot be set up: {}", crypto::openssl_reason());
  }
  // An end without close_notify stays an error, because a truncated response without a length would
  // otherwise pass as complete.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_min_proto_version(context.get(), version_number(options.min_version, TLS1_2_VERSION));
  SSL_CTX_set_max_proto_version(context.get(), version_number(options.max_version, 0));
  if (!options.min_version.empty() &&
      version_number(options.min_version, TLS1_2_VERSION) < TLS1_2_VERSION) {
    SSL_CTX_set_cipher_list(context.get(), "DEFAULT@SECLEVEL=0");  // rejected otherwise
  }
  CEEMS_TRY(use_authorities(context.get(), options));
  CEEMS_TRY(use_identity(context.get(), options));
  if (options.insecure_skip_verify) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  } else {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    expect_name(context.get(), options.server_name.empty() ? host : options.server_name);
  }
  return context;
}

}  // namespace ceems::net
