// Where OpenSSL, which is linked in, looks for the certificates of authorities: Debian's path is
// compiled in, and other systems have theirs elsewhere. The variables SSL_CERT_FILE and
// SSL_CERT_DIR have precedence, as always.
#include <stddef.h>
#include <unistd.h>

const char* __wrap_X509_get_default_cert_file(void);
const char* __wrap_X509_get_default_cert_file(void) {
  static const char* const kFiles[] = {
      "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Alpine
      "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL
      "/etc/ssl/ca-bundle.pem",              // SUSE
      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  };
  for (size_t i = 0; i < sizeof kFiles / sizeof kFiles[0]; ++i) {
    if (access(kFiles[i], R_OK) == 0) {
      return kFiles[i];
    }
  }
  return kFiles[0];
}
