#pragma once

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <memory>

#include "base/result.h"

namespace ceems::exporter::ebpf {

/// The functions of libbpf that are used.
struct BpfLibrary {
  decltype(&::libbpf_set_print) set_print = nullptr;
  decltype(&::libbpf_get_error) get_error = nullptr;
  decltype(&::libbpf_num_possible_cpus) num_possible_cpus = nullptr;
  decltype(&::btf__load_vmlinux_btf) btf_load_vmlinux = nullptr;
  decltype(&::btf__parse_raw) btf_parse_raw = nullptr;
  decltype(&::btf__free) btf_free = nullptr;
  decltype(&::btf__find_by_name_kind) btf_find = nullptr;
  decltype(&::btf__type_by_id) btf_type = nullptr;
  decltype(&::btf__name_by_offset) btf_name = nullptr;
  decltype(&::bpf_object__open_mem) object_open = nullptr;
  decltype(&::bpf_object__load) object_load = nullptr;
  decltype(&::bpf_object__close) object_close = nullptr;
  decltype(&::bpf_object__find_map_by_name) object_map = nullptr;
  decltype(&::bpf_object__next_program) object_next_program = nullptr;
  decltype(&::bpf_program__name) program_name = nullptr;
  decltype(&::bpf_program__section_name) program_section = nullptr;
  decltype(&::bpf_program__set_autoload) program_set_autoload = nullptr;
  decltype(&::bpf_program__autoload) program_autoload = nullptr;
  decltype(&::bpf_program__attach) program_attach = nullptr;
  decltype(&::bpf_program__attach_iter) program_attach_iter = nullptr;
  decltype(&::bpf_program__fd) program_fd = nullptr;
  decltype(&::bpf_link__destroy) link_destroy = nullptr;
  decltype(&::bpf_link__fd) link_fd = nullptr;
  decltype(&::bpf_map__fd) map_fd = nullptr;
  decltype(&::bpf_map__set_max_entries) map_set_max_entries = nullptr;
  decltype(&::bpf_map__set_initial_value) map_set_initial_value = nullptr;
  decltype(&::bpf_map_lookup_elem) map_lookup = nullptr;
  decltype(&::bpf_map_update_elem) map_update = nullptr;
  decltype(&::bpf_map_delete_elem) map_delete = nullptr;
  decltype(&::bpf_map_lookup_batch) map_lookup_batch = nullptr;
  decltype(&::bpf_map_update_batch) map_update_batch = nullptr;
  decltype(&::bpf_map_create) map_create = nullptr;
  decltype(&::ring_buffer__new) ring_new = nullptr;
  decltype(&::ring_buffer__consume) ring_consume = nullptr;
  decltype(&::ring_buffer__free) ring_free = nullptr;
  decltype(&::bpf_iter_create) iter_create = nullptr;
  decltype(&::bpf_obj_get_info_by_fd) object_info = nullptr;
};

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
