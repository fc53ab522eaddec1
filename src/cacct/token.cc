#include "cacct/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/strings.h"
#include "cacct/caller.h"
#include "model/protocol.h"
#include "os/secret.h"

namespace ceems::cacct {
namespace {

constexpr std::string_view kPrefix = "ceems_pat_";
constexpr std::size_t kTokenBytes = 53;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Result<> check_rights(const std::string& file, uid_t uid) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) {
    return fail(ErrorCode::kInvalidArgument, "{}", errno_error(errno, file).message);
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "{}: expected a file with a personal token", file);
  }
  constexpr mode_t kOthers = 077;
  if (status.st_uid != uid || (status.st_mode & kOthers) != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "{}: others may read or write this token: chown it to yourself, and chmod 600",
                file);
  }
  return {};
}

Result<std::string> checked(std::string token, std::string_view from) {
  if (token.size() != kTokenBytes || !token.starts_with(kPrefix) || !has_only_words(token, "-_")) {
    return fail(ErrorCode::kInvalidArgument, "{}: expected a personal token, which begins with {}",
                from, kPrefix);
  }
  return token;
}

}  // namespace

Result<std::string> find_token(uid_t uid) {
  if (std::string token = variable("CEEMS_TOKEN"); !token.empty()) {
    return checked(std::string(trim(token)), "CEEMS_TOKEN");
  }
  std::string file = variable("CEEMS_TOKEN_FILE");
  if (file.empty()) {
    file = config_directories(false).back() + "/token";
    if (::access(file.c_str(), F_OK) != 0) {
      return std::string();
    }
  }
  CEEMS_TRY(check_rights(file, uid));
  CEEMS_TRY(text, os::read_secret("", file));
  return checked(std::move(text), file);
}

void use_token(std::string token, Config& config) {
  net::ClientOptions& client = config.api_client;
  client.oauth2.reset();
  client.authorization.reset();
  std::erase_if(client.headers, [&](const auto& header) {
    return same_in_any_case(header.first, config.user_header) ||
           same_in_any_case(header.first, "Authorization") ||
           same_in_any_case(header.first, model::kTokenHeader);
  });
  if (client.basic_auth) {  // the server's password, without which no request gets in
    client.headers[std::string(model::kTokenHeader)].secrets = {std::move(token)};
  } else {
    client.authorization = net::ClientOptions::Authorization{.credentials = std::move(token)};
  }
  config.user_header.clear();
}

}  // namespace ceems::cacct
