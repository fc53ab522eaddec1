#include "exporter/sub_collector.h"

#include <utility>

namespace ceems::exporter {

void SubCollectorSet::add_to(config::FlagSet& flags) const {
  for (const SubCollectorSpec& spec : specs_) {
    if (spec.add_flags) {
      spec.add_flags(flags);
    }
  }
}

Result<std::vector<std::unique_ptr<SubCollector>>> SubCollectorSet::create(
    const CollectorContext& context, const host::CgroupMount& mount, UnitSource& source) const {
  std::vector<std::unique_ptr<SubCollector>> created;
  for (const SubCollectorSpec& spec : specs_) {
    CEEMS_TRY_IN(spec.name, sub, spec.create(context, mount, source));
    if (sub != nullptr) {
      created.push_back(std::move(sub));
    }
  }
  return created;
}

}  // namespace ceems::exporter
