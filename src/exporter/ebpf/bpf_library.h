#pragma once

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <memory>

#include "base/result.h"

namespace ceems::exporter::ebpf {

// NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared takes none
#define CEEMS_BPF_FUNCTION(member, function) \
  decltype(&(function)) member = reinterpret_cast<decltype(&(function))>(find(#function))
// NOLINTEND(bugprone-macro-parentheses)

/// The functions of libbpf that are used.
struct BpfLibrary {
  explicit BpfLibrary(void* loaded) : handle(loaded) {}

  void* handle;          ///< of dlopen()
  bool complete = true;  ///< the library has all of them

  CEEMS_BPF_FUNCTION(set_print, libbpf_set_print);
  CEEMS_BPF_FUNCTION(get_error, libbpf_get_error);
  CEEMS_BPF_FUNCTION(num_possible_cpus, libbpf_num_possible_cpus);
  CEEMS_BPF_FUNCTION(btf_load_vmlinux, btf__load_vmlinux_btf);
  CEEMS_BPF_FUNCTION(btf_parse_raw, btf__parse_raw);
  CEEMS_BPF_FUNCTION(btf_free, btf__free);
  CEEMS_BPF_FUNCTION(btf_find, btf__find_by_name_kind);
  CEEMS_BPF_FUNCTION(btf_type, btf__type_by_id);
  CEEMS_BPF_FUNCTION(btf_name, btf__name_by_offset);
  CEEMS_BPF_FUNCTION(object_open, bpf_object__open_mem);
  CEEMS_BPF_FUNCTION(object_load, bpf_object__load);
  CEEMS_BPF_FUNCTION(object_close, bpf_object__close);
  CEEMS_BPF_FUNCTION(object_map, bpf_object__find_map_by_name);
  CEEMS_BPF_FUNCTION(object_next_program, bpf_object__next_program);
  CEEMS_BPF_FUNCTION(program_name, bpf_program__name);
  CEEMS_BPF_FUNCTION(program_section, bpf_program__section_name);
  CEEMS_BPF_FUNCTION(program_set_autoload, bpf_program__set_autoload);
  CEEMS_BPF_FUNCTION(program_autoload, bpf_program__autoload);
  CEEMS_BPF_FUNCTION(program_attach, bpf_program__attach);
  CEEMS_BPF_FUNCTION(program_attach_iter, bpf_program__attach_iter);
  CEEMS_BPF_FUNCTION(program_fd, bpf_program__fd);
  CEEMS_BPF_FUNCTION(link_destroy, bpf_link__destroy);
  CEEMS_BPF_FUNCTION(link_fd, bpf_link__fd);
  CEEMS_BPF_FUNCTION(map_fd, bpf_map__fd);
  CEEMS_BPF_FUNCTION(map_set_max_entries, bpf_map__set_max_entries);
  CEEMS_BPF_FUNCTION(map_set_initial_value, bpf_map__set_initial_value);
  CEEMS_BPF_FUNCTION(map_lookup, bpf_map_lookup_elem);
  CEEMS_BPF_FUNCTION(map_update, bpf_map_update_elem);
  CEEMS_BPF_FUNCTION(map_delete, bpf_map_delete_elem);
  CEEMS_BPF_FUNCTION(map_lookup_batch, bpf_map_lookup_batch);
  CEEMS_BPF_FUNCTION(map_update_batch, bpf_map_update_batch);
  CEEMS_BPF_FUNCTION(map_create, bpf_map_create);
  CEEMS_BPF_FUNCTION(ring_new, ring_buffer__new);
  CEEMS_BPF_FUNCTION(ring_consume, ring_buffer__consume);
  CEEMS_BPF_FUNCTION(ring_free, ring_buffer__free);
  CEEMS_BPF_FUNCTION(iter_create, bpf_iter_create);
  CEEMS_BPF_FUNCTION(object_info, bpf_obj_get_info_by_fd);

 private:
  void* find(const char* name);
};

#undef CEEMS_BPF_FUNCTION

/// Loads libbpf.so.1 on the first call, so that an exporter without eBPF does not pay for it.
/// Returns kNotFound if it cannot be loaded. Safe for concurrent use.
Result<> load_bpf();

/// The functions of the library. Call this only after load_bpf() has succeeded.
const BpfLibrary& bpf();

/// A loaded object with its programs. Closing it ends the counting.
class BpfObject {
 public:
  BpfObject() : object_(nullptr, nullptr) {}
  explicit BpfObject(::bpf_object* object) : object_(object, bpf().object_close) {}

  [[nodiscard]] ::bpf_object* get() const { return object_.get(); }
  /// The descriptor of a table; -1 if there is no such table.
  [[nodiscard]] int map(const char* name) const {
    ::bpf_map* const map = get() == nullptr ? nullptr : bpf().object_map(get(), name);
    return map == nullptr ? -1 : bpf().map_fd(map);
  }

 private:
  std::unique_ptr<::bpf_object, void (*)(::bpf_object*)> object_;
};

}  // namespace ceems::exporter::ebpf
