// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

// What the programs of files and of the network share.

// clang-format off: the helpers need the types of kernel.h
#include "exporter/ebpf/bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "exporter/ebpf/bpf/task_cgroup.h"
// clang-format on

char LICENSE[] SEC("license") = "GPL";

// In a section of its own, so that the exporter can fill it in.
const volatile struct ebpf_settings settings SEC(".rodata.settings") = {};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, u64);
  __type(value, struct ebpf_cgroup);
} cgroups SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct ebpf_lost);
} lost SEC(".maps");

#define ADD(counter, amount) __sync_fetch_and_add(&(counter), (amount))

#define COUNT_LOST(field)                                      \
  do {                                                         \
    u32 zero_ = 0;                                             \
    struct ebpf_lost* l_ = bpf_map_lookup_elem(&lost, &zero_); \
    if (l_) {                                                  \
      ADD(l_->field, 1);                                       \
    }                                                          \
  } while (0)

/// The slot of the context at a position that is only known when the program is loaded. Each load
/// has a constant offset, because the verifier wants that, and `position` is a constant for it, so
/// that only one of them remains.
static __always_inline u64 slot(const void* context, u32 position) {
  u64 value = 0;
#define CASE(n)                                                                 \
  case n:                                                                       \
    asm volatile("%0 = *(u64*)(%1 + 8 * " #n ")" : "=r"(value) : "r"(context)); \
    break
  switch (position) {
    CASE(0);
    CASE(1);
    CASE(2);
    CASE(3);
    CASE(4);
    CASE(5);
    CASE(6);
    CASE(7);
  }
#undef CASE
  return value;
}

/// The result of the hooked function: a count or 0, or a negative error.
static __always_inline s64 result_of(const void* context, enum ebpf_hook hook) {
  u64 value = slot(context, settings.hooks[hook].arguments);
  switch (settings.hooks[hook].result) {
    case EBPF_RESULT_INT:
      return (s32)value;
    case EBPF_RESULT_POINTER:
      return (s64)value < 0 && (s64)value >= -4095 ? (s64)value : 0;
    default:
      return (s64)value;
  }
}

/// The current task's cgroup in the hierarchy that units are in, or null.
static __always_inline struct cgroup_subsys_state* current_state(void) {
  return state_of((void*)bpf_get_current_task(), settings.legacy, settings.controller);
}

/// The id of the cgroup of the current task. 0 and 1 (the root) are of no unit.
static __always_inline u64 current_cgroup(void) {
  if (!settings.legacy) {
    return bpf_get_current_cgroup_id();
  }
  struct cgroup_subsys_state* state = current_state();
  return state ? BPF_CORE_READ(state, cgroup, kn, id) : 0;
}

/// Makes sure that `cgroups` has the current task's cgroup, whose id is `id`. False if it is full.
static __always_inline int note_cgroup(u64 id) {
  if (bpf_map_lookup_elem(&cgroups, &id)) {
    return 1;
  }
  struct ebpf_cgroup entry = {};
  struct cgroup_subsys_state* state = current_state();
#pragma unroll
  for (int i = 0; i < EBPF_ANCESTORS; ++i) {
    state = state ? BPF_CORE_READ(state, parent) : 0;
    entry.ancestors[i] = state ? BPF_CORE_READ(state, cgroup, kn, id) : 0;
  }
  if (bpf_map_update_elem(&cgroups, &id, &entry, BPF_ANY) != 0) {
    COUNT_LOST(cgroups);
    return 0;
  }
  return 1;
}
