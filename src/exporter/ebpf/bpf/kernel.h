// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

// The few fields of kernel structures that the programs read. Their offsets are filled in from the
// kernel's type information when the programs are loaded (CO-RE), so one object fits every kernel.

#include "exporter/ebpf/layout.h"

typedef ebpf_u8 u8;
typedef ebpf_u16 u16;
typedef ebpf_u32 u32;
typedef ebpf_u64 u64;
typedef int s32;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

enum bpf_map_type {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PROG_ARRAY = 3,
  BPF_MAP_TYPE_PERCPU_HASH = 5,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_LRU_HASH = 9,
  BPF_MAP_TYPE_LPM_TRIE = 11,
  BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
  BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
  const unsigned char* name;
};
struct file_system_type {
  const char* name;
};
struct super_block {
  unsigned long s_flags;
  unsigned long s_magic;
  struct file_system_type* s_type;
};
struct dentry {
  struct dentry* d_parent;
  struct qstr d_name;
};
struct vfsmount {
  struct dentry* mnt_root;
  struct super_block* mnt_sb;
};
struct mount {
  struct mount* mnt_parent;
  struct dentry* mnt_mountpoint;
  struct vfsmount mnt;
};
struct path {
  struct vfsmount* mnt;
};
struct file {
  struct path f_path;
  unsigned int f_mode;
};

struct kernfs_node {
  u64 id;
};
struct cgroup;
struct cgroup_subsys_state {
  struct cgroup* cgroup;
  struct cgroup_subsys_state* parent;
};
struct cgroup {
  struct cgroup_subsys_state self;
  struct kernfs_node* kn;
};
struct css_set {
  struct cgroup* dfl_cgrp;
  struct cgroup_subsys_state* subsys[1];
};
struct ns_common {
  unsigned int inum;
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid {
  int nr;
  struct pid_namespace* ns;
};
struct pid {
  unsigned int level;
  struct upid numbers[1];
};
struct mm_struct;
struct thread_struct {
  unsigned long fsbase;  // x86-64
};
struct task_struct {
  struct task_struct* group_leader;
  struct pid* thread_pid;
  u64 start_boottime;
  u64 self_exec_id;
  struct css_set* cgroups;
  struct mm_struct* mm;
  char comm[16];
  void* stack;
  struct thread_struct thread;
};

struct in6_addr {
  u8 bytes[16];
};
struct sock_common {
  __be32 skc_daddr;
  unsigned short skc_family;
  struct in6_addr skc_v6_daddr;
};
struct sock {
  struct sock_common __sk_common;
};
struct tcp_sock {
  u32 segs_in;
  u32 segs_out;
  u32 total_retrans;
  u64 bytes_received;
  u64 bytes_sent;
  u64 bytes_retrans;
};
struct msghdr {
  void* msg_name;
};

struct bpf_prog {
  void* active;  // since Linux 5.12
};
struct seq_file;
struct bpf_iter_meta {
  struct seq_file* seq;
};
struct bpf_iter__bpf_map_elem {
  struct bpf_iter_meta* meta;
  void* key;
  void* value;
};

#pragma clang attribute pop
