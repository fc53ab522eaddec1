#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

/// The table ceems_node_effects (store/node_effects.h).
std::string create_effects_table(Dialect dialect);

}  // namespace ceems::store
