#include "ingest/k8s/k8s.h"
#include "ingest/local/local.h"
#include "ingest/manager.h"
#include "ingest/openstack/openstack.h"
#include "ingest/slurm/slurm.h"

namespace ceems::ingest {

std::vector<ManagerSpec> all_managers() {
  return {
      k8s_manager(),
      local_manager(),
      openstack_manager(),
      slurm_manager(),
  };
}

}  // namespace ceems::ingest
