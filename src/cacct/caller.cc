#include "cacct/caller.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"

namespace ceems::cacct {
namespace {

constexpr std::array<std::string_view, 4> kConfigNames{"config.yml", "config.yaml", "cacct.yml",
                                                       "cacct.yaml"};

/// AT_SECURE also covers file capabilities and security modules.
bool is_privileged() {
  return ::getauxval(AT_SECURE) != 0 || ::geteuid() != ::getuid() || ::getegid() != ::getgid();
}

struct Ids {
  uid_t user;
  gid_t group;
};

/// Those that the program was installed with.
Ids saved_ids() {
  Ids real{};
  Ids effective{};
  Ids saved{};
  CEEMS_CHECK(::getresuid(&real.user, &effective.user, &saved.user) == 0);
  CEEMS_CHECK(::getresgid(&real.group, &effective.group, &saved.group) == 0);
  return saved;
}

/// Changes the effective IDs, of which the group needs the user's rights if that is root.
bool act_as(uid_t user, gid_t group) {
  const bool rising = user == saved_ids().user;
  const auto set_user = [user] { return ::geteuid() == user || ::seteuid(user) == 0; };
  const auto set_group = [group] { return ::getegid() == group || ::setegid(group) == 0; };
  return rising ? set_user() && set_group() : set_group() && set_user();
}

void forbid_dumps() {
  const rlimit none{};
  CEEMS_CHECK(::setrlimit(RLIMIT_CORE, &none) == 0);
  CEEMS_CHECK(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
}

/// $TERM, if it can be nothing but the name of a terminal.
std::string terminal_name() {
  const char* const value = std::getenv("TERM");
  const std::string_view name = value == nullptr ? "" : value;
  const bool harmless =
      name.size() <= 32 &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+") ==
          std::string_view::npos;
  return harmless ? std::string(name) : std::string();
}

/// Changing from one ordinary user to another keeps capabilities that came with the file.
Result<> drop_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) {
    return fail(errno_error(errno, "give up capabilities"));
  }
  return {};
}

}  // namespace

bool shed_environment() {
  if (!is_privileged()) {
    return false;
  }
  const std::string terminal = terminal_name();
  const bool plain = std::getenv("NO_COLOR") != nullptr;
  CEEMS_CHECK(::clearenv() == 0);
  if (!terminal.empty()) {
    ::setenv("TERM", terminal.c_str(), 1);
  }
  if (plain) {
    ::setenv("NO_COLOR", "1", 1);
  }
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) {
      CEEMS_CHECK(::open("/dev/null", O_RDWR) == fd);  // the lowest that is free
    }
  }
  ::close_range(3, ~0U, 0);  // fails only on kernels before 5.9
  ::umask(077);
  CEEMS_CHECK(act_as(::getuid(), ::getgid()));
  forbid_dumps();  // changing the IDs has allowed them again
  return true;
}

WithPrivileges::WithPrivileges() {
  CEEMS_CHECK(act_as(saved_ids().user, saved_ids().group));
}

WithPrivileges::~WithPrivileges() {
  CEEMS_CHECK(act_as(::getuid(), ::getgid()));
}

Result<Caller> find_caller() {
  Caller caller{.login = {}, .uid = ::getuid(), .gid = ::getgid(), .privileged = is_privileged()};
  std::string buffer(16384, '\0');
  passwd entry{};
  passwd* found = nullptr;
  int status = ::getpwuid_r(caller.uid, &entry, buffer.data(), buffer.size(), &found);
  while (status == ERANGE && buffer.size() < (std::size_t{1} << 24U)) {
    buffer.resize(buffer.size() * 4);
    status = ::getpwuid_r(caller.uid, &entry, buffer.data(), buffer.size(), &found);
  }
  if (status != 0) {
    return fail(errno_error(status, fmt::format("look up user {}", caller.uid)));
  }
  if (found == nullptr || *entry.pw_name == '\0') {
    return fail(ErrorCode::kNotFound, "user {} is not in the user database", caller.uid);
  }
  caller.login = entry.pw_name;
  return caller;
}

Result<> become(const Caller& caller) {
  // Supplementary groups are the caller's own already; a set-group-ID program only adds its own.
  if (::setresgid(caller.gid, caller.gid, caller.gid) != 0) {
    return fail(errno_error(errno, "give up the group"));
  }
  if (::setresuid(caller.uid, caller.uid, caller.uid) != 0) {
    return fail(errno_error(errno, "give up the user"));
  }
  if (caller.privileged) {
    CEEMS_TRY(drop_capabilities());
    forbid_dumps();
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
      return fail(errno_error(errno, "refuse new privileges"));
    }
  }
  return {};
}

std::vector<std::string> config_directories(bool privileged) {
  std::vector<std::string> directories{"/etc/ceems"};
  if (privileged) {
    return directories;
  }
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config == '/') {
    directories.push_back(fmt::format("{}/ceems", config));
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    directories.push_back(fmt::format("{}/.config/ceems", home));
  }
  return directories;
}

Result<std::string> find_config(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    for (const std::string_view name : kConfigNames) {
      std::string path = fmt::format("{}/{}", directory, name);
      struct stat info{};
      if (::stat(path.c_str(), &info) == 0) {
        return path;
      }
    }
  }
  return fail(ErrorCode::kNotFound, "no configuration file {} in {}", fmt::join(kConfigNames, ", "),
              fmt::join(directories, " or "));
}

}  // namespace ceems::cacct
