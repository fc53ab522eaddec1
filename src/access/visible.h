#pragma once

#include <memory>
#include <string_view>

#include "access/policy.h"
#include "base/result.h"
#include "store/fields.h"
#include "store/reader.h"

namespace ceems::access {

/// Whether the caller may see this field of a unit that is neither theirs nor of a project they
/// lead. This is the list in docs/api/access.md. Fields that are not on it are withheld, so a new
/// field is hidden until somebody decides. Admins see all fields, support those without text that a
/// person wrote, others none.
bool sees_unit_field(Role role, std::string_view field);

/// store::Reader::units() as the caller may see it: in rows that are not theirs, withheld fields
/// are empty. `fields` are indexes into store::unit_fields(); the cursor has these columns in this
/// order. The owners in the query are trusted, because own_rows() or chosen_rows() made them.
/// Passes on errors of store::Reader::units().
Result<std::unique_ptr<store::Cursor>> read_units(store::Reader& reader,
                                                  const Identity& identity,
                                                  const store::UnitQuery& query,
                                                  store::FieldList fields);

}  // namespace ceems::access
