// Does known input and output for the jobs in the machine. Usage: io COMMAND ARGUMENT...
//   write DIR COUNT SIZE     COUNT writes of SIZE bytes to DIR/data
//   read DIR COUNT SIZE      the same reads
//   vectors DIR COUNT SIZE   COUNT writev and COUNT readv of two pieces of SIZE bytes
//   errors DIR COUNT         COUNT reads, writes, opens and rmdirs that fail
//   tree DIR COUNT           creates COUNT files and COUNT directories, then removes them
//   copy DIR SIZE            a copy_file_range and a sendfile of SIZE bytes each
//   fsync DIR COUNT          COUNT writes of a byte, each with an fsync
//   serve ADDRESS PORT BYTES       accepts a TCP connection and reads BYTES
//   send ADDRESS PORT BYTES [HOLD] connects, sends BYTES in pieces of 1000, waits HOLD seconds
//   udp ADDRESS PORT COUNT SIZE    sends COUNT messages to a socket of its own and reads them
//   mapped PORT COUNT SIZE         the same from an IPv6 socket to an IPv4 address
//   refused PORT                   a TCP send that fails
//   time-write DIR COUNT     nanoseconds per write of 4096 bytes (fastest of five rounds)
//   time-ping COUNT          nanoseconds per round trip of a byte over TCP (fastest of five rounds)
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 20];

static void must(int good, const char* what) {
  if (!good) {
    perror(what);
    exit(1);
  }
}

static const char* in(const char* directory, const char* name) {
  static char path[2][512];
  static int which;
  which ^= 1;
  snprintf(path[which], sizeof(path[which]), "%s/%s", directory, name);
  return path[which];
}

static int open_data(const char* directory, int flags) {
  const int fd = open(in(directory, "data"), flags, 0600);
  must(fd >= 0, "open");
  return fd;
}

static void write_all(const char* directory, long count, size_t size) {
  const int fd = open_data(directory, O_WRONLY | O_CREAT | O_TRUNC);
  for (long i = 0; i < count; ++i) {
    must(write(fd, block, size) == (ssize_t)size, "write");
  }
  close(fd);
}

static void read_all(const char* directory, long count, size_t size) {
  const int fd = open_data(directory, O_RDONLY);
  for (long i = 0; i < count; ++i) {
    must(read(fd, block, size) == (ssize_t)size, "read");
  }
  close(fd);
}

static void vectors(const char* directory, long count, size_t size) {
  const int fd = open_data(directory, O_RDWR | O_CREAT | O_TRUNC);
  struct iovec pieces[2] = {{block, size}, {block + size, size}};
  for (long i = 0; i < count; ++i) {
    must(writev(fd, pieces, 2) == (ssize_t)(2 * size), "writev");
  }
  lseek(fd, 0, SEEK_SET);
  for (long i = 0; i < count; ++i) {
    must(readv(fd, pieces, 2) == (ssize_t)(2 * size), "readv");
  }
  close(fd);
}

static void errors(const char* directory, long count) {
  const int reader = open_data(directory, O_RDONLY | O_CREAT);
  const int writer = open_data(directory, O_WRONLY);
  mkdir(in(directory, "full"), 0700);
  mkdir(in(directory, "full/inner"), 0700);
  mkfifo(in(directory, "fifo"), 0600);
  for (long i = 0; i < count; ++i) {
    must(write(reader, block, 1) < 0, "write to a reader");
    must(read(writer, block, 1) < 0, "read from a writer");
    must(rmdir(in(directory, "full")) < 0, "rmdir of a full directory");
    must(open(in(directory, "fifo"), O_WRONLY | O_NONBLOCK) < 0, "open of a fifo without reader");
  }
}

