#pragma once

#include <string>

#include "cacct/caller.h"
#include "config/flags.h"

namespace ceems::cacct {

/// The command line of `cacct gpus`.
struct GpusOptions {
  bool me = false;         ///< only GPUs that the caller's units used
  std::string node{};      ///< only nodes whose name has a match of this pattern
  bool all_users = false;  ///< with the units of all users; only operators may ask for them
  bool json = false;
  bool csv = false;
  bool ascii = false;
};

void add_gpus_flags(config::FlagSet& flags, GpusOptions& options);

/// Prints what units did on the GPUs, and returns the exit status: 0, or 1 after an error.
int run_gpus(const GpusOptions& options, const Caller& caller);

}  // namespace ceems::cacct
