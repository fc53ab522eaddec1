#include "os/privileges.h"

#include <grp.h>
#include <pwd.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/strings.h"

namespace ceems::os {
namespace {

struct CapFree {
  void operator()(cap_t caps) const { cap_free(caps); }
};
using Caps = std::unique_ptr<std::remove_pointer_t<cap_t>, CapFree>;

bool has(const Caps& caps, Capability capability, cap_flag_t which) {
  cap_flag_value_t value = CAP_CLEAR;
  return caps != nullptr && cap_get_flag(caps.get(), capability, which, &value) == 0 &&
         value == CAP_SET;
}

/// Sets the effective flag of the given capabilities in the calling thread; capset(2) acts on one
/// thread.
void set_effective(unsigned long long mask, cap_flag_value_t value) {
  const Caps caps(cap_get_proc());
  if (caps == nullptr) {
    return;
  }
  for (Capability capability = 0; capability <= CAP_LAST_CAP; ++capability) {
    if ((mask >> static_cast<unsigned>(capability) & 1U) != 0) {
      cap_set_flag(caps.get(), CAP_EFFECTIVE, 1, &capability, value);
    }
  }
  cap_set_proc(caps.get());
}

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
};

Result<Account> look_up(const std::string& user) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  // Look for a name first, because names may consist of digits.
  int error = ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (const auto uid = parse_int<uid_t>(user); uid && found == nullptr) {
    error = ::getpwuid_r(*uid, &entry, buffer.data(), buffer.size(), &found);
  }
  if (found != nullptr) {
    return Account{.uid = entry.pw_uid, .gid = entry.pw_gid, .home = entry.pw_dir};
  }
  // Name services report "no such user" differently, see getpwnam(3).
  if (error != 0 && error != ENOENT && error != ESRCH && error != EBADF && error != EPERM) {
    return fail(errno_error(error, "look up user " + printable(user)));
  }
  return fail(ErrorCode::kNotFound, "unknown user {}", printable(user));
}

/// Reduces the permitted set to capabilities that are both held and in `keep`; clears effective and
/// inheritable.
Result<> keep_permitted(const std::vector<Capability>& keep) {
  const Caps now(cap_get_proc());
  const Caps next(cap_init());
  if (now == nullptr || next == nullptr) {
    return fail(errno_error(errno, "read capabilities"));
  }
  for (const Capability capability : keep) {
    if (has(now, capability, CAP_PERMITTED)) {
      cap_set_flag(next.get(), CAP_PERMITTED, 1, &capability, CAP_SET);
    }
  }
  if (cap_set_proc(next.get()) != 0) {
    return fail(errno_error(errno, "reduce capabilities"));
  }
  return {};
}

}  // namespace

RaisedCapabilities::RaisedCapabilities(std::initializer_list<Capability> capabilities) {
  const Caps caps(cap_get_proc());
  for (const Capability capability : capabilities) {
    if (has(caps, capability, CAP_PERMITTED) && !has(caps, capability, CAP_EFFECTIVE)) {
      raised_ |= 1ULL << static_cast<unsigned>(capability);
    }
  }
  if (raised_ != 0) {
    set_effective(raised_, CAP_SET);
  }
}

RaisedCapabilities::~RaisedCapabilities() {
  if (raised_ != 0) {
    set_effective(raised_, CAP_CLEAR);
  }
}

void read_as_root(const std::function<void()>& read) {
  const RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  read();
}

bool may_raise(Capability capability) {
  return has(Caps(cap_get_proc()), capability, CAP_PERMITTED);
}

Result<> drop_privileges(const std::string& user, const std::vector<Capability>& keep) {
  if (::geteuid() == 0) {
    CEEMS_TRY(account, look_up(user));
    if (account.uid != 0) {
      if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || ::setgroups(0, nullptr) != 0 ||
          ::setresgid(account.gid, account.gid, account.gid) != 0 ||
          ::setresuid(account.uid, account.uid, account.uid) != 0) {
        return fail(errno_error(errno, "become user " + printable(user)));
      }
      ::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
      // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads yet, as the header requires
      ::setenv("HOME", account.home.c_str(), 1);
    }
    if (account.uid == 0) {
      return {};  // the operator asked for root by name, so keep everything
    }
  }
  CEEMS_TRY(keep_permitted(keep));
  if (std::ranges::find(keep, CAP_SETUID) == keep.end()) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  }
  return {};
}

std::string capability_name(Capability capability) {
  char* name = cap_to_name(capability);
  if (name == nullptr) {
    return "capability " + std::to_string(capability);
  }
  std::string text = name;
  cap_free(name);
  return text;
}

std::string default_run_as_user() {
  const uid_t uid = ::geteuid();
  if (uid == 0) {
    return "nobody";
  }
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return entry.pw_name;
  }
  const char* name = std::getenv("USER");
  return name != nullptr && *name != '\0' ? name : std::to_string(uid);
}

}  // namespace ceems::os
