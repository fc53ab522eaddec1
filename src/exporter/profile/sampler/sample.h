#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "exporter/profile/sampler/layout.h"

namespace ceems::exporter::profile {

/// A stack that was taken. Valid during the call that hands it over.
struct Sample {
  pid_t pid = 0;
  std::string_view comm;  ///< name of the process; a job chooses it
  stack_end end = STACK_END_OUTERMOST;
  bool unknown = false;                   ///< the process, or code on its stack, was not described
  std::span<const std::uint64_t> kernel;  ///< addresses, the leaf first
  std::span<const std::uint64_t> user;    ///< return addresses, the leaf first
};

}  // namespace ceems::exporter::profile
