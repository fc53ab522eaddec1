#pragma once

#include <memory>

#include "exporter/ebpf/bpf_library.h"

namespace ceems::exporter::ebpf {

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
