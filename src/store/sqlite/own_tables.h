#pragma once

#include <string>

namespace ceems::store::sqlite {

/// Returns the statements that upgrade our additions to the reference's tables (ceems_schema,
/// docs/api/database.md) from `version` to kOwnVersion. From 0, they create them.
std::string own_steps(int version);

}  // namespace ceems::store::sqlite
