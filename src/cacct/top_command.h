#pragma once

#include "cacct/caller.h"

namespace ceems::cacct {

/// Shows the caller's running jobs, every five seconds anew until q or Ctrl-C, and returns the exit
/// status. Once, if standard output is not a terminal.
int run_top(const Caller& caller);

}  // namespace ceems::cacct
