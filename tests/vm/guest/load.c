// Generates known loads for the jobs in the machine. Usage: load
//   spin                    uses CPU until it is killed
//   burn SECONDS            uses this much CPU time and ends
//   hold MIB                holds this much anonymous memory until it is killed
//   write FILE MIB          writes past the page cache and ends
//   events FAULTS SWITCHES  causes this many page faults and sleeps, and ends
#define _GNU_SOURCE  // O_DIRECT
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)

static volatile unsigned long sink;

static char *map(size_t size) {
  char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE) != 0) {
    perror("load: memory");
    exit(1);
  }
  return memory;
}

static void touch(char *memory, size_t pages) {
  for (size_t i = 0; i < pages; ++i) memory[i * PAGE] = 1;
}

static int write_file(const char *path, size_t mebibytes) {
  char *block = map(MIB);
  touch(block, MIB / PAGE);
  const int fd = open(path, O_WRONLY | O_DIRECT);
  if (fd < 0) return 1;
  for (size_t i = 0; i < mebibytes; ++i) {
    if (write(fd, block, MIB) != (ssize_t)MIB) return 1;
  }
  return close(fd) != 0;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  const size_t first = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
  const size_t second = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
  if (strcmp(what, "spin") == 0) {
    for (;;) ++sink;
  }
  if (strcmp(what, "burn") == 0) {
    while ((size_t)clock() < first * CLOCKS_PER_SEC) {
      for (int i = 0; i < 100000; ++i) ++sink;
    }
    return 0;
  }
  if (strcmp(what, "hold") == 0) {
    touch(map(first * MIB), first * MIB / PAGE);
    for (;;) pause();
  }
  if (strcmp(what, "write") == 0) return write_file(argv[2], second);
  if (strcmp(what, "events") == 0) {
    touch(map(first * PAGE), first);
    for (size_t i = 0; i < second; ++i) usleep(1000);
    return 0;
  }
  fprintf(stderr, "load: what?\n");
  return 2;
}
