#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

/// The table ceems_tokens (store/tokens.h).
std::string create_token_table(Dialect dialect);

}  // namespace ceems::store
