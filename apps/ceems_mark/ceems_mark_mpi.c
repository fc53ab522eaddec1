/* ceems_mark_mpi.c: marks of MPI programs that are not changed, for the exporter of CEEMS
 * (docs/marks.md). To be compiled with the MPI that the programs use:
 *
 *   mpicc -shared -fPIC ceems_mark_mpi.c -o libceems_mark_mpi.so
 *   srun env LD_PRELOAD=$PWD/libceems_mark_mpi.so ./program
 *
 * or linked with a program like any other source. The first rank on each node marks the region
 * `mpi` from MPI_Init to MPI_Finalize, and the numbers of ranks, as figures of merit: `mpi_ranks`
 * on this node and `mpi_size` of all.
 *
 * With CEEMS_MARK_PCONTROL=names in the environment, MPI_Pcontrol(1, "name") begins a region and
 * MPI_Pcontrol(-1, "name") ends it, as with IPM and Intel MPI. Only a program that always gives a
 * name with these two levels may be run like this: the MPI standard does not ask for one, and C
 * cannot tell whether it was given.
 *
 * It uses the profiling interface of MPI 3, so other tools that do, too, have to come after it.
 */
#include <mpi.h>
#include <stdarg.h>

#include "ceems_mark.h"

static int is_started = 0;
static int is_first = 0; /* the first rank on this node */
static int is_named = 0;

static void begin_mpi(void) {
  const char* names = getenv("CEEMS_MARK_PCONTROL");
  MPI_Comm node;
  int ready = 0;
  int rank = 0;
  int ranks = 0;
  int size = 0;
  if (is_started || PMPI_Initialized(&ready) != MPI_SUCCESS || !ready) {
    return;
  }
  is_started = 1;
  if (PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) !=
      MPI_SUCCESS) {
    return;
  }
  PMPI_Comm_rank(node, &rank);
  PMPI_Comm_size(node, &ranks);
  PMPI_Comm_free(&node);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    is_first = 1;
    is_named = names != NULL && strcmp(names, "names") == 0;
    ceems_mark_begin("mpi");
    ceems_mark_fom("mpi_ranks", ranks, NULL);
    ceems_mark_fom("mpi_size", size, NULL);
  }
}

static void end_mpi(void) {
  if (is_first) {
    ceems_mark_end("mpi");
    is_first = 0;
  }
}

int MPI_Init(int* argc, char*** argv) {
  const int status = PMPI_Init(argc, argv);
  begin_mpi();
  return status;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int status = PMPI_Init_thread(argc, argv, required, provided);
  begin_mpi();
  return status;
}

int MPI_Finalize(void) {
  end_mpi();
  return PMPI_Finalize();
}

int MPI_Pcontrol(const int level, ...) {
  if (is_first && is_named && (level == 1 || level == -1)) {
    va_list arguments;
    const char* name;
    va_start(arguments, level);
    name = va_arg(arguments, const char*);
    va_end(arguments);
    if (name != NULL) {
      level == 1 ? ceems_mark_begin(name) : ceems_mark_end(name);
    }
  }
  return PMPI_Pcontrol(level);
}

/* The functions that Fortran calls, by the names that GNU, Intel and LLVM compilers give them, and
 * those of the profiling interface below them. They may call the functions of C or not. */
#define CEEMS_MARK_FORTRAN(profiling, suffix)                                             \
  extern void profiling##_init_##suffix(int* status) __attribute__((weak));               \
  extern void profiling##_init_thread_##suffix(int* required, int* provided, int* status) \
      __attribute__((weak));                                                              \
  extern void profiling##_finalize_##suffix(int* status) __attribute__((weak));           \
  void mpi_init_##suffix(int* status) {                                                   \
    profiling##_init_##suffix(status);                                                    \
    begin_mpi();                                                                          \
  }                                                                                       \
  void mpi_init_thread_##suffix(int* required, int* provided, int* status) {              \
    profiling##_init_thread_##suffix(required, provided, status);                         \
    begin_mpi();                                                                          \
  }                                                                                       \
  void mpi_finalize_##suffix(int* status) {                                               \
    end_mpi();                                                                            \
    profiling##_finalize_##suffix(status);                                                \
  }
CEEMS_MARK_FORTRAN(pmpi, )
/* The module mpi_f08. */
#if defined(OPEN_MPI)
CEEMS_MARK_FORTRAN(pmpi, f08_)
#elif defined(MPICH_VERSION)
CEEMS_MARK_FORTRAN(pmpir, f08_)
#endif
