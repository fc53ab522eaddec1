#pragma once

// Names for clang's thread-safety analysis (-Wthread-safety); nothing with other compilers.
#if defined(__clang__)
#define CEEMS_GUARDED_BY(x) __attribute__((guarded_by(x)))
#define CEEMS_REQUIRES(x) __attribute__((requires_capability(x)))
#else
#define CEEMS_GUARDED_BY(x)
#define CEEMS_REQUIRES(x)
#endif
