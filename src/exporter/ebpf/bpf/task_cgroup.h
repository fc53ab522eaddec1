// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

// Which cgroup a task is in. Needs the types of kernel.h and the helpers of libbpf.

/// The task's cgroup in the hierarchy that units are in: with cgroup v1 that of the controller with
/// this index in css_set::subsys. May be null.
static __always_inline struct cgroup_subsys_state* state_of(struct task_struct* task,
                                                            u32 legacy,
                                                            u32 controller) {
  struct css_set* set = BPF_CORE_READ(task, cgroups);
  if (!legacy) {
    struct cgroup* cgroup = BPF_CORE_READ(set, dfl_cgrp);
    return cgroup ? (void*)cgroup + bpf_core_field_offset(cgroup->self) : 0;
  }
  struct cgroup_subsys_state* state = 0;
  u64 offset = bpf_core_field_offset(set->subsys) + 8 * (u64)(controller & 31);
  bpf_probe_read_kernel(&state, sizeof(state), (void*)set + offset);
  return state;
}
