// Starts a program that is linked with the libraries of glibc_stubs.py. Since 2.34, glibc runs the constructors of the program itself and
// the start code passes no function for it. Older ones expect one.
#include <stddef.h>

typedef void (*constructor)(int, char**, char**);
extern constructor __preinit_array_start[] __attribute__((visibility("hidden")));
extern constructor __preinit_array_end[] __attribute__((visibility("hidden")));
extern constructor __init_array_start[] __attribute__((visibility("hidden")));
extern constructor __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void) __attribute__((visibility("hidden")));

static int run_constructors(int argc, char** argv, char** env) {
  for (constructor* next = __preinit_array_start; next != __preinit_array_end; ++next) {
    (*next)(argc, argv, env);
  }
  _init();
  for (constructor* next = __init_array_start; next != __init_array_end; ++next) {
    (*next)(argc, argv, env);
  }
  return 0;
}

typedef int (*main_function)(int, char**, char**);
int __real___libc_start_main(main_function,
                             int,
                             char**,
                             int (*)(int, char**, char**),
                             void (*)(void),
                             void (*)(void),
                             void*);
int __wrap___libc_start_main(main_function run,
                             int argc,
                             char** argv,
                             int (*init)(int, char**, char**),
                             void (*fini)(void),
                             void (*end_of_loader)(void),
                             void* stack_end);
int __wrap___libc_start_main(main_function run,
                             int argc,
                             char** argv,
                             int (*init)(int, char**, char**),
                             void (*fini)(void),
                             void (*end_of_loader)(void),
                             void* stack_end) {
  (void)init;
  (void)fini;  // the loader runs the destructors, in all versions
  return __real___libc_start_main(run, argc, argv, run_constructors, NULL, end_of_loader,
                                  stack_end);
}

