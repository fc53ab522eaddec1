#pragma once

#include <memory>
#include <vector>

#include "exporter/collector.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

struct UnitFlags;

// The list of collectors. CMakeLists.txt reads this file: for a line that declares
// NAME_collector(), the build compiles NAME.cc and NAME_test.cc and calls the function in
// all_collectors(). The order of the lines does not matter. Collectors with shared flags get the
// same object.
CollectorSpec amd_hsmp_collector();
CollectorSpec cgroup_collector(const std::shared_ptr<UnitFlags>& shared);
CollectorSpec cpu_collector();
CollectorSpec cray_pm_counters_collector();
CollectorSpec emissions_collector();
CollectorSpec energy_collector();
CollectorSpec gpu_collector(const std::shared_ptr<UnitFlags>& shared);
CollectorSpec hwmon_collector();
CollectorSpec infiniband_collector();
CollectorSpec ipmi_dcmi_collector();
CollectorSpec k8s_collector(const std::shared_ptr<UnitFlags>& shared);
CollectorSpec libvirt_collector(const std::shared_ptr<UnitFlags>& shared);
CollectorSpec lsf_collector(const std::shared_ptr<UnitFlags>& shared);
CollectorSpec lustre_collector();
CollectorSpec marks_collector();
CollectorSpec meminfo_collector();
CollectorSpec netdev_collector();
CollectorSpec nfs_collector();
CollectorSpec openpbs_collector(const std::shared_ptr<UnitFlags>& shared);
CollectorSpec pdu_collector();
CollectorSpec placement_collector(const std::shared_ptr<UnitFlags>& shared);
CollectorSpec rapl_collector();
CollectorSpec redfish_collector();
CollectorSpec slurm_collector(const std::shared_ptr<UnitFlags>& shared);
CollectorSpec textfile_collector();

/// The collectors of the list, in any order.
std::vector<CollectorSpec> all_collectors();

// Parts that each collector of units can have.
SubCollectorSpec ebpf_sub_collector();
SubCollectorSpec perf_sub_collector();
SubCollectorSpec profiling_sub_collector();
SubCollectorSpec rdma_sub_collector();

}  // namespace ceems::exporter
