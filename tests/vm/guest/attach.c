// Attaches the programs of a BPF object until it is killed. Usage: attach FILE
#include <bpf/libbpf.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  struct bpf_object* object = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
  if (libbpf_get_error(object) || !object || bpf_object__load(object) != 0) {
    return 1;
  }
  struct bpf_program* program;
  bpf_object__for_each_program(program, object) {
    if (libbpf_get_error(bpf_program__attach(program))) {
      return 1;
    }
  }
  puts("attached");
  fflush(stdout);
  pause();
  return 0;
}
