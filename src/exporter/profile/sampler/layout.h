// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#pragma once

// What the sampling program in the kernel (bpf/stacks.bpf.c) and the exporter share. C, so that
// both can include it.

// NOLINTBEGIN(readability-identifier-naming): the names follow C

#ifdef __cplusplus
#include <cstdint>
namespace ceems::exporter::profile {
extern "C" {
using stack_u8 = std::uint8_t;
using stack_s16 = std::int16_t;
using stack_s32 = std::int32_t;
using stack_u32 = std::uint32_t;
using stack_u64 = std::uint64_t;
#else
typedef unsigned char stack_u8;
typedef short stack_s16;
typedef int stack_s32;
typedef unsigned int stack_u32;
typedef unsigned long long stack_u64;
#endif

enum {
  STACK_USER_FRAMES = 127,
  STACK_KERNEL_FRAMES = 64,
  STACK_FRAMES_PER_CALL = 6,  ///< of the unwinder, which calls itself for more
  STACK_PYTHON_FRAMES = 128,
  STACK_PYTHON_FRAMES_PER_CALL = 32,  ///< likewise
  STACK_PYTHON_THREADS = 128,         ///< and interpreters, among which the sampled one is found
};

/// Constants of the program.
struct stack_settings {
  stack_u32 legacy;         // 1: units are in the v1 hierarchy of `controller`
  stack_u32 controller;     // index in css_set::subsys
  stack_u32 by_unit;        // 1: processes in cgroups of `units`, besides those in `targets`
  stack_u32 kernel;         // 1: kernel frames, too
  stack_u32 user;           // 1: user frames
  stack_u32 pid_namespace;  // number of the one whose process numbers count; 0: the first one
};

/// A cell of an unwind table. The rows come first, by pc, each with the number of the cell that
/// holds its rule, and behind them the rules, each once: see struct UnwindRow (unwind_table.h).
struct stack_row {
  stack_u32 pc;
  stack_u32 rule;
};
struct stack_rule {
  stack_u8 cfa;
  stack_u8 rbp;
  stack_s16 rbp_offset;
  stack_s32 cfa_offset;
};

/// Executable memory of a process. The pc in the table is the address minus `bias`.
struct stack_mapping {
  stack_u64 begin;
  stack_u64 end;
  stack_u64 bias;
  stack_u32 table;  // index in `tables`
  stack_u32 rows;   // 0: it has no table, and frames are found by rbp
};

/// A process and the program that it runs: both change when it runs another program, or when its
/// number goes to another process.
struct stack_image {
  stack_u64 started;  // start of the process since boot, in ns
  stack_u64 execs;    // as task_struct::self_exec_id counts them
};

/// How a frame of Python's interpreter shows that the C function of the interpreter that runs it
/// was called for it, not for its caller: enum PythonEntry (python/interpreter.h).
enum stack_python_entry {
  STACK_PYTHON_EVERY,  // always
  STACK_PYTHON_FLAG,   // by a flag
  STACK_PYTHON_OWNER,  // by the frame below, which is of the interpreter
};

/// Where the threads and frames of a Python program are: struct PythonLayout
/// (python/interpreter.h). Offsets in bytes.
struct stack_python {
  stack_u64 interpreters;  // address of the pointer to the first one; 0: not a Python program
  stack_u32 interpreter_next;
  stack_u32 interpreter_threads;
  stack_u32 thread_next;
  stack_u32 thread_id;
  stack_u32 thread_frame;
  stack_u32 holder;        // 1: thread_frame is a pointer to what holds the pointer to the frame,
  stack_u32 holder_frame;  //    there
  stack_u32 frame_code;
  stack_u32 frame_previous;
  stack_u32 frame_entry;  // the flag or the owner
  stack_u32 entry;        // enum stack_python_entry
  stack_u32 code_name;
  stack_u32 code_first_line;
  stack_u32 unused;
};

/// A process: where its mappings are in `mappings`, sorted by address, and its Python.
struct stack_process {
  struct stack_image image;  // started = 0: of any
  stack_u32 first;
  stack_u32 count;
  struct stack_python python;
};

/// Why a user stack ends.
enum stack_end {
  STACK_END_OUTERMOST,    // at the first function of the program or thread
  STACK_END_NO_RULE,      // code without a rule, or memory that cannot be read
  STACK_END_TOO_DEEP,     // more than STACK_USER_FRAMES
  STACK_END_UNKNOWN_CODE  // an address in no mapping that was described
};

struct stack_sample {
  struct stack_image image;
  stack_u64 unit;  // number of the cgroup of the unit; 0: it is in none
  stack_u32 pid;
  stack_u32 end;      // enum stack_end
  stack_u32 unknown;  // 1: the process, or code on its stack, has not been described yet
  stack_u32 user_frames;
  stack_u32 kernel_frames;
  stack_u32 python_frames;
  stack_u32 python_cut;  // 1: there are more
  stack_u32 unused;
  char comm[16];
  // Kernel frames, then user frames, then two numbers for each Python frame, each the leaf first:
  // the address of its code object, plus 1 if the interpreter was called for it; and the line where
  // the function begins in the upper half, the lower half of the address of its name in the lower.
  // With STACK_PYTHON_OWNER, a frame of the interpreter itself, which is on the C stack, instead
  // has 1 and its address. If there are Python frames, they are followed by the stack pointers of
  // the user frames. Only what exists is sent. The next power of two, which the verifier likes.
  stack_u64 addresses[1024];
};

#ifdef __cplusplus
}  // extern "C"
}  // namespace ceems::exporter::profile
#endif

// NOLINTEND(readability-identifier-naming)
