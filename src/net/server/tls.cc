#include "net/server/tls.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <span>

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/strings.h"
#include "crypto/openssl_handle.h"
#include "os/secret.h"

namespace ceems::net {

namespace {

using Names = std::unique_ptr<GENERAL_NAMES, crypto::Free<GENERAL_NAMES_free>>;
using SanList = std::vector<std::string>;

struct Pem {
  std::string name;  ///< for messages: the file, or the key of the configuration
  std::string text;
};

Result<Pem> pem(std::string_view key, const std::string& text, const std::string& file) {
  Pem result;
  result.name = file.empty() ? "tls_server_config." + std::string(key) : file;
  auto content = os::read_secret(text, file);
  if (!content) {
    Error error = std::move(content).error();
    error.code = ErrorCode::kInvalidArgument;
    return fail(std::move(error).with_context("tls_server_config"));
  }
  result.text = *std::move(content);
  return result;
}

Error pem_error(const Pem& pem, std::string_view message) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", pem.name, message)};
}

crypto::Bio reader(const Pem& pem) {
  return crypto::Bio(BIO_new_mem_buf(pem.text.data(), static_cast<int>(pem.text.size())));
}

/// Keeps OpenSSL from asking on the terminal for the password of an encrypted key.
int no_password(char* /*buffer*/, int /*size*/, int /*write*/, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return -1;
}

Result<> use_certificate(SSL_CTX* context, const Pem& pem) {
  const crypto::Bio bio = reader(pem);
  const crypto::Certificate leaf(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!leaf) {
    ERR_clear_error();
    return fail(pem_error(pem, "no PEM certificate in it"));
  }
  if (SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return fail(pem_error(pem, "certificate refused: " + crypto::openssl_reason()));
  }
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      return fail(pem_error(pem, "chain certificate refused: " + crypto::openssl_reason()));
    }
  }
  ERR_clear_error();  // the end of the file is reported as an error
  return {};
}

Result<> use_key(SSL_CTX* context, const Pem& key_pem, const Pem& cert_pem) {
  bool encrypted = false;
  const crypto::Key key(
      PEM_read_bio_PrivateKey(reader(key_pem).get(), nullptr, no_password, &encrypted));
  if (!key) {
    ERR_clear_error();
    return fail(pem_error(key_pem,
                          encrypted ? "the private key is encrypted" : "no PEM private key in it"));
  }
  if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1) {
    ERR_clear_error();
    return fail(pem_error(
        key_pem,
        fmt::format("the private key does not match the certificate of {}", cert_pem.name)));
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return fail(pem_error(key_pem, "private key refused: " + crypto::openssl_reason()));
  }
  return {};
}

Result<> use_client_ca(SSL_CTX* context, const WebConfig::Tls& config) {
  if (config.client_ca.empty() && config.client_ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context);  // as Go does if no CA is given
    return {};
  }
  CEEMS_TRY(ca, pem("client_ca", config.client_ca, config.client_ca_file));
  const crypto::Bio bio = reader(ca);
  int count = 0;
  while (true) {
    const crypto::Certificate one(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!one) {
      break;
    }
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get());
    SSL_CTX_add_client_CA(context, one.get());
    ++count;
  }
  ERR_clear_error();
  return count > 0 ? Result<>() : fail(pem_error(ca, "no PEM certificate in it"));
}

std::string name_text(const GENERAL_NAME& name) {
  if (name.type == GEN_IPADD) {
    const ASN1_OCTET_STRING* address = name.d.iPAddress;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
    if (family == AF_INET6 && ASN1_STRING_length(address) != 16) {
      return {};
    }
    ::inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
    return text.data();
  }
  if (name.type == GEN_DNS || name.type == GEN_EMAIL || name.type == GEN_URI) {
    const ASN1_STRING* value = name.d.ia5;
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
            static_cast<std::size_t>(ASN1_STRING_length(value))};
  }
  return {};
}

bool has_allowed_name(X509* certificate, const SanList& allowed) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const std::string text = name_text(*sk_GENERAL_NAME_value(names.get(), i));
    if (!text.empty() && std::ranges::find(allowed, text) != allowed.end()) {
      return true;
    }
  }
  return false;
}

void free_sans(void* /*parent*/, void* list, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<SanList*>(list);  // NOLINT(cppcoreguidelines-owning-memory): OpenSSL's slot
}

/// The index at which an SSL_CTX stores the allowed names of clients.
int sans_slot() {
  static const int kSlot = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_sans);
  return kSlot;
}

/// Checks the chain if the policy requires it, and always the names in the client's own
/// certificate.
template <bool kCheckChain>
int verify(int chain_is_good, X509_STORE_CTX* store) {
  if (kCheckChain && chain_is_good == 0) {
    return 0;
  }
  if (X509_STORE_CTX_get_error_depth(store) == 0) {
    const auto* ssl = static_cast<const SSL*>(
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    const auto* allowed =
        static_cast<const SanList*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), sans_slot()));
    if (allowed != nullptr && !has_allowed_name(X509_STORE_CTX_get0_cert(store), *allowed)) {
      X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
      return 0;
    }
  }
  return 1;
}

