#pragma once

#include "export/unit.h"

namespace ceems::exporting {

/// A task of an array that ran for an hour on two nodes.
inline ExportedUnit test_unit() {
  return {
      .cluster = "hpc-a",
      .manager = "slurm",
      .uuid = "7104",
      .name = "md,run",
      .user = "ada",
      .group = "phys",
      .project = "fluids",
      .state = "COMPLETED",
      .started = "2025-12-31T23:00:00",
      .created_ms = 1'767'218'400'000,  // 2025-12-31T22:00:00Z
      .started_ms = 1'767'222'000'000,
      .ended_ms = 1'767'225'600'000,
      .allocation = JsonMembers::parse(
          R"({"nodes":2,"cpus":64,"gpus":4,"mem":274877906944,"req_cpus":60,"req_mem":1073741825,)"
          R"("array_job":7100,"array_task":4,"time_limit":7200,"eligible":1767218460000})"),
      .tags = JsonMembers::parse(
          R"({"partition":"gpu","qos":"normal","exit_code":"0:0","uid":1000,"gid":100,)"
          R"("nodelist":"n[01-02]","workdir":"/home/ada"})"),
      .times = {{"walltime", 3600}},
      .cpu_kwh = 1.25,
      .gpu_kwh = 0.1,
      .grams = 70.5,
      .emission_source = "rte",
      .cpu_use = 50.5,
      .memory_use = 25,
      .gpu_use = 0};
}

}  // namespace ceems::exporting
