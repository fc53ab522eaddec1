#include "ingest/manager/k8s/k8s.h"
#include "ingest/manager/local/local.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/openstack/openstack.h"
#include "ingest/manager/slurm/slurm.h"

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
