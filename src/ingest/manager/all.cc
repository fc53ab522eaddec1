#include "ingest/manager/manager.h"

namespace ceems::ingest {

// One line here and one below for each manager: NAME_manager() is defined in NAME.cc or
// NAME/NAME.cc.
ManagerSpec k8s_manager();
ManagerSpec local_manager();
ManagerSpec openstack_manager();
ManagerSpec slurm_manager();

const std::vector<ManagerSpec>& all_managers() {
  static const std::vector<ManagerSpec> specs = {
      k8s_manager(),
      local_manager(),
      openstack_manager(),
      slurm_manager(),
  };
  return specs;
}

}  // namespace ceems::ingest
