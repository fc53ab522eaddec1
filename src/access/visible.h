#pragma once

#include <memory>
#include <string_view>

#include "access/policy.h"
#include "base/result.h"
#include "store/fields.h"
#include "store/reader.h"

namespace ceems::access {

/// May the caller see this field of a unit that is neither theirs nor of a project they lead? This
/// is the list of docs/api/access.md: what is not on it is withheld, so that a new field is hidden
/// until somebody decides. Admins see all, support what holds nothing a person wrote, others
/// nothing.
bool sees_unit_field(Role role, std::string_view field);

/// store::Reader::units() as the caller may see it: fields that are not for them are empty in rows
/// that are not theirs. `fields` are indexes into store::unit_fields(); the columns of the cursor
/// are those, in their order. The owners of the query are believed: they were made by own_rows() or
/// chosen_rows(). Errors as there.
Result<std::unique_ptr<store::Cursor>> read_units(store::Reader& reader,
                                                  const Identity& identity,
                                                  const store::UnitQuery& query,
                                                  store::FieldList fields);

}  // namespace ceems::access
