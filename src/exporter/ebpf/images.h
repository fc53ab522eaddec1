#pragma once

#include <string_view>

namespace ceems::exporter::ebpf {

/// The compiled programs of bpf/files.bpf.c and bpf/network.bpf.c (ELF).
extern const std::string_view kFilesBpfO;
extern const std::string_view kNetworkBpfO;

}  // namespace ceems::exporter::ebpf