static void tree(const char* directory, long count) {
  char name[64];
  for (long i = 0; i < count; ++i) {
    snprintf(name, sizeof(name), "file%ld", i);
    const int fd = open(in(directory, name), O_WRONLY | O_CREAT | O_EXCL, 0600);
    must(fd >= 0, "create");
    close(fd);
    snprintf(name, sizeof(name), "dir%ld", i);
    must(mkdir(in(directory, name), 0700) == 0, "mkdir");
  }
  for (long i = 0; i < count; ++i) {
    snprintf(name, sizeof(name), "file%ld", i);
    must(unlink(in(directory, name)) == 0, "unlink");
    snprintf(name, sizeof(name), "dir%ld", i);
    must(rmdir(in(directory, name)) == 0, "rmdir");
  }
}

static void copy(const char* directory, size_t size) {
  const int from = open_data(directory, O_RDWR | O_CREAT | O_TRUNC);
  must(ftruncate(from, (off_t)size) == 0, "ftruncate");
  const int to = open(in(directory, "copy"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  must(to >= 0, "open copy");
  for (size_t left = size; left > 0;) {
    const ssize_t done = copy_file_range(from, NULL, to, NULL, left, 0);
    must(done > 0, "copy_file_range");
    left -= (size_t)done;
  }
  off_t at = 0;
  for (size_t left = size; left > 0;) {
    const ssize_t done = sendfile(to, from, &at, left);
    must(done > 0, "sendfile");
    left -= (size_t)done;
  }
}

static void sync_all(const char* directory, long count) {
  const int fd = open_data(directory, O_WRONLY | O_CREAT);
  for (long i = 0; i < count; ++i) {
    must(write(fd, block, 1) == 1 && fsync(fd) == 0, "fsync");
  }
}

struct address {
  struct sockaddr_storage storage;
  socklen_t size;
};

static struct address address_of(const char* text, int port) {
  struct address a = {.size = sizeof(struct sockaddr_in)};
  struct sockaddr_in* v4 = (struct sockaddr_in*)&a.storage;
  struct sockaddr_in6* v6 = (struct sockaddr_in6*)&a.storage;
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons((unsigned short)port);
    return a;
  }
  must(inet_pton(AF_INET6, text, &v6->sin6_addr) == 1, "address");
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons((unsigned short)port);
  a.size = sizeof(*v6);
  return a;
}

static int listen_on(const char* text, int port) {
  const struct address a = address_of(text, port);
  const int fd = socket(a.storage.ss_family, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  must(bind(fd, (const struct sockaddr*)&a.storage, a.size) == 0 && listen(fd, 5) == 0, "listen");
  return fd;
}

static int connect_to(const char* text, int port) {
  const struct address a = address_of(text, port);
  for (int i = 0; i < 100; ++i) {
    const int fd = socket(a.storage.ss_family, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr*)&a.storage, a.size) == 0) {
      return fd;
    }
    close(fd);
    usleep(50000);
  }
  must(0, "connect");
  return -1;
}

static void serve(const char* text, int port, long bytes) {
  const int fd = accept(listen_on(text, port), NULL, NULL);
  must(fd >= 0, "accept");
  while (bytes > 0) {
    const ssize_t got = read(fd, block, sizeof(block));
    must(got > 0, "receive");
    bytes -= got;
  }
  while (read(fd, block, sizeof(block)) > 0) {
  }
}

static void send_all(const char* text, int port, long bytes, unsigned hold) {
  const int fd = connect_to(text, port);
  for (long sent = 0; sent < bytes; sent += 1000) {
    must(send(fd, block, 1000, 0) == 1000, "send");
  }
  sleep(hold);
}

static void udp(const char* text, int port, long count, size_t size, int mapped) {
  struct address to = address_of(text, port);
  const int receiver = socket(to.storage.ss_family, SOCK_DGRAM, 0);
  must(bind(receiver, (struct sockaddr*)&to.storage, to.size) == 0, "bind");
  int sender = socket(to.storage.ss_family, SOCK_DGRAM, 0);
  if (mapped) {
    to = address_of("::ffff:127.0.0.1", port);
    sender = socket(AF_INET6, SOCK_DGRAM, 0);
  }
  for (long i = 0; i < count; ++i) {
    must(sendto(sender, block, size, 0, (struct sockaddr*)&to.storage, to.size) == (ssize_t)size,
         "sendto");
    must(recv(receiver, block, sizeof(block), MSG_PEEK) == (ssize_t)size, "peek");
    must(recv(receiver, block, sizeof(block), 0) == (ssize_t)size, "recv");
  }
}

