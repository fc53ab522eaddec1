#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

/// The table ceems_members: since when members of projects are known, of those who joined or left
/// after the project was known. The others have been members since ever.
std::string create_members_table(Dialect dialect);

}  // namespace ceems::store
