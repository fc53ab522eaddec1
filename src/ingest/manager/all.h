#pragma once

#include "ingest/manager/manager.h"

namespace ceems::ingest {

// The list of resource managers. A line that declares NAME_manager() is all the build needs to
// include NAME.cc and NAME_test.cc, here or in the folder NAME/, and to call the function in
// all_managers(): CMakeLists.txt reads this file. The order of the lines does not matter.
ManagerSpec exec_manager();
ManagerSpec k8s_manager();
ManagerSpec local_manager();
ManagerSpec lsf_manager();
ManagerSpec openpbs_manager();
ManagerSpec openstack_manager();
ManagerSpec slurm_manager();

}  // namespace ceems::ingest
