// SPDX-License-Identifier: GPL-2.0-or-later
// Counts what cgroups read from and write to files, by mount, and what they do to names of files.
// Each program runs at the end of a function of the kernel's virtual file system, where its result
// is known. Files of the root file system, of /dev, /proc and /sys, pipes and sockets do not count.

#include "exporter/ebpf/bpf/hook.h"

#define SB_NOUSER (1UL << 31)  // super_block::s_flags: mounted by the kernel for itself
#define ENOENT 2
#define ENOTDIR 20
#define FMODE_CREATED (1 << 20)  // file::f_mode: open(2) created the file

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct ebpf_file_key);
  __type(value, struct ebpf_file_value);
} files SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 2);
  __type(key, u32);
  __type(value, struct ebpf_file_run);
} runs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 1);  // more if latencies are measured
  __type(key, struct ebpf_file_key);
  __type(value, struct ebpf_file_time);
} file_times SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, struct ebpf_file_key);
  __type(value, struct ebpf_place);
} places SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct ebpf_place);
} new_place SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 4096);
  __type(key, u64);
  __type(value, struct ebpf_name_value);
} names SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 1);  // more if latencies are measured
  __type(key, struct ebpf_latency_key);
  __type(value, struct ebpf_latency_value);
} latencies SEC(".maps");

/// Start times of the calls that are measured, by thread and operation.
struct call {
  u64 thread;
  u64 operation;
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);  // more if latencies are measured
  __type(key, struct call);
  __type(value, u64);
} started SEC(".maps");

/// Threads that are in vfs_copy_file_range().
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, u64);
  __type(value, u8);
} copying SEC(".maps");

/// Threads in whose rmdir(2) vfs_rmdir() was seen.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, u64);
  __type(value, u8);
} removing SEC(".maps");

static __always_inline struct mount* mount_of(const struct vfsmount* mount) {
  return (void*)mount - bpf_core_field_offset(struct mount, mnt);
}

/// Appends one name to the text. False if it does not fit.
static __always_inline int append(struct ebpf_place* place, u32 last_of_path, const void* name) {
  u32 at = place->length;
  if (at >= EBPF_PLACE_TEXT) {
    return 0;
  }
  place->text[at] = (char)last_of_path;
  long size = bpf_probe_read_kernel_str(&place->text[at + 1], EBPF_NAME, name);
  if (size <= 0 || size > EBPF_NAME) {
    return 0;
  }
  place->length = at + 1 + size;
  return 1;
}

static __always_inline int is_name(const char* text, const char* name, u32 size) {
#pragma unroll
  for (u32 i = 0; i < size; ++i) {
    if (text[i] != name[i]) {
      return 0;
    }
  }
  return 1;
}

/// Walks from the mount up to the root of its mount namespace.
static __always_inline void describe(const struct vfsmount* address, struct ebpf_place* place) {
  struct mount* mount = mount_of(address);
  struct dentry* entry = BPF_CORE_READ(address, mnt_root);
  u32 last_of_path = 0;
  u32 outermost = 0;
  place->length = 0;
  place->text[0] = 0;
  for (int i = 0; i < 40; ++i) {
    if (entry == BPF_CORE_READ(mount, mnt.mnt_root)) {
      struct mount* parent = BPF_CORE_READ(mount, mnt_parent);
      if (parent == mount) {
        break;
      }
      entry = BPF_CORE_READ(mount, mnt_mountpoint);
      mount = parent;
      last_of_path = 1;
      continue;
    }
    struct dentry* above = BPF_CORE_READ(entry, d_parent);
    if (above == entry) {
      break;
    }
    if (last_of_path) {
      outermost = place->length;
    }
    if (!append(place, last_of_path, BPF_CORE_READ(entry, d_name.name))) {
      break;
    }
    last_of_path = 0;
    entry = above;
  }
  place->magic = BPF_CORE_READ(address, mnt_sb, s_magic);
  bpf_probe_read_kernel_str(place->type, sizeof(place->type),
                            BPF_CORE_READ(address, mnt_sb, s_type, name));
  place->ignored = place->length == 0;
  // The mask shows the verifier that the text is not left.
  const char* name = &place->text[(outermost & (EBPF_PLACE_TEXT - 1)) + 1];
  if (is_name(name, "dev", 4) || is_name(name, "sys", 4) || is_name(name, "proc", 5)) {
    place->ignored = 1;
  }
}

