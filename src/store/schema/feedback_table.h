#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

/// The table ceems_feedback (store/feedback.h).
std::string create_feedback_table(Dialect dialect);

}  // namespace ceems::store
