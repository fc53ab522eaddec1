#pragma once

// A column of the database: the state in which a unit was first seen.
#include <array>

#include "store/schema/tables.h"

namespace ceems::example {

using model::Unit;
using store::Column;
using store::Place;
using store::Update;

inline constexpr std::array kFirstState = std::to_array<Column>({
    {.name = "first_state",
     .update = Update::kFirstKnown,
     .source = &Unit::state,
     .place = Place::kBody,
     .help = "State when the unit was first seen, in the manager's words.",
     .example = R"("PENDING")",
     .since = store::kOwnVersion + 1},
});

}  // namespace ceems::example
