#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::os {

/// Capability numbers of <linux/capability.h>; e.g. CAP_DAC_READ_SEARCH.
using Capability = int;

/// Raises permitted capabilities in the calling thread for the life of the object, around the one
/// call that needs them; those that the process does not hold are skipped, so the call itself
/// reports it.
class RaisedCapabilities {
 public:
  RaisedCapabilities(std::initializer_list<Capability> capabilities);
  RaisedCapabilities(const RaisedCapabilities&) = delete;
  RaisedCapabilities& operator=(const RaisedCapabilities&) = delete;
  ~RaisedCapabilities();

 private:
  unsigned long long raised_ = 0;
};

/// True when the capability is in the permitted set of the calling thread.
bool may_raise(Capability capability);

/// Started as root: become `user` (name or uid) with its primary group and no supplementary ones,
/// keep only `keep` as permitted (not effective), with HOME of that user. A user with uid 0 keeps
/// everything: it was asked for by name. Not root: reduce the permitted set to what is both held
/// and in `keep`. Sets no_new_privs unless `keep` holds CAP_SETUID. Call before threads start.
/// kNotFound for an unknown user.
Result<> drop_privileges(const std::string& user, const std::vector<Capability>& keep);

/// Name of a capability, e.g. "cap_sys_ptrace".
std::string capability_name(Capability capability);

/// "nobody" for euid 0, else the current user's name (or uid in decimal).
std::string default_run_as_user();

}  // namespace ceems::os
