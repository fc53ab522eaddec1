#pragma once

// Say which mutex guards what, in the words of clang's thread-safety analysis. They are read by
// people: libstdc++'s mutexes carry no annotations, so -Wthread-safety cannot check them;
// ThreadSanitizer does.
#if defined(__clang__)
#define CEEMS_GUARDED_BY(x) __attribute__((guarded_by(x)))
#define CEEMS_REQUIRES(x) __attribute__((requires_capability(x)))
#else
#define CEEMS_GUARDED_BY(x)
#define CEEMS_REQUIRES(x)
#endif
