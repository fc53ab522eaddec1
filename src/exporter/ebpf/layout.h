// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#pragma once

// What the programs in the kernel (bpf/) and the exporter share: settings, keys and values of the
// tables. C, so that both can include it. All values are counts since the programs were attached.

// NOLINTBEGIN(readability-identifier-naming): the names follow C

#ifdef __cplusplus
#include <cstdint>
namespace ceems::exporter::ebpf {
using ebpf_u8 = std::uint8_t;
using ebpf_u16 = std::uint16_t;
using ebpf_u32 = std::uint32_t;
using ebpf_u64 = std::uint64_t;
extern "C" {
#else
typedef unsigned char ebpf_u8;
typedef unsigned short ebpf_u16;
typedef unsigned int ebpf_u32;
typedef unsigned long long ebpf_u64;
#endif

/// Kernel functions that are hooked. The order is that of `hooks` in struct ebpf_settings.
enum ebpf_hook {
  EBPF_VFS_READ,
  EBPF_VFS_READV,
  EBPF_VFS_WRITE,
  EBPF_VFS_WRITEV,
  EBPF_VFS_COPY_FILE_RANGE,
  EBPF_SENDFILE,
  EBPF_VFS_OPEN,
  EBPF_VFS_CREATE,
  EBPF_VFS_MKDIR,
  EBPF_VFS_UNLINK,
  EBPF_VFS_RMDIR,
  EBPF_DO_RMDIR,
  EBPF_VFS_FSYNC,
  EBPF_TCP_SENDMSG,
  EBPF_TCP_RECVMSG,
  EBPF_TCP_ACCEPT,
  EBPF_TCP_CONNECT,
  EBPF_TCP_CONNECT6,
  EBPF_TCP_DISCONNECT,
  EBPF_TCP_DESTROY,
  EBPF_UDP_SENDMSG,
  EBPF_UDP_RECVMSG,
  EBPF_UDP6_SENDMSG,
  EBPF_UDP6_RECVMSG,
  EBPF_HOOKS
};

/// What a kernel function returns.
enum ebpf_result { EBPF_RESULT_INT, EBPF_RESULT_LONG, EBPF_RESULT_POINTER };

/// The prototype of a hooked function, as the kernel's type information tells it.
struct ebpf_prototype {
  ebpf_u8 arguments;   // the result is in the slot after the last argument
  ebpf_u8 result;      // enum ebpf_result
  ebpf_u8 flags_slot;  // position of the argument `flags`; 255 if it has none
  ebpf_u8 unused;
};

/// Constants of the programs. The verifier removes what they make unreachable.
struct ebpf_settings {
  ebpf_u32 legacy;      // 1: cgroup v1; ids are from the hierarchy of `controller`
  ebpf_u32 controller;  // index of the v1 controller in css_set::subsys
  ebpf_u32 latency;     // 1: measure how long reads, writes and fsyncs take
  ebpf_u32 classes;     // 1: look up the class of the remote address in `networks`
  struct ebpf_prototype hooks[EBPF_HOOKS];
};

enum { EBPF_ANCESTORS = 12 };

/// Table `cgroups`, by id: the ids of the cgroups above it, the nearest first; 0 beyond the root.
struct ebpf_cgroup {
  ebpf_u64 ancestors[EBPF_ANCESTORS];
};

/// Key of `files`, `file_times` and `places`: files of one mount used by one cgroup. The last two
/// are addresses in the kernel, which serve only to tell mounts apart.
struct ebpf_file_key {
  ebpf_u64 cgroup;
  ebpf_u64 mount;
  ebpf_u64 root;
};

struct ebpf_file_value {
  ebpf_u64 read_bytes;
  ebpf_u64 reads;
  ebpf_u64 read_errors;
  ebpf_u64 write_bytes;
  ebpf_u64 writes;
  ebpf_u64 write_errors;
};

/// Table `runs`, by operation (EBPF_READ or EBPF_WRITE), for each CPU: the calls since the CPU went
/// to this mount for this cgroup. They are added to `files` when it goes to another one, so that a
/// call like the one before it costs no look-up by key. A run that is replaced while it is read
/// has different `ends` and `begins`.
struct ebpf_file_run {
  ebpf_u64 ends;  // number of runs that have ended; written last
  struct ebpf_file_key key;
  ebpf_u64 calls;
  ebpf_u64 bytes;
  ebpf_u64 begins;  // written first
};

/// Time in calls, in nanoseconds, of one cgroup on one mount.
struct ebpf_file_time {
  ebpf_u64 read;
  ebpf_u64 write;
  ebpf_u64 fsync;
  ebpf_u64 fsyncs;
};

enum { EBPF_PLACE_TEXT = 256, EBPF_NAME = 64 };

/// Where a mount is in the tree of directories: names from the mount up to the root, each as a byte
/// (1: the last name of a path on which something is mounted, 0: a directory above it) and a text
/// that ends with 0, at most EBPF_NAME bytes of it.
struct ebpf_place {
  ebpf_u32 ignored;  // 1: the root file system and what the kernel mounts for itself
  ebpf_u32 length;   // of the text
  ebpf_u64 magic;    // of the file system, as in statfs(2)
  char type[16];     // name of the file system, ends with 0
  char text[EBPF_PLACE_TEXT + EBPF_NAME + 1 + 7];
};

/// Table `names`, by cgroup id: operations on names of files.
struct ebpf_name_value {
  ebpf_u64 opens;
  ebpf_u64 open_errors;
  ebpf_u64 creates;
  ebpf_u64 create_errors;
  ebpf_u64 unlinks;
  ebpf_u64 unlink_errors;
};

enum ebpf_operation { EBPF_READ, EBPF_WRITE, EBPF_FSYNC };

enum { EBPF_BUCKETS = 12 };

/// Key of `latencies`.
struct ebpf_latency_key {
  ebpf_u64 mount;
  ebpf_u64 root;
  ebpf_u32 operation;  // enum ebpf_operation
  ebpf_u32 unused;
};

/// Bucket i counts calls of less than 4096 << 2i nanoseconds that are in none before it. The last
/// one has no limit.
struct ebpf_latency_value {
  ebpf_u64 buckets[EBPF_BUCKETS];
  ebpf_u64 nanoseconds;
};

/// Key of `traffic`.
struct ebpf_traffic_key {
  ebpf_u64 cgroup;
  ebpf_u16 protocol;       // 6 or 17
  ebpf_u16 family;         // 2 or 10, of the socket
  ebpf_u32 network_class;  // a value of `networks`; 0 if in none of them
};

struct ebpf_traffic_value {
  ebpf_u64 ingress_packets;
  ebpf_u64 ingress_bytes;
  ebpf_u64 ingress_errors;
  ebpf_u64 egress_packets;
  ebpf_u64 egress_bytes;
  ebpf_u64 egress_errors;
  ebpf_u64 retrans_packets;
  ebpf_u64 retrans_bytes;
};

/// Counters of a TCP connection (struct tcp_sock).
struct ebpf_tcp_counters {
  ebpf_u64 bytes_received;
  ebpf_u64 bytes_sent;
  ebpf_u64 bytes_retrans;
  ebpf_u32 segs_in;
  ebpf_u32 segs_out;
  ebpf_u32 total_retrans;
  ebpf_u32 unused;
};

/// Table `connections`, by address of the socket: who uses it, and its counters when that began.
struct ebpf_connection {
  ebpf_u64 cgroup;
  struct ebpf_tcp_counters begin;
};

/// What the iterator over `connections` writes for each: the traffic of its user so far.
struct ebpf_open_connection {
  ebpf_u64 socket;
  struct ebpf_traffic_key key;
  struct ebpf_traffic_value value;
};

/// Key of the trie `networks`: an IPv6 network, or an IPv4 network below ::ffff:0:0/96.
struct ebpf_network {
  ebpf_u32 prefix;
  ebpf_u8 address[16];
};

/// Table `lost`: events that are missing in the counters because a table was full.
struct ebpf_lost {
  ebpf_u64 cgroups;
  ebpf_u64 files;
  ebpf_u64 names;
  ebpf_u64 latencies;
  ebpf_u64 traffic;
  ebpf_u64 connections;
};

#ifdef __cplusplus
}  // extern "C"
}  // namespace ceems::exporter::ebpf
#endif

// NOLINTEND(readability-identifier-naming)
