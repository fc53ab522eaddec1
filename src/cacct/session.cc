#include "cacct/session.h"

#include <utility>

#include "config/yaml.h"

namespace ceems::cacct {
namespace {

Result<Session> load(const Caller& caller) {
  const WithPrivileges privileges;
  const auto path = find_config(config_directories(caller.privileged));
  if (!path) {
    return fail(path.error());
  }
  auto config = config::read_config(*path, false, parse_config);
  if (!config) {
    return fail(std::move(config).error());
  }
  for (auto* client : {&config->api_client, &config->tsdb_client}) {
    if (auto read = read_secret_files(*client); !read) {
      return fail(std::move(read).error().with_context(*path));
    }
  }
  auto log = LogFile::open(config->log);
  if (!log) {
    return fail(std::move(log).error());
  }
  return Session{.config = std::move(*config), .log = std::move(*log)};
}

}  // namespace

Result<Session> open_session(const Caller& caller) {
  auto session = load(caller);
  if (auto done = become(caller); !done) {
    return fail(std::move(done).error());
  }
  if (!session && caller.privileged && session.error().code != ErrorCode::kNotFound) {
    // The message may quote a file that the caller must not read.
    return fail(ErrorCode::kInvalidArgument,
                "the configuration cannot be used; run cacct as root to see why");
  }
  return session;
}

}  // namespace ceems::cacct
