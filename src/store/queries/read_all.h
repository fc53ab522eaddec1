#pragma once

#include <memory>
#include <utility>

#include "base/result.h"
#include "store/reader.h"

namespace ceems::store {

/// Calls `each` with the cursor at every row. The error is that of opening or reading it.
template <typename Each>
Result<> read_all(Result<std::unique_ptr<Cursor>> rows, const Each& each) {
  if (!rows) {
    return fail(std::move(rows).error());
  }
  while (true) {
    CEEMS_TRY(row, (*rows)->next());
    if (!row) {
      return {};
    }
    each(static_cast<const Cursor&>(**rows));
  }
}

}  // namespace ceems::store
