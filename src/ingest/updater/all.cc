#include <algorithm>

#include "ingest/updater/tsdb.h"
#include "ingest/updater/updater.h"

namespace ceems::ingest {

std::vector<UpdaterSpec> all_updaters() {
  return {
      tsdb_updater(),
  };
}

Result<std::unique_ptr<Updater>> make_updater(const UpdaterConfig& config, const Clock& clock) {
  const auto kinds = all_updaters();
  const auto kind = std::ranges::find(kinds, config.kind, &UpdaterSpec::kind);
  if (kind == kinds.end()) {
    return fail(ErrorCode::kInvalidArgument, "unknown updater found in the config: {}",
                config.kind);
  }
  return kind->create(config, clock);
}

}  // namespace ceems::ingest
