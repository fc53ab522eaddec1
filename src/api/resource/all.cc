#include "api/resource/k8s.h"
#include "api/resource/local.h"
#include "api/resource/manager.h"
#include "api/resource/openstack.h"
#include "api/resource/slurm.h"

namespace ceems::api {

std::vector<ManagerSpec> all_managers() {
  return {
      k8s_manager(),
      local_manager(),
      openstack_manager(),
      slurm_manager(),
  };
}

}  // namespace ceems::api
