#pragma once

#include "base/result.h"
#include "cacct/caller.h"
#include "cacct/log_file.h"
#include "cacct/series/config.h"

namespace ceems::cacct {

/// What a run reads with the privileges of the program, if it has any.
struct Session {
  Config config = {};
  LogFile log = {};
};

/// Reads the configuration with its secrets, opens the log, and becomes the caller for good.
/// Without privileges, a personal token of the caller is used, if there is one (token.h). Errors of
/// a privileged program do not quote the configuration; kNotFound if there is none.
Result<Session> open_session(const Caller& caller);

}  // namespace ceems::cacct
