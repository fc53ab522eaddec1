#include "cacct/session.h"

#include <utility>

#include "cacct/token.h"
#include "config/yaml.h"

namespace ceems::cacct {
namespace {

Result<Session> load(const Caller& caller) {
  const WithPrivileges privileges;
  CEEMS_TRY(path, find_config(config_directories(caller.privileged)));
  CEEMS_TRY(config, config::read_config(path, false, parse_config));
  for (auto* client : {&config.api_client, &config.tsdb_client}) {
    CEEMS_TRY_IN(path, read_secret_files(*client));
  }
  CEEMS_TRY(log, LogFile::open(config.log));
  return Session{.config = std::move(config), .log = std::move(log)};
}

}  // namespace

Result<Session> open_session(const Caller& caller) {
  auto session = load(caller);
  CEEMS_TRY(become(caller));
  if (!session && caller.privileged && session.error().code != ErrorCode::kNotFound) {
    // The message may quote a file that the caller must not read.
    return fail(ErrorCode::kInvalidArgument,
                "the configuration cannot be used; run cacct as root to see why");
  }
  if (session && !caller.privileged) {
    CEEMS_TRY(token, find_token(caller.uid));
    if (!token.empty()) {
      use_token(std::move(token), session->config);
    }
  }
  return session;
}

}  // namespace ceems::cacct
