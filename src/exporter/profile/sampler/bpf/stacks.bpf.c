// SPDX-License-Identifier: GPL-2.0-or-later (see src/exporter/ebpf/bpf/README.md)
// Takes the stack of what runs on a CPU, at every tick of a perf event. User stacks are unwound
// with the tables that the exporter made of the binaries' call frame information, so they need no
// frame pointers. Of Python programs, the interpreter's own list of frames is read as well. x86-64.

// clang-format off: the helpers need the types of kernel.h
#include "exporter/ebpf/bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "exporter/ebpf/bpf/task_cgroup.h"
// clang-format on

#include "exporter/profile/sampler/layout.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct stack_settings settings SEC(".rodata.settings") = {};

enum {
  CFA_STOP,
  CFA_RSP,
  CFA_RBP,
  CFA_PLT,
  CFA_SIGNAL,
  CFA_FRAME_POINTER,
  CFA_RBP_DEREF,
  CFA_RSP_DEREF_PLUS_8,
};
enum { RBP_SAME, RBP_AT_CFA, RBP_UNDEFINED, RBP_AT_RBP, RBP_AT_RSP };

#define BPF_F_INNER_MAP (1U << 12)
#define BPF_RB_NO_WAKEUP 1
#define THREAD_SIZE 16384
#define MAX_MAPPINGS 32768
#define MAX_PID_LEVELS 8
#define ADDRESSES_MASK 1023
#define FIRST_OWNER_OF_INTERPRETER 3
#define NO_FRAME (~0ULL)

enum { PROGRAM_UNWIND_USER, PROGRAM_READ_PYTHON, PROGRAMS };

/// The registers of user mode, as the kernel saves them and perf events show them.
struct registers {
  u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp,
      ss;
};

/// A sample while it is unwound.
struct unwinding {
  struct stack_sample sample;
  u64 ip;
  u64 sp;
  u64 bp;
  u32 first;  // of the process in `mappings`
  u32 count;
  u32 leaf;  // 1: ip is where the thread is, 0: ip is a return address
  struct stack_python python;
  u64 stack[128];    // stack pointers of the user frames
  u64 python_frame;  // the next one; NO_FRAME before the thread was looked for
  u64 python_thread;
  u64 python_interpreter;  // whose threads come next
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct unwinding);
} scratch SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} samples SEC(".maps");

/// Number of samples that did not fit.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, u64);
} lost_samples SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, u32);
  __type(value, u32);
} targets SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, u64);
  __type(value, u32);
} units SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, u32);
  __type(value, struct stack_process);
} processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, MAX_MAPPINGS);
  __type(key, u32);
  __type(value, struct stack_mapping);
} mappings SEC(".maps");

struct rows {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_INNER_MAP);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(u32));
  __uint(value_size, sizeof(struct stack_row));
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1024);
  __type(key, u32);
  __array(values, struct rows);
} tables SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, PROGRAMS);
  __type(key, u32);
  __type(value, u32);
} programs SEC(".maps");

// --- who is sampled
// -------------------------------------------------------------------------------

/// The number of the process in the exporter's pid namespace; 0 if it is not in it.
static __always_inline u32 process_of(struct task_struct* leader) {
  struct pid* pid = BPF_CORE_READ(leader, thread_pid);
  u32 level = BPF_CORE_READ(pid, level);
  const void* numbers = (const void*)pid + bpf_core_field_offset(pid->numbers);
  for (u32 i = 0; i < MAX_PID_LEVELS; ++i) {
    if (i > level) {
      break;
    }
    struct upid number = {};
    bpf_probe_read_kernel(&number, sizeof(number), numbers + i * sizeof(number));
    if (BPF_CORE_READ(number.ns, ns.inum) == settings.pid_namespace) {
      return number.nr;
    }
  }
  return 0;
}

