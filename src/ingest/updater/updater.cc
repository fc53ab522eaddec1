#include "ingest/updater/updater.h"

#include <algorithm>

#include "config/section.h"

namespace ceems::ingest {

const UpdaterSpec* find_updater(std::string_view name) {
  const auto& specs = all_updaters();
  const auto found = std::ranges::find(specs, name, &UpdaterSpec::name);
  return found == specs.end() ? nullptr : &*found;
}

Result<std::unique_ptr<Updater>> create_updater(const UpdaterSpec& spec,
                                                const UpdaterConfig& config,
                                                const Clock& clock) {
  CEEMS_TRY(config::Section(config.extra).only(spec.extra_keys).done());
  return spec.create(config, clock);
}

}  // namespace ceems::ingest
