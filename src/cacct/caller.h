#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::cacct {

/// Who runs the program.
struct Caller {
  std::string login;  ///< name of the real user ID in the user database
  uid_t uid = 0;      ///< real
  gid_t gid = 0;      ///< real
  /// The program was installed with privileges of its own (set-user-ID, set-group-ID or file
  /// capabilities), so it can read files that the caller cannot.
  bool privileged = false;
};

/// Finds out who runs the program: by the real user ID, never by the environment or the effective
/// user ID. kNotFound if the user database has no such user.
Result<Caller> find_caller();

/// To be called first of all. If the program runs with privileges of its own, everything that the
/// caller controls is hostile: this clears the environment except for the kind of terminal, closes
/// inherited descriptors above 2, opens /dev/null for closed ones up to 2, resets the umask, and
/// forbids core dumps and tracing, so that the caller can read no secret from memory. From then on
/// the program acts with the caller's rights, except within WithPrivileges. Otherwise it does
/// nothing. Returns whether the program is privileged. Aborts if the system refuses.
bool shed_environment();

/// The program's own privileges are in effect as long as this object lives: around the reading of
/// the configuration, and nothing else. Without any, it has no effect.
class WithPrivileges {
 public:
  WithPrivileges();
  ~WithPrivileges();
  WithPrivileges(const WithPrivileges&) = delete;
  WithPrivileges& operator=(const WithPrivileges&) = delete;
};

/// Becomes the caller for good. Tracing stays forbidden if the program was privileged.
Result<> become(const Caller& caller);

/// Where the configuration is searched, in this order: /etc/ceems, and without privileges also
/// $XDG_CONFIG_HOME/ceems or $HOME/.config/ceems.
std::vector<std::string> config_directories(bool privileged);

/// The first existing file of config.yml, config.yaml, cacct.yml and cacct.yaml in these
/// directories. kNotFound names the directories.
Result<std::string> find_config(const std::vector<std::string>& directories);

}  // namespace ceems::cacct
