#include "admission/certificate.h"

#include <linux/capability.h>

#include <ctime>

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "config/yaml.h"
#include "crypto/openssl_handle.h"
#include "net/server/web_config.h"
#include "os/privileges.h"
#include "os/secret.h"

namespace ceems::admission {
namespace {

std::optional<double> end_of(const std::string& pem) {
  const crypto::Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const crypto::Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  std::tm time{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &time) != 1) {
    ERR_clear_error();
    return std::nullopt;
  }
  return static_cast<double>(::timegm(&time));
}

}  // namespace

std::optional<double> certificate_end(const std::string& web_config_file) {
  if (web_config_file.empty()) {
    return std::nullopt;
  }
  const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  const auto document = config::load_yaml(web_config_file);
  if (!document) {
    return std::nullopt;
  }
  const auto web = net::parse_web_config(*document, config::directory_of(web_config_file));
  if (!web || !web->tls.enabled) {
    return std::nullopt;
  }
  const auto pem = os::read_secret(web->tls.cert, web->tls.cert_file);
  return pem ? end_of(*pem) : std::nullopt;
}

}  // namespace ceems::admission
