#include "ingest/manager/manager.h"

#include <algorithm>

#include "base/log.h"
#include "config/section.h"

namespace ceems::ingest {
namespace {

void warn_about_unread_section(bool unread, const char* section, const ClusterConfig& config) {
  if (unread) {
    log::warn("the manager of the cluster does not read this section of the configuration",
              {{"cluster_id", config.cluster.id},
               {"manager", config.cluster.manager},
               {"section", section}});
  }
}

}  // namespace

const ManagerSpec* find_manager(std::string_view name) {
  const auto& specs = all_managers();
  const auto found = std::ranges::find(specs, name, &ManagerSpec::name);
  return found == specs.end() ? nullptr : &*found;
}

Result<std::unique_ptr<ResourceManager>> create_manager(const ManagerSpec& spec,
                                                        const ClusterConfig& config,
                                                        const ManagerContext& context) {
  if (auto known = config::Section(config.extra).only(spec.extra_keys).done(); !known) {
    return fail(std::move(known).error());
  }
  warn_about_unread_section(
      !spec.reads_cli && (!config.cli_path.empty() || !config.cli_environment.empty()), "cli",
      config);
  warn_about_unread_section(!spec.reads_web && !config.web_url.empty(), "web", config);
  return spec.create(config, context);
}

}  // namespace ceems::ingest