/// Whether files of this mount count. Describes it when the cgroup uses it for the first time.
static __always_inline int counts(const struct ebpf_file_key* key, const struct vfsmount* mount) {
  struct ebpf_place* known = bpf_map_lookup_elem(&places, key);
  if (known) {
    return !known->ignored;
  }
  u32 zero = 0;
  struct ebpf_place* place = bpf_map_lookup_elem(&new_place, &zero);
  if (!place) {
    return 0;
  }
  describe(mount, place);
  if (bpf_map_update_elem(&places, key, place, BPF_ANY) != 0) {
    COUNT_LOST(files);
    return 0;
  }
  return !place->ignored;
}

/// The slow part of row(): makes a new row.
static __noinline int add_row(struct ebpf_file_key* key, u64 mount) {
  if (!key || !counts(key, (const struct vfsmount*)mount) || !note_cgroup(key->cgroup)) {
    return 0;
  }
  struct ebpf_file_value zero = {};
  if (bpf_map_update_elem(&files, key, &zero, BPF_NOEXIST) != 0 &&
      !bpf_map_lookup_elem(&files, key)) {
    COUNT_LOST(files);
    return 0;
  }
  return 1;
}

/// Fills in the key. False if the file does not count whatever its mount is.
static __always_inline int key_of(struct file* file, struct ebpf_file_key* key) {
  struct vfsmount* mount = file->f_path.mnt;
  if (mount->mnt_sb->s_flags & SB_NOUSER) {
    return 0;
  }
  key->cgroup = current_cgroup();
  if (key->cgroup <= 1) {
    return 0;
  }
  key->mount = (u64)mount;
  key->root = (u64)mount->mnt_root;
  return 1;
}

static __always_inline struct ebpf_file_value* row(struct ebpf_file_key* key) {
  struct ebpf_file_value* value = bpf_map_lookup_elem(&files, key);
  if (!value && add_row(key, key->mount)) {
    value = bpf_map_lookup_elem(&files, key);
  }
  return value;
}

static __always_inline void count_read(struct ebpf_file_value* value, s64 result) {
  ADD(value->reads, 1);
  if (result < 0) {
    ADD(value->read_errors, 1);
  } else {
    ADD(value->read_bytes, result);
  }
}

static __always_inline void count_write(struct ebpf_file_value* value, s64 result) {
  ADD(value->writes, 1);
  if (result < 0) {
    ADD(value->write_errors, 1);
  } else {
    ADD(value->write_bytes, result);
  }
}

// --- runs of calls
// --------------------------------------------------------------------------------

/// Whether runs can be counted without locking the bus: the kernel must not let a program interrupt
/// itself on a CPU.
static __always_inline int has_runs(void) {
  return bpf_core_field_exists(((struct bpf_prog*)0)->active);
}

/// Adds what the run has counted to `files`.
static __always_inline void end_run(const struct ebpf_file_run* run,
                                    enum ebpf_operation operation) {
  struct ebpf_file_key key = run->key;
  struct ebpf_file_value* value = bpf_map_lookup_elem(&files, &key);
  if (!value) {  // the exporter has deleted it after this run had begun
    struct ebpf_file_value zero = {};
    bpf_map_update_elem(&files, &key, &zero, BPF_NOEXIST);
    value = bpf_map_lookup_elem(&files, &key);
  }
  if (!value) {
    COUNT_LOST(files);
  } else if (operation == EBPF_READ) {
    ADD(value->reads, run->calls);
    ADD(value->read_bytes, run->bytes);
  } else {
    ADD(value->writes, run->calls);
    ADD(value->write_bytes, run->bytes);
  }
}

