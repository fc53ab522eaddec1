#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "exporter/profile/sampler/layout.h"

namespace ceems::exporter::profile {

inline bool operator==(const stack_image& a, const stack_image& b) {
  return a.started == b.started && a.execs == b.execs;
}

/// A stack that was taken. Valid during the call that hands it over.
struct Sample {
  pid_t pid = 0;
  stack_image image = {};
  std::uint64_t unit = 0;  ///< number of the cgroup of the unit; 0: in none of set_units()
  std::string_view comm;   ///< name of the process; a job chooses it
  stack_end end = STACK_END_OUTERMOST;
  bool unknown = false;                   ///< the process, or code on its stack, was not described
  std::span<const std::uint64_t> kernel;  ///< addresses, the leaf first
  std::span<const std::uint64_t> user;    ///< return addresses, the leaf first
};

}  // namespace ceems::exporter::profile
