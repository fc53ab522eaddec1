#include "net/server/web_config.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "config/yaml.h"
#include "crypto/openssl_handle.h"
#include "crypto/password.h"
#include "testing/temp_dir.h"
#include "tool/fake_console.h"
#include "tool/web/certificate.h"

namespace ceems::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

unsigned mode(const std::filesystem::path& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777U;
}

TEST(CreateWebConfig, WritesAPasswordThatOpensTheServer) {
  const testing::TempDir dir;
  const auto output = dir.path() / "new" / "web";
  FakeConsole console;
  ASSERT_EQ(run_tool({"config", "create-web-config", "--output-dir=" + output.string()}, console),
            0)
      << console.err;
  EXPECT_EQ(mode(output), 0700U);
  EXPECT_EQ(mode(output / "web-config.yml"), 0600U);
  const std::string label = "plain text password for basic auth is ";
  const std::size_t at = console.err.find(label);
  ASSERT_NE(at, std::string::npos);
  const std::string password = console.err.substr(at + label.size(), 24);
  const std::string text = content(output / "web-config.yml");
  EXPECT_THAT(text, HasSubstr("tls_server_config:\n  cert_file: \"\"\n  key_file: \"\"\n"
                              "basic_auth_users:\n  ceems: $2y$10$"));
  EXPECT_THAT(text, Not(HasSubstr(password)));
  const auto document = config::load_yaml((output / "web-config.yml").string());
  ASSERT_TRUE(document);
  const auto web = net::parse_web_config(*document, output);
  ASSERT_TRUE(web) << web.error().message;
  EXPECT_FALSE(web->tls.enabled);
  ASSERT_EQ(web->basic_auth_users.size(), 1U);
  EXPECT_TRUE(crypto::bcrypt_matches(password, web->basic_auth_users[0].second));
}

TEST(CreateWebConfig, PrintsNoPasswordWithoutBasicAuth) {
  const testing::TempDir dir;
  FakeConsole console;
  ASSERT_EQ(run_tool({"config", "create-web-config", "--no-basic-auth", "--tls",
                      "--tls.host=node1.example", "--tls.host=192.0.2.7", "--tls.host=::1",
                      "--output-dir=" + dir.path().string()},
                     console),
            0)
      << console.err;
  EXPECT_EQ(console.err,
            "web config file created at " + (dir.path() / "web-config.yml").string() + "\n");
  EXPECT_THAT(content(dir.path() / "web-config.yml"),
              HasSubstr("  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users: {}\n"));
  EXPECT_EQ(mode(dir.path() / "key.pem"), 0600U);
  EXPECT_THAT(content(dir.path() / "key.pem"), HasSubstr("-----BEGIN PRIVATE KEY-----"));
  FakeConsole check;
  const std::string file = (dir.path() / "web-config.yml").string();
  EXPECT_EQ(run_tool({"check", "web-config", file}, check), 0);
  EXPECT_EQ(check.err, file + " SUCCESS\n");
}

TEST(CreateWebConfig, RefusesMistakes) {
  const testing::TempDir dir;
  const std::string output = "--output-dir=" + (dir.path() / "web").string();
  FakeConsole console;
  EXPECT_EQ(run_tool({"config", "create-web-config", "--tls", output}, console), 1);
  EXPECT_EQ(console.err, "--tls.host must be provided.\n");
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "web"));
  for (const char* host : {"--tls.host=a,DNS:evil", "--tls.host=", "--tls.host=a b"}) {
    EXPECT_EQ(run_tool({"config", "create-web-config", "--tls", host, output}, console), 1);
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "web" / "key.pem"));
  }
  EXPECT_EQ(
      run_tool({"config", "create-web-config", "--tls", "--tls.host=a", "--tls.validity=0", output},
               console),
      1);
  EXPECT_THAT(console.err, HasSubstr("--tls.validity: expected at least one second"));
  const auto file = dir.write("file", "");
  EXPECT_EQ(run_tool({"config", "create-web-config", "--output-dir=" + file.string()}, console), 1);
  EXPECT_THAT(console.err, HasSubstr("Not a directory"));
}

TEST(CreateWebConfig, TakesDurationsOfGo) {
  const testing::TempDir dir;
  const std::string output = "--output-dir=" + (dir.path() / "web").string();
  FakeConsole console;
  EXPECT_EQ(run_tool({"config", "create-web-config", "--tls", "--tls.host=a", "--tls.validity=1.5h",
                      output},
                     console),
            0);
}

TEST(Certificate, IsASelfSignedAuthorityForItsHosts) {
  const auto now = std::chrono::system_clock::from_time_t(1'800'000'000);
  const auto pair = make_certificate({"node1.example", "192.0.2.7", "*.site.example"}, now,
                                     std::chrono::hours(24));
  ASSERT_TRUE(pair) << pair.error().message;
  const crypto::Bio bio(
      BIO_new_mem_buf(pair->certificate.data(), static_cast<int>(pair->certificate.size())));
  const crypto::Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ASSERT_TRUE(certificate);
  const crypto::Key key(X509_get_pubkey(certificate.get()));
  EXPECT_EQ(X509_verify(certificate.get(), key.get()), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "node1.example", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "n9.site.example", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "node1.example.com", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "192.0.2.7", 0), 1);
  EXPECT_EQ(X509_check_ca(certificate.get()), 1);
  EXPECT_EQ(X509_get_key_usage(certificate.get()),
            static_cast<std::uint32_t>(KU_DIGITAL_SIGNATURE | KU_KEY_CERT_SIGN));
  EXPECT_EQ(X509_get_extended_key_usage(certificate.get()),
            static_cast<std::uint32_t>(XKU_SSL_SERVER));
  int days = 0;
  int seconds = 0;
  ASSERT_EQ(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(certificate.get()),
                           X509_get0_notAfter(certificate.get())),
            1);
  EXPECT_EQ(days, 1);
  EXPECT_EQ(seconds, 0);
}

TEST(CheckWebConfig, NamesEachFileAndWhatIsWrong) {
  const testing::TempDir dir;
  const std::string good = dir.write("good.yml", "basic_auth_users: {}\n").string();
  const std::string bad = dir.write("bad.yml", "basic_auth_user: {}\n").string();
  FakeConsole console;
  EXPECT_EQ(run_tool({"check", "web-config", good, bad}, console), 1);
  EXPECT_EQ(console.err, good + " SUCCESS\n" + bad + " FAILED: " + bad +
                             ":1: basic_auth_user: unknown key, did you mean "
                             "'basic_auth_users'?\n");
  EXPECT_EQ(run_tool({"check", "web-config", "/nonexistent"}, console), 1);
  EXPECT_THAT(console.err, HasSubstr("path '/nonexistent' does not exist"));
  EXPECT_EQ(run_tool({"check", "web-config"}, console), 1);
}

}  // namespace
}  // namespace ceems::tool