/// The slow part of count_in_run(): the CPU goes to another mount or cgroup. False if its calls
/// there do not count.
static __noinline int change_run(u32 operation, u64 cgroup, u64 address) {
  const struct vfsmount* mount = (const struct vfsmount*)address;
  if (cgroup <= 1) {
    return 0;
  }
  struct ebpf_file_key key = {
      .cgroup = cgroup, .mount = address, .root = (u64)BPF_CORE_READ(mount, mnt_root)};
  struct ebpf_file_run* run = bpf_map_lookup_elem(&runs, &operation);
  if (!run || !row(&key)) {
    return 0;
  }
  if (run->calls > 0) {
    end_run(run, operation);
  }
  run->begins += 1;
  asm volatile("" ::: "memory");
  run->key = key;
  run->calls = 0;
  run->bytes = 0;
  asm volatile("" ::: "memory");
  run->ends += 1;
  return 1;
}

/// Counts a read or write of the file. False if it does not count; otherwise `key` is filled in.
static __always_inline int count_in_run(struct file* file,
                                        enum ebpf_operation operation,
                                        s64 result,
                                        struct ebpf_file_key* key) {
  struct vfsmount* mount = file->f_path.mnt;
  u32 index = operation;
  struct ebpf_file_run* run = bpf_map_lookup_elem(&runs, &index);
  if (!run) {
    return 0;
  }
  // Sockets and pipes, of which there are many.
  if (run->key.mount != (u64)mount && (mount->mnt_sb->s_flags & SB_NOUSER)) {
    return 0;
  }
  u64 cgroup = current_cgroup();
  if ((run->key.mount != (u64)mount || run->key.cgroup != cgroup ||
       run->key.root != (u64)mount->mnt_root) &&
      !change_run(index, cgroup, (u64)mount)) {
    return 0;
  }
  run->calls += 1;
  if (result >= 0) {
    run->bytes += result;
  }
  if (result >= 0 && !settings.latency) {
    return 1;
  }
  *key = run->key;
  if (result < 0) {
    struct ebpf_file_value* value = row(key);
    if (value && operation == EBPF_READ) {
      ADD(value->read_errors, 1);
    } else if (value) {
      ADD(value->write_errors, 1);
    }
  }
  return 1;
}

// --- latency
// --------------------------------------------------------------------------------------

static __always_inline void begin(enum ebpf_operation operation) {
  struct call call = {.thread = bpf_get_current_pid_tgid(), .operation = operation};
  u64 now = bpf_ktime_get_ns();
  if (bpf_map_update_elem(&started, &call, &now, BPF_ANY) != 0) {
    COUNT_LOST(latencies);
  }
}

static __always_inline void count_latency(const struct ebpf_file_key* key,
                                          enum ebpf_operation operation,
                                          u64 nanoseconds) {
  struct ebpf_latency_key row_key = {
      .mount = key->mount, .root = key->root, .operation = operation};
  struct ebpf_latency_value* value = bpf_map_lookup_elem(&latencies, &row_key);
  if (!value) {
    struct ebpf_latency_value zero = {};
    bpf_map_update_elem(&latencies, &row_key, &zero, BPF_NOEXIST);
    value = bpf_map_lookup_elem(&latencies, &row_key);
    if (!value) {
      COUNT_LOST(latencies);
      return;
    }
  }
  u32 bucket = 0;
#pragma unroll
  for (int i = 0; i < EBPF_BUCKETS - 1; ++i) {
    bucket += nanoseconds >= 4096ULL << (2 * i);
  }
  if (bucket < EBPF_BUCKETS) {
    ADD(value->buckets[bucket], 1);
  }
  ADD(value->nanoseconds, nanoseconds);
}

/// Counts the time since begin(). `key` is that of a row in `files`.
static __always_inline void finish(const struct ebpf_file_key* key, enum ebpf_operation operation) {
  struct call call = {.thread = bpf_get_current_pid_tgid(), .operation = operation};
  u64* start = bpf_map_lookup_elem(&started, &call);
  if (!start) {
    return;
  }
  u64 nanoseconds = bpf_ktime_get_ns() - *start;
  struct ebpf_file_time* value = bpf_map_lookup_elem(&file_times, key);
  if (!value) {
    struct ebpf_file_time zero = {};
    bpf_map_update_elem(&file_times, key, &zero, BPF_NOEXIST);
    value = bpf_map_lookup_elem(&file_times, key);
  }
  if (!value) {
    COUNT_LOST(latencies);
    return;
  }
  switch (operation) {
    case EBPF_READ:
      ADD(value->read, nanoseconds);
      break;
    case EBPF_WRITE:
      ADD(value->write, nanoseconds);
      break;
    case EBPF_FSYNC:
      ADD(value->fsync, nanoseconds);
      ADD(value->fsyncs, 1);
      break;
  }
  count_latency(key, operation, nanoseconds);
}

