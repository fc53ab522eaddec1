// Runs code that it has made at run time, and describes it in /tmp/perf-PID.map, as runtimes that
// compile do.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  // mov %rdi,%rcx; 1: dec %rcx; jnz 1b; ret
  static const unsigned char code[] = {0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3};
  void* memory =
      mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return 1;
  }
  memcpy(memory, code, sizeof(code));
  char name[64];
  snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(name, "w");
  if (!map) {
    return 1;
  }
  fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)memory, sizeof(code));
  fclose(map);
  void (*burn)(long) = (void (*)(long))memory;
  for (;;) {
    burn(1000000);
  }
}
