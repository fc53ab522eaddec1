// Has very many mappings. Usage: maps COUNT   maps its own code so often, and uses CPU time.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

volatile unsigned long turns;

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 1;
  const int fd = open("/proc/self/exe", O_RDONLY);
  for (long i = 0; i < count; ++i) {
    // The kernel joins neighbours whose offsets follow each other.
    if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, i % 2 * 4096) == MAP_FAILED) {
      return 1;
    }
  }
  for (;;) {
    ++turns;
  }
}
