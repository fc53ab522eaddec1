#include "exporter/gpu/library/shared_library.h"

#include <dlfcn.h>

#include "base/strings.h"

namespace ceems::exporter::gpu {

void SharedLibrary::Close::operator()(void* handle) const {
  static_cast<void>(dlclose(handle));
}

Result<SharedLibrary> SharedLibrary::open(std::span<const std::string> names) {
  std::string errors;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return SharedLibrary(handle, name);
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps the text by thread
    const char* error = dlerror();
    errors += errors.empty() ? "" : "; ";
    errors += printable(error == nullptr ? "unknown error" : error, 256);
  }
  return fail(ErrorCode::kNotFound, "{}", errors.empty() ? "no library was given" : errors);
}

void* SharedLibrary::address(const char* name) const {
  return dlsym(handle_.get(), name);
}

}  // namespace ceems::exporter::gpu
