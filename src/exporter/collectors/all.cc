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
      perf_sub_collector(),
      rdma_sub_collector(),
      ebpf_sub_collector(),
  });
  return {
      cgroup_collector(cgroups, subs),
      cpu_collector(),
      cray_pm_counters_collector(),
      emissions_collector(),
      energy_collector(),
      gpu_collector(gpus),
      hwmon_collector(),
      infiniband_collector(),
      ipmi_dcmi_collector(),
      k8s_collector(cgroups, subs, gpus),
      libvirt_collector(cgroups, subs, gpus),
      meminfo_collector(),
      netdev_collector(),
      rapl_collector(),
      redfish_collector(),
      slurm_collector(cgroups, subs, gpus),
  };
}

}  // namespace ceems::exporter
