#include "tool/web/certificate.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/strings.h"
#include "crypto/openssl_handle.h"

namespace ceems::tool {
namespace {

using crypto::Free;
using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;
using Name = std::unique_ptr<GENERAL_NAME, Free<GENERAL_NAME_free>>;
using Octets = std::unique_ptr<ASN1_OCTET_STRING, Free<ASN1_OCTET_STRING_free>>;
using Text = std::unique_ptr<ASN1_IA5STRING, Free<ASN1_IA5STRING_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;

constexpr int kSerialBits = 128;

std::unexpected<Error> openssl_failed(std::string_view what) {
  return fail(ErrorCode::kInternal, "{}: {}", what, crypto::openssl_reason());
}

bool is_dns_name(std::string_view host) {
  constexpr std::size_t kMaxName = 253;
  return !host.empty() && host.size() <= kMaxName && has_only_words(host, "-.*_");
}

Result<Name> general_name(const std::string& host) {
  Name name(GENERAL_NAME_new());
  if (!name) {
    return openssl_failed("subject alternative name");
  }
  if (Octets address(a2i_IPADDRESS(host.c_str())); address) {
    GENERAL_NAME_set0_value(name.get(), GEN_IPADD, address.release());
    return name;
  }
  crypto::openssl_reason();  // clears the complaint that it is not an address
  if (!is_dns_name(host)) {
    return fail(ErrorCode::kInvalidArgument, "--tls.host: '{}' is not a DNS name or an address",
                printable(host, 80));
  }
  Text text(ASN1_IA5STRING_new());
  if (!text || ASN1_STRING_set(text.get(), host.data(), static_cast<int>(host.size())) != 1) {
    return openssl_failed("subject alternative name");
  }
  GENERAL_NAME_set0_value(name.get(), GEN_DNS, text.release());
  return name;
}

Result<> add_names(X509* certificate, const std::vector<std::string>& hosts) {
  Names names(sk_GENERAL_NAME_new_null());
  for (const std::string& host : hosts) {
    CEEMS_TRY(name, general_name(host));
    if (!names || sk_GENERAL_NAME_push(names.get(), name.get()) == 0) {
      return openssl_failed("subject alternative names");
    }
    static_cast<void>(name.release());  // the list owns it
  }
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) !=
      1) {
    return openssl_failed("subject alternative names");
  }
  return {};
}

Result<> add_extensions(X509* certificate) {
  constexpr std::array<std::pair<int, const char*>, 3> kExtensions{{
      {NID_basic_constraints, "critical,CA:TRUE"},
      {NID_key_usage, "critical,digitalSignature,keyCertSign"},
      {NID_ext_key_usage, "serverAuth"},
  }};
  for (const auto& [id, value] : kExtensions) {
    const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, id, value));
    if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
      return openssl_failed("extension of the certificate");
    }
  }
  return {};
}

Result<> add_identity(X509* certificate,
                      std::chrono::system_clock::time_point now,
                      std::chrono::seconds validity) {
  const Number serial(BN_new());
  auto* subject = X509_get_subject_name(certificate);
  std::time_t begin = std::chrono::system_clock::to_time_t(now);
  std::time_t end = std::chrono::system_clock::to_time_t(now + validity);
  const auto* organisation = reinterpret_cast<const unsigned char*>("Acme Co");
  if (!serial || BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) == nullptr ||
      X509_set_version(certificate, X509_VERSION_3) != 1 ||
      X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, organisation, -1, -1, 0) != 1 ||
      X509_set_issuer_name(certificate, subject) != 1 ||
      X509_time_adj_ex(X509_getm_notBefore(certificate), 0, 0, &begin) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(certificate), 0, 0, &end) == nullptr) {
    return openssl_failed("certificate");
  }
  return {};
}

std::string content(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace

Result<CertificatePair> make_certificate(const std::vector<std::string>& hosts,
                                         std::chrono::system_clock::time_point now,
                                         std::chrono::seconds validity) {
  const crypto::Key key(EVP_EC_gen("P-256"));
  const crypto::Certificate certificate(X509_new());
  if (!key || !certificate || X509_set_pubkey(certificate.get(), key.get()) != 1) {
    return openssl_failed("key of the certificate");
  }
  CEEMS_TRY(add_identity(certificate.get(), now, validity));
  CEEMS_TRY(add_extensions(certificate.get()));
  CEEMS_TRY(add_names(certificate.get(), hosts));
  const crypto::Bio certificate_text(BIO_new(BIO_s_mem()));
  const crypto::Bio key_text(BIO_new(BIO_s_secmem()));
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0 ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr) != 1) {
    return openssl_failed("signing the certificate");
  }
  return CertificatePair{.certificate = content(certificate_text.get()),
                         .key = content(key_text.get())};
}

}  // namespace ceems::tool
