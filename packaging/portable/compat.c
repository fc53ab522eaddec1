// Functions that glibc got after 2.28, for programs that are linked with the libraries of
// glibc_stubs.py. Where the glibc that the program runs with has the function, and it matters, that
// one is used.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// ---- 2.32
// libstdc++ leaves out atomic operations while this is set. Never set is always right.
char __libc_single_threaded __attribute__((visibility("hidden"))) = 0;

// ---- 2.33: before, these were inline functions around those with an underscore
#if defined(__x86_64__)
enum { kStatVersion = 1 };  // _STAT_VER
#elif defined(__aarch64__)
enum { kStatVersion = 0 };
#else
#error "which _STAT_VER has this machine?"
#endif
int __xstat(int version, const char* path, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int fd, struct stat* out);
int __fxstatat(int version, int fd, const char* path, struct stat* out, int flags);
int stat(const char* path, struct stat* out) {
  return __xstat(kStatVersion, path, out);
}
int lstat(const char* path, struct stat* out) {
  return __lxstat(kStatVersion, path, out);
}
int fstat(int fd, struct stat* out) {
  return __fxstat(kStatVersion, fd, out);
}
int fstatat(int fd, const char* path, struct stat* out, int flags) {
  return __fxstatat(kStatVersion, fd, path, out, flags);
}
// The same structure on 64-bit machines.
int stat64(const char* path, struct stat64* out) {
  return __xstat(kStatVersion, path, (struct stat*)out);
}
int lstat64(const char* path, struct stat64* out) {
  return __lxstat(kStatVersion, path, (struct stat*)out);
}
int fstat64(int fd, struct stat64* out) {
  return __fxstat(kStatVersion, fd, (struct stat*)out);
}
int fstatat64(int fd, const char* path, struct stat64* out, int flags) {
  return __fxstatat(kStatVersion, fd, path, (struct stat*)out, flags);
}

// ---- system calls: 2.30, 2.34
pid_t gettid(void) {
  return (pid_t)syscall(SYS_gettid);
}
ssize_t getdents64(int fd, void* buffer, size_t size) {
  return syscall(SYS_getdents64, fd, buffer, size);
}
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
int close_range(unsigned first, unsigned last, int flags) {
  return (int)syscall(SYS_close_range, first, last, flags);
}

// ---- 2.36
uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0) {
    abort();
  }
  return value;
}

// ---- 2.30: waiting for a time of another clock than the real one
typedef int (*clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static const int64_t kSecond = 1000000000;

static int64_t nanoseconds(const struct timespec* time) {
  return (int64_t)time->tv_sec * kSecond + time->tv_nsec;
}

static int64_t now_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return nanoseconds(&now);
}

// Waits for at most a second at a time, because the real clock may be set meanwhile, and then
// returns as if woken for no reason, which callers expect of condition variables.
static int wait_by_real_clock(pthread_cond_t* condition,
                              pthread_mutex_t* mutex,
                              clockid_t clock,
                              const struct timespec* until) {
  int64_t left = nanoseconds(until) - now_of(clock);
  const int last = left <= kSecond;
  if (left < 0) {
    left = 0;
  } else if (!last) {
    left = kSecond;
  }
  const int64_t end = now_of(CLOCK_REALTIME) + left;
  const struct timespec end_time = {.tv_sec = end / kSecond, .tv_nsec = end % kSecond};
  const int status = pthread_cond_timedwait(condition, mutex, &end_time);
  if (status != ETIMEDOUT) {
    return status;
  }
  return nanoseconds(until) <= now_of(clock) ? ETIMEDOUT : 0;
}

int pthread_cond_clockwait(pthread_cond_t* condition,
                           pthread_mutex_t* mutex,
                           clockid_t clock,
                           const struct timespec* until) {
  static _Atomic(uintptr_t) known = 0;
  uintptr_t function = known;
  if (function == 0) {
    function = (uintptr_t)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    if (function == 0) {
      function = (uintptr_t)&wait_by_real_clock;
    }
    known = function;
  }
  return ((clockwait)function)(condition, mutex, clock, until);
}

// ---- 2.35: how exceptions find the unwind information of a function. The structure is that of
// <dlfcn.h>.
struct search {
  uintptr_t pc;
  struct dl_find_object* out;
};

static int visit(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  void* frames = NULL;
  int inside = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_LOAD) {
      begin = from < begin ? from : begin;
      end = from + header->p_memsz > end ? from + header->p_memsz : end;
      inside |= search->pc >= from && search->pc < from + header->p_memsz;
    } else if (header->p_type == PT_GNU_EH_FRAME) {
      frames = (void*)from;
    }
  }
  if (!inside) {
    return 0;
  }
  search->out->dlfo_flags = 0;
  search->out->dlfo_map_start = (void*)begin;
  search->out->dlfo_map_end = (void*)end;
  search->out->dlfo_link_map = NULL;
  search->out->dlfo_eh_frame = frames;
  return 1;
}

int _dl_find_object(void* pc, struct dl_find_object* out) {
  struct search search = {.pc = (uintptr_t)pc, .out = out};
  return dl_iterate_phdr(visit, &search) == 1 && out->dlfo_eh_frame != NULL ? 0 : -1;
}