Result<> use_client_policy(SSL_CTX* context, const WebConfig::Tls& config) {
  switch (config.client_auth) {
    case ClientAuth::kNoClientCert:
      SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
      return {};
    case ClientAuth::kRequestClientCert:
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER, verify<false>);
      break;
    case ClientAuth::kRequireAnyClientCert:
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify<false>);
      break;
    case ClientAuth::kVerifyClientCertIfGiven:
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER, verify<true>);
      break;
    case ClientAuth::kRequireAndVerifyClientCert:
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify<true>);
      break;
  }
  if (config.client_allowed_sans) {
    SSL_CTX_set_ex_data(context, sans_slot(), new SanList(*config.client_allowed_sans));
  }
  return use_client_ca(context, config);
}

int protocol(TlsVersion version) {
  switch (version) {
    case TlsVersion::kTls10:
      return TLS1_VERSION;
    case TlsVersion::kTls11:
      return TLS1_1_VERSION;
    case TlsVersion::kTls12:
      return TLS1_2_VERSION;
    case TlsVersion::kTls13:
      break;
  }
  return TLS1_3_VERSION;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) {
    all += (all.empty() ? "" : ":") + word;
  }
  return all;
}

Result<> use_protocol(SSL_CTX* context, const WebConfig::Tls& config) {
  std::string ciphers = config.cipher_suites.empty() ? std::string("DEFAULT:!kRSA:!PSK:!SRP")
                                                     : joined(config.cipher_suites);
  if (config.min_version < TlsVersion::kTls12) {
    ciphers += ":@SECLEVEL=0";  // otherwise OpenSSL 3 disables them
  }
  if (SSL_CTX_set_min_proto_version(context, protocol(config.min_version)) != 1 ||
      SSL_CTX_set_max_proto_version(context, protocol(config.max_version)) != 1 ||
      SSL_CTX_set_cipher_list(context, ciphers.c_str()) != 1) {
    return fail(ErrorCode::kInvalidArgument,
                "tls_server_config: OpenSSL refuses the versions or cipher suites: {}",
                crypto::openssl_reason());
  }
  const std::string curves = joined(config.curve_preferences);
  if (!curves.empty() && SSL_CTX_set1_groups_list(context, curves.c_str()) != 1) {
    return fail(ErrorCode::kInvalidArgument,
                "tls_server_config.curve_preferences: OpenSSL refuses them: {}",
                crypto::openssl_reason());
  }
  return {};
}

/// Selects HTTP/1.1, the only protocol of this server, if the client offers it by ALPN.
int choose_protocol(SSL* /*ssl*/,
                    const unsigned char** out,
                    unsigned char* out_size,
                    const unsigned char* in,
                    unsigned int in_size,
                    void* /*user*/) {
  constexpr std::string_view kHttp11 = "http/1.1";
  std::span<const unsigned char> offers(in, in_size);
  while (!offers.empty() && offers[0] < offers.size()) {
    const auto name = offers.subspan(1, offers[0]);
    if (std::ranges::equal(name, kHttp11)) {
      *out = name.data();
      *out_size = offers[0];
      return SSL_TLSEXT_ERR_OK;
    }
    offers = offers.subspan(1 + name.size());
  }
  return SSL_TLSEXT_ERR_NOACK;
}

std::optional<std::int64_t> end_of(const X509* certificate) {
  std::tm time{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) {
    ERR_clear_error();
    return std::nullopt;
  }
  return ::timegm(&time);
}

}  // namespace

std::optional<std::int64_t> certificate_end(ssl_ctx_st& context) {
  std::optional<std::int64_t> first = end_of(SSL_CTX_get0_certificate(&context));
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(&context, static_cast<void*>(&chain));
  for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i) {
    const auto end = end_of(sk_X509_value(chain, i));
    if (end && (!first || *end < *first)) {
      first = end;
    }
  }
  return first;
}

Result<std::shared_ptr<ssl_ctx_st>> make_tls_context(const WebConfig::Tls& config) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) {
    return fail(ErrorCode::kInternal, "TLS cannot be set up: {}", crypto::openssl_reason());
  }
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  constexpr std::string_view kSessions = "ceems";
  SSL_CTX_set_session_id_context(context.get(),
                                 reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 static_cast<unsigned>(kSessions.size()));
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  CEEMS_TRY(use_protocol(context.get(), config));
  CEEMS_TRY(cert, pem("cert", config.cert, config.cert_file));
  CEEMS_TRY(key, pem("key", config.key, config.key_file));
  CEEMS_TRY(use_certificate(context.get(), cert));
  CEEMS_TRY(use_key(context.get(), key, cert));
  CEEMS_TRY(use_client_policy(context.get(), config));
  return context;
}

}  // namespace ceems::net
