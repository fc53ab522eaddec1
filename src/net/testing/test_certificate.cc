#include "net/testing/test_certificate.h"

#include <cstdint>
#include <memory>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace ceems::net {

namespace {

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

void add_extension(X509* cert, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

TestCertificate make_certificate(const std::string& name,
                                 const std::vector<std::string>& sans,
                                 const TestCertificate* issuer,
                                 long seconds) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* cert = X509_new();
  X509_set_version(cert, X509_VERSION_3);
  std::uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1U);
  X509_gmtime_adj(X509_getm_notBefore(cert), -60);
  X509_gmtime_adj(X509_getm_notAfter(cert), seconds);
  X509_set_pubkey(cert, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* signer = cert;
  EVP_PKEY* signing_key = key;
  if (issuer != nullptr) {
    BIO* cert_bio = BIO_new_mem_buf(issuer->cert.data(), static_cast<int>(issuer->cert.size()));
    signer = PEM_read_bio_X509(cert_bio, nullptr, nullptr, nullptr);
    BIO* key_bio = BIO_new_mem_buf(issuer->key.data(), static_cast<int>(issuer->key.size()));
    signing_key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
    BIO_free(cert_bio);
    BIO_free(key_bio);
  }
  X509_set_issuer_name(cert, X509_get_subject_name(signer));
  add_extension(cert, signer, NID_basic_constraints, issuer == nullptr ? "CA:TRUE" : "CA:FALSE");
  std::string joined;
  for (const std::string& san : sans) {
    joined += (joined.empty() ? "" : ",") + san;
  }
  if (!joined.empty()) {
    add_extension(cert, signer, NID_subject_alt_name, joined);
  }
  X509_sign(cert, signing_key, EVP_sha256());

  TestCertificate result;
  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(out, cert);
  result.cert = text_of(out);
  BIO_free(out);
  out = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  result.key = text_of(out);
  BIO_free(out);
  if (issuer != nullptr) {
    X509_free(signer);
    EVP_PKEY_free(signing_key);
  }
  X509_free(cert);
  EVP_PKEY_free(key);
  return result;
}

}  // namespace ceems::net
