#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

/// The tables of nodes, their days and bills (store/nodes.h).
std::string create_node_tables(Dialect dialect);

}  // namespace ceems::store
