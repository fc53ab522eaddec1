#pragma once

#include <memory>

#include "gate/owners.h"
#include "store/reader.h"

namespace ceems::gate {

/// Owners as the data base of the API server knows them: an admin is who the list of admins names;
/// a unit may be seen by the members of its project in its cluster, and by those whom the resource
/// manager says lead it; units_of() gives the user's units and those of led projects. Leads of the
/// API server's configuration are not in the data base. `reader` must outlive them.
std::unique_ptr<Owners> reader_owners(store::Reader& reader);

}  // namespace ceems::gate
