#include <sys/stat.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/clock.h"
#include "config/duration.h"
#include "crypto/password.h"
#include "os/file.h"
#include "tool/command.h"
#include "tool/web/certificate.h"
#include "tool/web/directory.h"

namespace ceems::tool {
namespace {

constexpr std::string_view kUser = "ceems";
constexpr std::size_t kPasswordSize = 24;
constexpr int kCost = 10;

class CreateWebConfig final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "config create-web-config"; }
  [[nodiscard]] std::string_view help() const override {
    return "Write a web configuration with a password, and with a certificate if wanted.";
  }
  void add_flags(config::FlagSet& flags) override {
    flags.add("basic-auth", basic_auth_, {.help = "Require a password, which is made and shown."});
    flags.add("tls", tls_, {.help = "Make a self-signed certificate."});
    flags.add("tls.host", hosts_,
              {.help = "DNS name or address for which the certificate is valid (repeatable).",
               .placeholder = "HOST"});
    flags.add("tls.validity", validity_, {.help = "Time for which the certificate is valid."});
    flags.add("output-dir", directory_, {.help = "Directory of the files."});
  }
  Result<int> run(Console& console) override;

 private:
  Result<> write_certificate();
  [[nodiscard]] std::string path(std::string_view name) const {
    return (std::filesystem::path(directory_) / name).string();
  }

  bool basic_auth_ = true;
  bool tls_ = false;
  std::vector<std::string> hosts_;
  std::string validity_ = "8760h";
  std::string directory_ = "config";
};

Result<> CreateWebConfig::write_certificate() {
  CEEMS_TRY_IN("--tls.validity", validity, config::parse_flag_duration(validity_));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(validity);
  if (seconds.count() <= 0) {
    return fail(ErrorCode::kInvalidArgument, "--tls.validity: expected at least one second");
  }
  CEEMS_TRY(pair, make_certificate(hosts_, real_clock().now(), seconds));
  CEEMS_TRY(os::replace_file(path("key.pem"), pair.key));
  return os::replace_file(path("cert.pem"), pair.certificate, 0644);
}

Result<int> CreateWebConfig::run(Console& console) {
  if (tls_ && hosts_.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--tls.host must be provided.");
  }
  CEEMS_TRY(make_directory(directory_));
  if (tls_) {
    CEEMS_TRY(write_certificate());
  }
  std::string text =
      fmt::format("---\ntls_server_config:\n  cert_file: {}\n  key_file: {}\nbasic_auth_users:",
                  tls_ ? "cert.pem" : "\"\"", tls_ ? "key.pem" : "\"\"");
  std::string password;
  if (basic_auth_) {
    CEEMS_TRY(random, crypto::random_text(kPasswordSize));
    password = std::move(random);
    CEEMS_TRY(hash, crypto::bcrypt_hash(password, kCost));
    text += fmt::format("\n  {}: {}\n", kUser, hash);
  } else {
    text += " {}\n";
  }
  const std::string file = path("web-config.yml");
  CEEMS_TRY(os::replace_file(file, text));
  console.say(fmt::format("web config file created at {}", file));
  if (basic_auth_) {
    console.say(fmt::format("plain text password for basic auth is {}", password));
    console.say(
        "store the plain text password securely as you will need it to configure Prometheus");
  }
  return 0;
}

}  // namespace

std::unique_ptr<Command> create_web_config_command() {
  return std::make_unique<CreateWebConfig>();
}

}  // namespace ceems::tool