/// The number of the cgroup of the unit in or below which the task is; 0 if it is in none.
static __always_inline u64 unit_of(struct task_struct* task) {
  struct cgroup_subsys_state* state = state_of(task, settings.legacy, settings.controller);
  for (int i = 0; i < EBPF_ANCESTORS && state; ++i) {
    u64 id = BPF_CORE_READ(state, cgroup, kn, id);
    if (bpf_map_lookup_elem(&units, &id)) {
      return id;
    }
    state = BPF_CORE_READ(state, parent);
  }
  return 0;
}

// --- unwinding
// ------------------------------------------------------------------------------------

static __always_inline const struct stack_mapping* find_mapping(const struct unwinding* u, u64 ip) {
  u32 low = u->first;
  u32 high = u->first + u->count;
  for (int i = 0; i < 14 && low < high; ++i) {
    u32 middle = low + ((high - low) >> 1);
    const struct stack_mapping* mapping = bpf_map_lookup_elem(&mappings, &middle);
    if (!mapping) {
      return 0;
    }
    if (ip < mapping->begin) {
      high = middle;
    } else if (ip >= mapping->end) {
      low = middle + 1;
    } else {
      return mapping;
    }
  }
  return 0;
}

/// The last row at or before `pc`.
static __always_inline const struct stack_row* find_row(void* table, u32 rows, u32 pc) {
  u32 low = 0;
  u32 high = rows;
  for (int i = 0; i < 20 && low < high; ++i) {
    u32 middle = low + ((high - low) >> 1);
    const struct stack_row* row = bpf_map_lookup_elem(table, &middle);
    if (!row) {
      return 0;
    }
    if (row->pc <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  u32 at = low - 1;
  return low ? bpf_map_lookup_elem(table, &at) : 0;
}

static __always_inline int read_user(u64* value, u64 address) {
  return bpf_probe_read_user(value, sizeof(*value), (const void*)address) == 0;
}

/// Goes from a frame to its caller's by rbp.
static __always_inline int follow_frame_pointer(struct unwinding* u) {
  u64 bp = u->bp;
  u64 next[2] = {};
  if (bp < u->sp || bpf_probe_read_user(next, sizeof(next), (const void*)bp) != 0) {
    return 0;
  }
  u->sp = bp + 16;
  u->bp = next[0];
  u->ip = next[1];
  return 1;
}

/// Goes from a frame to its caller's as the rule says.
static __always_inline int follow_rule(struct unwinding* u, const struct stack_rule* rule) {
  u64 cfa = 0;
  u64 ip = 0;
  u64 bp = u->bp;
  s64 offset = rule->cfa_offset;
  switch (rule->cfa) {
    case CFA_RSP:
      cfa = u->sp + offset;
      break;
    case CFA_RBP:
      cfa = u->bp + offset;
      break;
    case CFA_PLT:
      cfa = u->sp + 8 + ((u->ip & 15) >= (u64)offset ? 8 : 0);
      break;
    case CFA_SIGNAL:
      if (!read_user(&cfa, u->sp + offset) || !read_user(&ip, u->sp + offset + 8)) {
        return 0;
      }
      break;
    case CFA_FRAME_POINTER:
      return follow_frame_pointer(u);
    case CFA_RBP_DEREF:
      if (!read_user(&cfa, u->bp + offset)) {
        return 0;
      }
      break;
    case CFA_RSP_DEREF_PLUS_8:
      if (!read_user(&cfa, u->sp + offset)) {
        return 0;
      }
      cfa += 8;
      break;
    default:
      return 0;
  }
  if (rule->cfa != CFA_SIGNAL && !read_user(&ip, cfa - 8)) {
    return 0;
  }
  s64 saved = rule->rbp_offset;
  int good = 1;
  switch (rule->rbp) {
    case RBP_AT_CFA:
      good = read_user(&bp, cfa + saved);
      break;
    case RBP_AT_RBP:
      good = read_user(&bp, u->bp + saved);
      break;
    case RBP_AT_RSP:
      good = read_user(&bp, u->sp + saved);
      break;
  }
  if (!good || (cfa <= u->sp && rule->cfa != CFA_SIGNAL)) {
    return 0;
  }
  u->leaf = rule->cfa == CFA_SIGNAL;
  u->sp = cfa;
  u->bp = bp;
  u->ip = ip;
  return 1;
}

/// Notes the frame and goes to its caller's. False at the end.
static __always_inline int step(struct unwinding* u) {
  u32 frames = u->sample.user_frames;
  if (frames >= STACK_USER_FRAMES) {
    u->sample.end = STACK_END_TOO_DEEP;
    return 0;
  }
  u64 ip = u->ip;
  u->sample.addresses[(u->sample.kernel_frames + frames) & ADDRESSES_MASK] = ip;
  u->sample.user_frames = frames + 1;
  u->stack[frames & 127] = u->sp;
  // A return address may be behind the function that contains the call.
  u64 inside = u->leaf ? ip : ip - 1;
  const struct stack_mapping* mapping = find_mapping(u, inside);
  u->sample.end = STACK_END_NO_RULE;
  if (!mapping) {
    u->sample.unknown = 1;
    u->sample.end = STACK_END_UNKNOWN_CODE;
  }
  if (!mapping || mapping->rows == 0) {
    u->leaf = 0;
    return follow_frame_pointer(u) && u->ip;
  }
  u32 index = mapping->table;
  u32 rows = mapping->rows;
  u32 pc = (u32)(inside - mapping->bias);
  void* table = bpf_map_lookup_elem(&tables, &index);
  const struct stack_row* row = table ? find_row(table, rows, pc) : 0;
  if (!row) {
    return 0;
  }
  u32 cell = row->rule;
  const struct stack_rule* rule = bpf_map_lookup_elem(table, &cell);
  if (!rule) {
    return 0;
  }
  if (rule->cfa == CFA_STOP) {
    u->sample.end = rule->rbp_offset == 0 ? STACK_END_OUTERMOST : STACK_END_NO_RULE;
    return 0;
  }
  u->leaf = 0;
  if (!follow_rule(u, rule)) {
    return 0;
  }
  if (u->ip == 0) {
    u->sample.end = STACK_END_OUTERMOST;
    return 0;
  }
  return 1;
}

static __always_inline void send(struct unwinding* u) {
  u64 numbers = u->sample.kernel_frames + u->sample.user_frames;
  if (u->sample.python_frames > 0) {
    numbers += 2 * u->sample.python_frames + u->sample.user_frames;
  }
  // The mask shows the verifier that the sample is not left.
  u64 size = __builtin_offsetof(struct stack_sample, addresses) + 8 * (numbers & ADDRESSES_MASK);
  if (bpf_ringbuf_output(&samples, &u->sample, size, BPF_RB_NO_WAKEUP) != 0) {
    u32 zero = 0;
    u64* lost = bpf_map_lookup_elem(&lost_samples, &zero);
    if (lost) {
      __sync_fetch_and_add(lost, 1);
    }
  }
}

// --- Python
// ---------------------------------------------------------------------------------------

/// Goes to the next thread of the program, or of its next interpreter. False at the end.
static __always_inline int next_python_thread(struct unwinding* u) {
  if (u->python_thread) {
    return read_user(&u->python_thread, u->python_thread + u->python.thread_next);
  }
  u64 interpreter = u->python_interpreter;
  return interpreter && read_user(&u->python_thread, interpreter + u->python.interpreter_threads) &&
         read_user(&u->python_interpreter, interpreter + u->python.interpreter_next);
}

/// Finds the innermost frame of the thread that runs now. A thread is known by its identifier in
/// the C library, which is the base of its thread-local storage.
static __always_inline void find_python_frame(struct unwinding* u) {
  struct task_struct* task = (void*)bpf_get_current_task();
  u64 self = BPF_CORE_READ(task, thread.fsbase);
  u->python_frame = 0;
  u->python_thread = 0;
  if (!self || !read_user(&u->python_interpreter, u->python.interpreters)) {
    return;
  }
  // What changes is in the map, not in registers, where the verifier would follow every path.
  for (int i = 0; i < STACK_PYTHON_THREADS; ++i) {
    u64 id = 0;
    if (!next_python_thread(u)) {
      return;
    }
    if (u->python_thread && read_user(&id, u->python_thread + u->python.thread_id) && id == self) {
      break;
    }
  }
  u64 frame = 0;
  u64 id = 0;
  u64 thread = u->python_thread;
  if (!thread || !read_user(&id, thread + u->python.thread_id) || id != self ||
      !read_user(&frame, thread + u->python.thread_frame)) {
    return;
  }
  if (u->python.holder && frame && !read_user(&frame, frame + u->python.holder_frame)) {
    return;
  }
  u->python_frame = frame;
}

static __always_inline int add_python(struct unwinding* u, u64 first, u64 second) {
  u32 frames = u->sample.python_frames;
  if (frames >= STACK_PYTHON_FRAMES) {
    return 0;
  }
  u32 at = u->sample.kernel_frames + u->sample.user_frames + 2 * frames;
  u->sample.addresses[at & ADDRESSES_MASK] = first;
  u->sample.addresses[(at + 1) & ADDRESSES_MASK] = second;
  u->sample.python_frames = frames + 1;
  return 1;
}

/// Notes the frame and goes to its caller's. False at the end.
static __always_inline int step_python(struct unwinding* u) {
  u64 frame = u->python_frame;
  const struct stack_python* python = &u->python;
  if (!frame) {
    u->sample.python_cut = 0;
    return 0;
  }
  u8 flag = 0;
  if (python->entry != STACK_PYTHON_EVERY &&
      bpf_probe_read_user(&flag, 1, (const void*)(frame + python->frame_entry)) != 0) {
    return 0;
  }
  if (python->entry == STACK_PYTHON_OWNER && flag >= FIRST_OWNER_OF_INTERPRETER) {
    if (!add_python(u, 1, frame)) {
      return 0;
    }
  } else {
    u64 code = 0;
    u64 name = 0;
    u32 line = 0;
    if (!read_user(&code, frame + python->frame_code)) {
      return 0;
    }
    code &= ~7ULL;  // from 3.14 on, with tags
    if (!read_user(&name, code + python->code_name) ||
        bpf_probe_read_user(&line, sizeof(line), (const void*)(code + python->code_first_line))) {
      return 0;
    }
    u64 entry = python->entry == STACK_PYTHON_EVERY || (python->entry == STACK_PYTHON_FLAG && flag);
    // The interpreter's own code has no name.
    if (name && !add_python(u, code | entry, (u64)line << 32 | (u32)name)) {
      return 0;
    }
  }
  return read_user(&u->python_frame, frame + python->frame_previous);
}

/// Adds the stack pointers of the user frames.
static __always_inline void add_stack(struct unwinding* u) {
  u32 at = u->sample.kernel_frames + u->sample.user_frames + 2 * u->sample.python_frames;
  for (u32 i = 0; i < STACK_USER_FRAMES && i < u->sample.user_frames; ++i) {
    u->sample.addresses[(at + i) & ADDRESSES_MASK] = u->stack[i & 127];
  }
}

/// Adds the frames of Python's interpreter to the sample, and calls itself for more.
SEC("perf_event")
int read_python(void* context) {
  u32 zero = 0;
  struct unwinding* u = bpf_map_lookup_elem(&scratch, &zero);
  if (!u) {
    return 0;
  }
  if (u->python_frame == NO_FRAME) {
    find_python_frame(u);
    u->sample.python_cut = 1;
  }
  int more = 1;
  for (int i = 0; i < STACK_PYTHON_FRAMES_PER_CALL && more; ++i) {
    more = step_python(u);
  }
  if (more) {
    bpf_tail_call(context, &programs, PROGRAM_READ_PYTHON);
  }
  add_stack(u);
  send(u);
  return 0;
}

static __always_inline void finish(void* context, struct unwinding* u) {
  if (u->python.interpreters) {
    bpf_tail_call(context, &programs, PROGRAM_READ_PYTHON);
  }
  send(u);
}

// --- the programs
// ---------------------------------------------------------------------------------

/// Unwinds some frames, and calls itself for more.
SEC("perf_event")
int unwind_user(void* context) {
  u32 zero = 0;
  struct unwinding* u = bpf_map_lookup_elem(&scratch, &zero);
  if (!u) {
    return 0;
  }
  int more = 1;
  for (int i = 0; i < STACK_FRAMES_PER_CALL && more; ++i) {
    more = step(u);
  }
  if (more) {
    bpf_tail_call(context, &programs, PROGRAM_UNWIND_USER);
  }
  finish(context, u);
  return 0;
}

/// The registers with which the task entered the kernel.
static __always_inline int read_saved_registers(struct task_struct* task, struct registers* saved) {
  u64 stack = (u64)BPF_CORE_READ(task, stack);
  for (u64 padding = 0; padding <= 16; padding += 16) {
    u64 at = stack + THREAD_SIZE - padding - sizeof(*saved);
    if (bpf_probe_read_kernel(saved, sizeof(*saved), (const void*)at) == 0 &&
        (saved->cs & 3) == 3) {
      return 1;
    }
  }
  return 0;
}

SEC("perf_event")
int take_sample(struct registers* context) {
  u64 id = bpf_get_current_pid_tgid();
  u32 pid = id >> 32;
  if (pid == 0) {
    return 0;
  }
  struct task_struct* task = (void*)bpf_get_current_task();
  struct task_struct* leader = BPF_CORE_READ(task, group_leader);
  if (settings.pid_namespace && !(pid = process_of(leader))) {
    return 0;
  }
  u64 unit = unit_of(task);
  if (!(settings.by_unit && unit) && !bpf_map_lookup_elem(&targets, &pid)) {
    return 0;
  }
  if (!BPF_CORE_READ(task, mm)) {
    return 0;  // a thread of the kernel
  }
  u32 zero = 0;
  struct unwinding* u = bpf_map_lookup_elem(&scratch, &zero);
  if (!u) {
    return 0;
  }
  u->sample.image.started = BPF_CORE_READ(leader, start_boottime);
  u->sample.image.execs = BPF_CORE_READ(leader, self_exec_id);
  u->sample.unit = unit;
  u->sample.pid = pid;
  u->sample.end = STACK_END_OUTERMOST;
  u->sample.unknown = 0;
  u->sample.user_frames = 0;
  u->sample.kernel_frames = 0;
  u->sample.python_frames = 0;
  u->sample.python_cut = 0;
  u->sample.unused = 0;
  u->python.interpreters = 0;
  u->python_frame = NO_FRAME;
  // Of the process: threads may have names of their own.
  bpf_core_read(u->sample.comm, sizeof(u->sample.comm), &leader->comm);
  struct registers saved;
  u64 ip = context->ip;
  u64 sp = context->sp;
  u64 bp = context->bp;
  int user = (context->cs & 3) == 3;
  if (!user) {
    if (settings.kernel) {
      long bytes = bpf_get_stack(context, u->sample.addresses, 8 * STACK_KERNEL_FRAMES, 0);
      u->sample.kernel_frames = bytes > 0 ? ((u64)bytes >> 3) & 127 : 0;
    }
    user = read_saved_registers(task, &saved);
    ip = saved.ip;
    sp = saved.sp;
    bp = saved.bp;
  }
  if (!user || !settings.user) {
    send(u);
    return 0;
  }
  u->ip = ip;
  u->sp = sp;
  u->bp = bp;
  u->leaf = 1;
  u->first = 0;
  u->count = 0;
  struct stack_process* process = bpf_map_lookup_elem(&processes, &pid);
  if (process &&
      (process->image.started == 0 || (process->image.started == u->sample.image.started &&
                                       process->image.execs == u->sample.image.execs))) {
    u->first = process->first;
    u->count = process->count;
    u->python = process->python;
  } else {
    u->sample.unknown = 1;
  }
  bpf_tail_call(context, &programs, PROGRAM_UNWIND_USER);
  finish(context, u);
  return 0;
}
