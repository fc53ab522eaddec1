#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::store::sqlite {

/// Takes the lock of a program that writes a database: "<database>.lock", which is created with
/// mode 0640. The kernel releases it when the descriptor is closed or the process ends in any way.
/// kUnavailable, with the number of the process, if another program holds it.
Result<UniqueFd> lock_file(const std::string& database);

}  // namespace ceems::store::sqlite