/// Forgets the start of a call, whether or not it was counted.
static __always_inline void forget(enum ebpf_operation operation) {
  struct call call = {.thread = bpf_get_current_pid_tgid(), .operation = operation};
  bpf_map_delete_elem(&started, &call);
}

#define BEGIN(function, operation)                             \
  SEC("fentry/" #function)                                     \
  int begin_##function(u64* context __attribute__((unused))) { \
    begin(operation);                                          \
    return 0;                                                  \
  }

BEGIN(vfs_read, EBPF_READ)
BEGIN(vfs_readv, EBPF_READ)
BEGIN(vfs_write, EBPF_WRITE)
BEGIN(vfs_writev, EBPF_WRITE)
BEGIN(vfs_fsync_range, EBPF_FSYNC)

// --- reads and writes
// -----------------------------------------------------------------------------

static __always_inline int end_of_read(u64* context, enum ebpf_hook hook) {
  struct ebpf_file_key key = {};
  struct ebpf_file_value* value = 0;
  if (key_of((struct file*)context[0], &key) && (value = row(&key))) {
    count_read(value, result_of(context, hook));
  }
  if (settings.latency) {
    if (value) {
      finish(&key, EBPF_READ);
    }
    forget(EBPF_READ);
  }
  return 0;
}

static __always_inline int end_of_write(u64* context, enum ebpf_hook hook) {
  struct ebpf_file_key key = {};
  struct ebpf_file_value* value = 0;
  if (key_of((struct file*)context[0], &key) && (value = row(&key))) {
    count_write(value, result_of(context, hook));
  }
  if (settings.latency) {
    if (value) {
      finish(&key, EBPF_WRITE);
    }
    forget(EBPF_WRITE);
  }
  return 0;
}

/// For the hooks of most calls. Each must be the only one that changes the runs of its operation.
static __always_inline int end_of_call(u64* context,
                                       enum ebpf_hook hook,
                                       enum ebpf_operation operation) {
  struct ebpf_file_key key = {};
  int counted = count_in_run((struct file*)context[0], operation, result_of(context, hook), &key);
  if (settings.latency) {
    if (counted) {
      finish(&key, operation);
    }
    forget(operation);
  }
  return 0;
}

SEC("fexit/vfs_read")
int vfs_read(u64* context) {
  return has_runs() ? end_of_call(context, EBPF_VFS_READ, EBPF_READ)
                    : end_of_read(context, EBPF_VFS_READ);
}

SEC("fexit/vfs_readv")
int vfs_readv(u64* context) {
  return end_of_read(context, EBPF_VFS_READV);
}

SEC("fexit/vfs_write")
int vfs_write(u64* context) {
  return has_runs() ? end_of_call(context, EBPF_VFS_WRITE, EBPF_WRITE)
                    : end_of_write(context, EBPF_VFS_WRITE);
}

SEC("fexit/vfs_writev")
int vfs_writev(u64* context) {
  return end_of_write(context, EBPF_VFS_WRITEV);
}

SEC("fexit/vfs_fsync_range")
int vfs_fsync_range(u64* context) {
  struct ebpf_file_key key = {};
  if (key_of((struct file*)context[0], &key) && row(&key)) {
    finish(&key, EBPF_FSYNC);
  }
  forget(EBPF_FSYNC);
  return 0;
}

/// Data that the kernel moves from the file in slot 0 to the file in slot 2.
static __always_inline void count_copy(u64* context, s64 result) {
  struct ebpf_file_key key = {};
  struct ebpf_file_value* value = 0;
  if (key_of((struct file*)context[0], &key) && (value = row(&key))) {
    count_read(value, result);
  }
  if (key_of((struct file*)context[2], &key) && (value = row(&key))) {
    count_write(value, result);
  }
}

