#include "exporter/ebpf/bpf_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdio>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::exporter::ebpf {
namespace {

constexpr const char* kName = "libbpf.so.1";

/// The library's own messages, without the verifier's log of a program, which has many lines.
int print(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) {
    return 0;
  }
  std::array<char, 512> text{};
  const int size = std::vsnprintf(text.data(), text.size(), format, arguments);
  const std::string_view line = trim(std::string_view(text.data()));
  if (line.find("PROG LOAD LOG") == std::string_view::npos) {
    log::debug("libbpf", {{"message", printable(line, text.size())}});
  }
  return size;
}

/// Loads the library, which stays loaded until the program ends.
Result<BpfLibrary> load() {
  void* const handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps the text per thread
    const char* const error = dlerror();
    return fail(ErrorCode::kNotFound, "libbpf cannot be loaded: {}",
                printable(error == nullptr ? kName : error, 256));
  }
  const BpfLibrary library(handle);
  if (!library.complete) {
    return fail(ErrorCode::kNotFound, "{} is too old: 1.0 is needed", kName);
  }
  library.set_print(print);
  return library;
}

const Result<BpfLibrary>& library() {
  static const Result<BpfLibrary> kLibrary = load();
  return kLibrary;
}

}  // namespace

void* BpfLibrary::find(const char* name) {
  void* const found = dlsym(handle, name);
  complete = complete && found != nullptr;
  return found;
}

Result<> load_bpf() {
  if (!library()) {
    return fail(library().error());
  }
  return {};
}

const BpfLibrary& bpf() {
  return *library();
}

}  // namespace ceems::exporter::ebpf
