#include "admission/certificate.h"

#include <ctime>

#include <gtest/gtest.h>

#include "net/testing/test_certificate.h"
#include "testing/temp_dir.h"

namespace ceems::admission {
namespace {

TEST(CertificateEnd, IsThatOfTheServerCertificate) {
  const testing::TempDir directory;
  const std::string web = (directory.path() / "web.yml").string();
  const auto write = [&](const std::string& name, const std::string& text) {
    directory.write(name, text);
  };
  EXPECT_FALSE(certificate_end(""));
  EXPECT_FALSE(certificate_end(web));
  write("web.yml", "");
  EXPECT_FALSE(certificate_end(web));
  write("web.yml", "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n");
  EXPECT_FALSE(certificate_end(web));
  write("tls.crt", "no certificate");
  EXPECT_FALSE(certificate_end(web));
  const net::TestCertificate made = net::make_certificate("x", {"DNS:localhost"});
  write("tls.crt", made.cert);
  const auto end = certificate_end(web);
  ASSERT_TRUE(end);
  EXPECT_NEAR(*end, static_cast<double>(std::time(nullptr)) + 3600, 120);
}

}  // namespace
}  // namespace ceems::admission