static void refused(int port) {
  const int server = listen_on("127.0.0.1", port);
  const int fd = connect_to("127.0.0.1", port);
  close(server);  // resets the connection that was not accepted
  usleep(100000);
  signal(SIGPIPE, SIG_IGN);
  while (send(fd, block, 1, 0) == 1) {
    usleep(10000);
  }
}

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void time_write(const char* directory, long count) {
  const int fd = open_data(directory, O_WRONLY | O_CREAT | O_TRUNC);
  long long best = 0;
  for (int round = 0; round < 5; ++round) {
    const long long begin = now();
    for (long i = 0; i < count; ++i) {
      must(pwrite(fd, block, 4096, 0) == 4096, "write");
    }
    const long long took = now() - begin;
    if (best == 0 || took < best) {
      best = took;
    }
  }
  printf("%.1f\n", (double)best / (double)count);
}

static void time_ping(long count) {
  const int server = listen_on("127.0.0.1", 7100);
  const int one = 1;
  if (fork() == 0) {
    const int fd = accept(server, NULL, NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    char byte;
    while (read(fd, &byte, 1) == 1) {
      must(write(fd, &byte, 1) == 1, "pong");
    }
    _exit(0);
  }
  const int fd = connect_to("127.0.0.1", 7100);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  long long best = 0;
  for (int round = 0; round < 5; ++round) {
    const long long begin = now();
    for (long i = 0; i < count; ++i) {
      must(write(fd, block, 1) == 1 && read(fd, block, 1) == 1, "ping");
    }
    const long long took = now() - begin;
    if (best == 0 || took < best) {
      best = took;
    }
  }
  close(fd);
  wait(NULL);
  printf("%.1f\n", (double)best / (double)count);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const char* first = argc > 2 ? argv[2] : "";
  const long number[] = {atol(first), argc > 3 ? atol(argv[3]) : 0, argc > 4 ? atol(argv[4]) : 0,
                         argc > 5 ? atol(argv[5]) : 0};
  if (!strcmp(what, "write")) {
    write_all(first, number[1], (size_t)number[2]);
  } else if (!strcmp(what, "read")) {
    read_all(first, number[1], (size_t)number[2]);
  } else if (!strcmp(what, "vectors")) {
    vectors(first, number[1], (size_t)number[2]);
  } else if (!strcmp(what, "errors")) {
    errors(first, number[1]);
  } else if (!strcmp(what, "tree")) {
    tree(first, number[1]);
  } else if (!strcmp(what, "copy")) {
    copy(first, (size_t)number[1]);
  } else if (!strcmp(what, "fsync")) {
    sync_all(first, number[1]);
  } else if (!strcmp(what, "serve")) {
    serve(first, (int)number[1], number[2]);
  } else if (!strcmp(what, "send")) {
    send_all(first, (int)number[1], number[2], (unsigned)number[3]);
  } else if (!strcmp(what, "udp")) {
    udp(first, (int)number[1], number[2], (size_t)number[3], 0);
  } else if (!strcmp(what, "mapped")) {
    udp("127.0.0.1", (int)number[0], number[1], (size_t)number[2], 1);
  } else if (!strcmp(what, "refused")) {
    refused((int)number[0]);
  } else if (!strcmp(what, "time-write")) {
    time_write(first, number[1]);
  } else if (!strcmp(what, "time-ping")) {
    time_ping(number[0]);
  } else {
    fprintf(stderr, "io: unknown command '%s'\n", what);
    return 2;
  }
  return 0;
}
