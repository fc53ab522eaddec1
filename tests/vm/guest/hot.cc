// Uses CPU in functions with known shares, at a known depth. Usage: hot SECONDS [fork|exec]
//   fork  four children do the same, as the ranks of an MPI program do
// Below main: outer -> middle<int> -> fifty, thirty and twenty, which take 50, 30 and 20 % of the
// time.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

volatile unsigned long sink;

static unsigned long long now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<unsigned long long>(t.tv_sec) * 1000000000ULL +
         static_cast<unsigned long long>(t.tv_nsec);
}

__attribute__((noinline)) void burn(unsigned long rounds) {
  for (unsigned long i = 0; i < rounds; ++i) {
    sink = sink + i;
  }
}

extern "C" {
__attribute__((noinline)) void fifty(unsigned long unit) {
  for (unsigned long i = 0; i < 5 * unit; ++i) {
    sink = sink + i;
  }
}
__attribute__((noinline)) void thirty(unsigned long unit) {
  for (unsigned long i = 0; i < 3 * unit; ++i) {
    sink = sink + i;
  }
}
__attribute__((noinline)) void twenty(unsigned long unit) {
  burn(2 * unit);
  sink = sink + 1;  // not a tail call
}
}

template <class Number>
__attribute__((noinline)) Number middle(Number unit) {
  fifty(static_cast<unsigned long>(unit));
  thirty(static_cast<unsigned long>(unit));
  twenty(static_cast<unsigned long>(unit));
  return static_cast<Number>(sink);
}

__attribute__((noinline)) unsigned long outer(double seconds) {
  const unsigned long long end = now() + static_cast<unsigned long long>(seconds * 1e9);
  unsigned long all = 0;
  while (now() < end) {
    // Where the kernel is emulated, asking for the time takes as long as 3 % of one round. Rounds
    // are short, so that a profile has many.
    for (int round = 0; round < 10; ++round) {
      all += static_cast<unsigned long>(middle<int>(20000));
    }
  }
  return all;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 1;
  if (argc > 2 && strcmp(argv[2], "fork") == 0) {
    for (int i = 0; i < 4; ++i) {
      if (fork() == 0) {
        return outer(seconds) == 0;
      }
    }
    while (wait(nullptr) > 0) {
    }
    return 0;
  }
  if (argc > 2 && strcmp(argv[2], "exec") == 0) {
    execl(argv[0], argv[0], argv[1], static_cast<char*>(nullptr));
  }
  return outer(seconds) == 0;
}
