#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

/// The table ceems_flavors (model/flavor.h).
std::string create_flavor_table(Dialect dialect);

}  // namespace ceems::store
