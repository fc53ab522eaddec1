// Loads the libraries of the host that loaded.py made functions for: libpq and libcrypt.
#include <crypt.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

struct library {
  const char* sonames;    // with a zero byte after each, and an empty one at the end
  const char* names;      // the same
  _Atomic(void*)* slots;  // one for each name: the function, once it was called
  void* const* missing;   // one for each name: what to call where the library or the function is
                          // missing, or null
};

void* ceems_load_function(const struct library* library, int index)
    __attribute__((visibility("hidden")));

static void ceems_missing(void) {
  static const char text[] =
      "a library of the system lacks a function that was called: libpq 14 or newer is needed\n";
  fputs(text, stderr);
  abort();
}

void* ceems_load_function(const struct library* library, int index) {
  const char* name = library->names;
  for (int i = 0; i < index; ++i) {
    name += strlen(name) + 1;
  }
  void* function = NULL;
  for (const char* soname = library->sonames; function == NULL && *soname != '\0';
       soname += strlen(soname) + 1) {
    void* const handle =
        dlopen(soname, RTLD_NOW | RTLD_LOCAL);  // the same handle each time; stays loaded
    if (handle != NULL) {
      function = dlsym(handle, name);
    }
  }
  if (function == NULL) {
    function = library->missing[index] != NULL ? library->missing[index] : (void*)&ceems_missing;
  }
  atomic_store(&library->slots[index], function);
  return function;
}

// ---- without libpq: no connection can be made, and the error says why
static const char kNoLibpq[] = "libpq.so.5 of PostgreSQL 14 or newer is not installed\n";
PGconn* ceems_PQconnectdbParams_missing(void);
PQconninfoOption* ceems_PQconninfoParse_missing(const char* text, char** error);
void ceems_PQconninfoFree_missing(PQconninfoOption* options);
void ceems_PQfreemem_missing(void* memory);
int ceems_PQstatus_missing(void);
const char* ceems_PQerrorMessage_missing(void);
void ceems_PQfinish_missing(void);
PGconn* ceems_PQconnectdbParams_missing(void) {
  return NULL;
}
PQconninfoOption* ceems_PQconninfoParse_missing(const char* text, char** error) {
  (void)text;
  if (error != NULL) {
    *error = strdup(kNoLibpq);
  }
  return NULL;
}
void ceems_PQconninfoFree_missing(PQconninfoOption* options) {
  (void)options;
}
void ceems_PQfreemem_missing(void* memory) {
  free(memory);
}
int ceems_PQstatus_missing(void) {
  return CONNECTION_BAD;
}
const char* ceems_PQerrorMessage_missing(void) {
  return kNoLibpq;
}
void ceems_PQfinish_missing(void) {}

// ---- without libcrypt: no password matches
char* ceems_crypt_r_missing(void);
char* ceems_crypt_gensalt_rn_missing(void);
char* ceems_crypt_r_missing(void) {
  return NULL;
}
char* ceems_crypt_gensalt_rn_missing(void) {
  return NULL;
}
