#pragma once

#include "cacct/caller.h"
#include "cacct/options.h"

namespace ceems::cacct {

/// Does what the command line asks for and prints it. Gives up all privileges on the way. Returns
/// the exit status: 0, or 1 after an error, which is printed.
int run(const Options& options, const Caller& caller);

}  // namespace ceems::cacct
