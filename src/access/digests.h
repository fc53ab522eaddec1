#pragma once

#include <string>
#include <vector>

#include "access/policy.h"
#include "store/facts.h"

namespace ceems::access {

/// What the digest of a month may read and show (docs/api/access.md). The default value is nothing.
struct DigestRows {
  enum class Seen { kNothing, kBand, kWhole };
  Seen seen = Seen::kNothing;
  store::Scope members = {};     ///< whose usage, for store::UsageSeriesQuery
  store::FactFilter units = {};  ///< owners and names
  bool written = false;          ///< also names of jobs and command lines
};

/// The caller's own month.
DigestRows own_digest(const Identity& identity);

/// The month of a project on these clusters (empty: all): whole for those who lead it there, on the
/// clusters where they do, and for admins and support, who does not see what people wrote. For
/// members only where the project stands; `member` says whether the caller is one.
DigestRows project_digest(const Identity& identity,
                          const std::string& project,
                          const std::vector<std::string>& clusters,
                          bool member);

/// All rows, for the middle half of the projects of a site. Only what cannot be led back to one
/// project may be shown of them (report::Band).
store::FactFilter all_rows_for_bands();

}  // namespace ceems::access