SEC("fentry/vfs_copy_file_range")
int begin_vfs_copy_file_range(u64* context __attribute__((unused))) {
  u64 thread = bpf_get_current_pid_tgid();
  u8 one = 1;
  bpf_map_update_elem(&copying, &thread, &one, BPF_ANY);
  return 0;
}

SEC("fexit/vfs_copy_file_range")
int vfs_copy_file_range(u64* context) {
  u64 thread = bpf_get_current_pid_tgid();
  bpf_map_delete_elem(&copying, &thread);
  count_copy(context, result_of(context, EBPF_VFS_COPY_FILE_RANGE));
  return 0;
}

/// sendfile(2). Up to Linux 6.7 vfs_copy_file_range() calls it, too.
SEC("fexit/do_splice_direct")
int do_splice_direct(u64* context) {
  u64 thread = bpf_get_current_pid_tgid();
  if (!bpf_map_lookup_elem(&copying, &thread)) {
    count_copy(context, result_of(context, EBPF_SENDFILE));
  }
  return 0;
}

// --- names of files
// -------------------------------------------------------------------------------

static __always_inline struct ebpf_name_value* names_of_task(void) {
  u64 id = current_cgroup();
  if (id <= 1) {
    return 0;
  }
  struct ebpf_name_value* value = bpf_map_lookup_elem(&names, &id);
  if (value) {
    return value;
  }
  struct ebpf_name_value zero = {};
  if (!note_cgroup(id)) {
    return 0;
  }
  bpf_map_update_elem(&names, &id, &zero, BPF_NOEXIST);
  value = bpf_map_lookup_elem(&names, &id);
  if (!value) {
    COUNT_LOST(names);
  }
  return value;
}

SEC("fexit/vfs_open")
int vfs_open(u64* context) {
  struct ebpf_name_value* value = names_of_task();
  if (!value) {
    return 0;
  }
  ADD(value->opens, 1);
  if (result_of(context, EBPF_VFS_OPEN) != 0) {
    ADD(value->open_errors, 1);
  }
  struct file* file = (struct file*)context[1];
  if (file->f_mode & FMODE_CREATED) {
    ADD(value->creates, 1);
  }
  return 0;
}

static __always_inline int count_create(u64* context, enum ebpf_hook hook) {
  struct ebpf_name_value* value = names_of_task();
  if (value) {
    ADD(value->creates, 1);
    if (result_of(context, hook) != 0) {
      ADD(value->create_errors, 1);
    }
  }
  return 0;
}

static __always_inline int count_unlink(u64* context, enum ebpf_hook hook) {
  struct ebpf_name_value* value = names_of_task();
  if (value) {
    ADD(value->unlinks, 1);
    if (result_of(context, hook) != 0) {
      ADD(value->unlink_errors, 1);
    }
  }
  return 0;
}

SEC("fexit/vfs_create")
int vfs_create(u64* context) {
  return count_create(context, EBPF_VFS_CREATE);
}

SEC("fexit/vfs_mkdir")
int vfs_mkdir(u64* context) {
  return count_create(context, EBPF_VFS_MKDIR);
}

SEC("fexit/vfs_unlink")
int vfs_unlink(u64* context) {
  return count_unlink(context, EBPF_VFS_UNLINK);
}

SEC("fexit/vfs_rmdir")
int vfs_rmdir(u64* context) {
  u64 thread = bpf_get_current_pid_tgid();
  u8 one = 1;
  bpf_map_update_elem(&removing, &thread, &one, BPF_ANY);
  return count_unlink(context, EBPF_VFS_RMDIR);
}

/// Where the compiler has put vfs_rmdir() into its caller (Linux 5.10), only the caller can be
/// seen. A directory that is not found does not get as far as vfs_rmdir().
SEC("fexit/do_rmdir")
int do_rmdir(u64* context) {
  u64 thread = bpf_get_current_pid_tgid();
  s64 result = result_of(context, EBPF_DO_RMDIR);
  if (bpf_map_delete_elem(&removing, &thread) != 0 && result != -ENOENT && result != -ENOTDIR) {
    count_unlink(context, EBPF_DO_RMDIR);
  }
  return 0;
}
