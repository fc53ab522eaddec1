#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::os {

/// A capability number of <linux/capability.h>, e.g. CAP_DAC_READ_SEARCH.
using Capability = int;

/// Raises permitted capabilities in the calling thread for the life of the object; use it around
/// the one call that needs them. Capabilities that the process does not hold are skipped: the call
/// itself will fail and report it.
class RaisedCapabilities {
 public:
  RaisedCapabilities(std::initializer_list<Capability> capabilities);
  RaisedCapabilities(const RaisedCapabilities&) = delete;
  RaisedCapabilities& operator=(const RaisedCapabilities&) = delete;
  ~RaisedCapabilities();

 private:
  unsigned long long raised_ = 0;
};

/// Calls `read` with CAP_DAC_READ_SEARCH raised: certificates, secrets and databases may be
/// readable only by root.
void read_as_root(const std::function<void()>& read);

/// Whether the capability is in the permitted set of the calling thread.
bool may_raise(Capability capability);

/// If started as root, becomes `user` (a name or uid) with its primary group, without supplementary
/// groups and with its HOME, and keeps only the capabilities in `keep` permitted, none effective. A
/// user with uid 0 keeps everything, because the operator asked for it by name. If not started as
/// root, reduces the permitted set to capabilities that are both held and in `keep`. Sets
/// no_new_privs unless `keep` contains CAP_SETUID. Call it before threads start. Error: kNotFound
/// for an unknown user.
Result<> drop_privileges(const std::string& user, const std::vector<Capability>& keep);

/// The name of a capability, e.g. "cap_sys_ptrace".
std::string capability_name(Capability capability);

/// "nobody" if the effective uid is 0, otherwise the name of the current user. Without a name:
/// $USER, or the uid in decimal.
std::string default_run_as_user();

}  // namespace ceems::os
