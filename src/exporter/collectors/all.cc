#include "exporter/collectors/all.h"

#include "exporter/collectors/cgroup.h"
#include "exporter/collectors/cpu.h"
#include "exporter/collectors/cray_pm_counters.h"
#include "exporter/collectors/ebpf.h"
#include "exporter/collectors/emissions.h"
#include "exporter/collectors/energy.h"
#include "exporter/collectors/gpu.h"
#include "exporter/collectors/gpu_flags.h"
#include "exporter/collectors/hwmon.h"
#include "exporter/collectors/infiniband.h"
#include "exporter/collectors/ipmi_dcmi.h"
#include "exporter/collectors/k8s.h"
#include "exporter/collectors/libvirt.h"
#include "exporter/collectors/meminfo.h"
#include "exporter/collectors/netdev.h"
#include "exporter/collectors/perf.h"
#include "exporter/collectors/rapl.h"
#include "exporter/collectors/rdma.h"
#include "exporter/collectors/redfish.h"
#include "exporter/collectors/slurm.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

std::vector<CollectorSpec> all_collectors() {
  const auto cgroups = std::make_shared<CgroupFlags>();
  const auto gpus = std::make_shared<GpuFlags>();
  const auto subs = std::make_shared<SubCollectorSet>(std::vector<SubCollectorSpec>{
      perf_sub_collector(cgroups),
      rdma_sub_collector(),
      ebpf_sub_collector(),
  });
  return {
      cpu_collector(),
      cray_pm_counters_collector(),
      emissions_collector(),
      hwmon_collector(),
      infiniband_collector(),
      ipmi_dcmi_collector(),
      meminfo_collector(),
      netdev_collector(),
      rapl_collector(),
      redfish_collector(),
      // Unit collectors; cgroup last, its default depends on the others.
      slurm_collector(cgroups, subs, gpus),
      libvirt_collector(cgroups, subs, gpus),
      k8s_collector(cgroups, subs, gpus),
      cgroup_collector(cgroups, subs),
      // Need their unit sources.
      gpu_collector(gpus),
      energy_collector(),
  };
}

}  // namespace ceems::exporter
