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

class Finder {
 public:
  explicit Finder(void* handle) : handle_(handle) {}

  template <class Function>
  Finder& find(const char* name, Function& function) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    complete_ = complete_ && function != nullptr;
    return *this;
  }

  [[nodiscard]] bool complete() const { return complete_; }

 private:
  void* handle_;
  bool complete_ = true;
};

bool find_all(void* handle, BpfLibrary& library) {
  return Finder(handle)
      .find("libbpf_set_print", library.set_print)
      .find("libbpf_get_error", library.get_error)
      .find("libbpf_num_possible_cpus", library.num_possible_cpus)
      .find("btf__load_vmlinux_btf", library.btf_load_vmlinux)
      .find("btf__parse_raw", library.btf_parse_raw)
      .find("btf__free", library.btf_free)
      .find("btf__find_by_name_kind", library.btf_find)
      .find("btf__type_by_id", library.btf_type)
      .find("btf__name_by_offset", library.btf_name)
      .find("bpf_object__open_mem", library.object_open)
      .find("bpf_object__load", library.object_load)
      .find("bpf_object__close", library.object_close)
      .find("bpf_object__find_map_by_name", library.object_map)
      .find("bpf_object__next_program", library.object_next_program)
      .find("bpf_program__name", library.program_name)
      .find("bpf_program__section_name", library.program_section)
      .find("bpf_program__set_autoload", library.program_set_autoload)
      .find("bpf_program__autoload", library.program_autoload)
      .find("bpf_program__attach", library.program_attach)
      .find("bpf_program__attach_iter", library.program_attach_iter)
      .find("bpf_program__fd", library.program_fd)
      .find("bpf_link__destroy", library.link_destroy)
      .find("bpf_link__fd", library.link_fd)
      .find("bpf_map__fd", library.map_fd)
      .find("bpf_map__set_max_entries", library.map_set_max_entries)
      .find("bpf_map__set_initial_value", library.map_set_initial_value)
      .find("bpf_map_lookup_elem", library.map_lookup)
      .find("bpf_map_update_elem", library.map_update)
      .find("bpf_map_delete_elem", library.map_delete)
      .find("bpf_map_lookup_batch", library.map_lookup_batch)
      .find("bpf_map_update_batch", library.map_update_batch)
      .find("bpf_map_create", library.map_create)
      .find("ring_buffer__new", library.ring_new)
      .find("ring_buffer__consume", library.ring_consume)
      .find("ring_buffer__free", library.ring_free)
      .find("bpf_iter_create", library.iter_create)
      .find("bpf_obj_get_info_by_fd", library.object_info)
      .complete();
}

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
  BpfLibrary library;
  if (!find_all(handle, library)) {
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
