/* ceems_mark.h: tells the exporter of CEEMS on this node what a program is doing, so that its
 * energy can be shown by region and by result.
 *
 *   #include "ceems_mark.h"
 *   ceems_mark_begin("solve");
 *   ...
 *   ceems_mark_result("step", 50, NULL);
 *   ceems_mark_end("solve");
 *
 * A call takes some microseconds and never waits: without the exporter it does nothing, and what
 * the exporter cannot take is dropped and counted. Functions return 0, or -1 if the mark was
 * dropped. They may be called from any thread and in C++. No thread, no allocation, and nothing to
 * link. C99 with the attribute `weak` of GCC and Clang, by which all sources of a program share one
 * connection. After a fork, the child connects by itself.
 *
 * Names start with a letter and have letters, digits and "_.-", at most 32. The socket is
 * $CEEMS_MARK_SOCKET or /run/ceems/mark.sock.
 *
 * For other languages, this file can be compiled as a source:
 *
 *   cc -x c -DCEEMS_MARK_API= -c ceems_mark.h -o ceems_mark.o
 */
#ifndef CEEMS_MARK_H
#define CEEMS_MARK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef CEEMS_MARK_API
#define CEEMS_MARK_API static inline
#endif
#define CEEMS_MARK_SOCKET "/run/ceems/mark.sock"
#define CEEMS_MARK_RETRY 5 /* seconds between two attempts to connect */

#ifdef __cplusplus
extern "C" {
#endif

struct ceems_mark_state {
  int fd; /* -1: not connected */
  int busy;
  long pid; /* of the process that connected */
  time_t retry_at;
  unsigned long dropped;
};
extern struct ceems_mark_state ceems_mark_state_;
__attribute__((weak)) struct ceems_mark_state ceems_mark_state_ = {-1, 0, 0, 0, 0};

/* Connects without waiting. With `attach`, regions that are open when the process ends end with it.
 */
CEEMS_MARK_API int ceems_mark_connect_(int attach) {
  struct ceems_mark_state* state = &ceems_mark_state_;
  const char* path = getenv("CEEMS_MARK_SOCKET");
  struct sockaddr_un address;
  int fd;
  path = path != NULL && path[0] != '\0' ? path : CEEMS_MARK_SOCKET;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) {
    return -1;
  }
  memcpy(address.sun_path, path, strlen(path));
  fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return -1;
  }
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0 ||
      (attach && send(fd, "attach", 6, MSG_DONTWAIT | MSG_NOSIGNAL) != 6)) {
    close(fd);
    return -1;
  }
  state->pid = (long)getpid();
  __sync_synchronize();
  state->fd = fd;
  return fd;
}

/* The connection of this process, or -1. */
CEEMS_MARK_API int ceems_mark_socket_(void) {
  struct ceems_mark_state* state = &ceems_mark_state_;
  int fd = *(volatile int*)&state->fd;
  time_t now;
  if (fd >= 0 && state->pid == (long)getpid()) {
    return fd;
  }
  now = time(NULL);
  if ((fd < 0 && now < state->retry_at) || __sync_lock_test_and_set(&state->busy, 1) != 0) {
    return -1;
  }
  if (fd >= 0) { /* it belongs to the parent process */
    state->fd = -1;
    close(fd);
  }
  fd = ceems_mark_connect_(1);
  state->retry_at = now + CEEMS_MARK_RETRY;
  __sync_lock_release(&state->busy);
  return fd;
}

/* Sends one message. */
CEEMS_MARK_API int ceems_mark_send(const char* text) {
  struct ceems_mark_state* state = &ceems_mark_state_;
  const size_t length = strlen(text);
  const int saved = errno;
  int attempt;
  for (attempt = 0; attempt < 2; ++attempt) {
    const int fd = ceems_mark_socket_();
    if (fd < 0) {
      break;
    }
    if (send(fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length) {
      errno = saved;
      return 0;
    }
    if (errno == EAGAIN || errno == EMSGSIZE || errno == ENOBUFS || errno == ENOMEM) {
      break;
    }
    if (__sync_bool_compare_and_swap(&state->fd, fd, -1)) { /* the exporter has ended or refused */
      close(fd);
    }
  }
  __sync_fetch_and_add(&state->dropped, 1UL);
  errno = saved;
  return -1;
}

CEEMS_MARK_API int ceems_mark_say_(const char* verb,
                                   const char* first,
                                   const char* second,
                                   const char* third) {
  char text[257];
  const int length = snprintf(text, sizeof text, "%s %s %s %s", verb, first, second, third);
  if (length < 0 || (size_t)length >= sizeof text) {
    __sync_fetch_and_add(&ceems_mark_state_.dropped, 1UL);
    return -1;
  }
  return ceems_mark_send(text);
}

/* A number in the form of all locales. */
CEEMS_MARK_API void ceems_mark_number_(char* text, size_t size, double value) {
  char* at;
  snprintf(text, size, "%.15g", value);
  for (at = text; *at != '\0'; ++at) {
    *at = *at == ',' ? '.' : *at;
  }
}

/* A region of the program begins. Regions may be nested up to 8 deep; one of the same name ends
 * first. */
CEEMS_MARK_API int ceems_mark_begin(const char* name) {
  return ceems_mark_say_("begin", name, "", "");
}

CEEMS_MARK_API int ceems_mark_end(const char* name) {
  return ceems_mark_say_("end", name, "", "");
}

/* `n` more results. `unit` is a unit of measurement, such as "ns", or NULL. Each result is to be
 * counted once, by one rank. */
CEEMS_MARK_API int ceems_mark_result(const char* name, double n, const char* unit) {
  char number[40];
  ceems_mark_number_(number, sizeof number, n);
  return ceems_mark_say_("result", name, number, unit != NULL ? unit : "");
}

/* The same by a running number: the first one of a run is where counting begins. */
CEEMS_MARK_API int ceems_mark_progress(double n, const char* name) {
  char number[40];
  ceems_mark_number_(number, sizeof number, n);
  return ceems_mark_say_("progress", number, name, "");
}

/* A figure of merit, such as ("speed", 83.2, "ns/day"); `unit` may be NULL. */
CEEMS_MARK_API int ceems_mark_fom(const char* name, double value, const char* unit) {
  char number[40];
  ceems_mark_number_(number, sizeof number, value);
  return ceems_mark_say_("fom", name, number, unit != NULL ? unit : "");
}

/* How many marks this process could not send. */
CEEMS_MARK_API unsigned long ceems_mark_dropped(void) {
  return ceems_mark_state_.dropped;
}

#ifdef __cplusplus
}
#endif
#endif
