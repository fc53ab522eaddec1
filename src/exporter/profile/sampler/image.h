#pragma once

#include <string_view>

namespace ceems::exporter::profile {

/// The compiled program bpf/stacks.bpf.c (ELF).
extern const std::string_view kStacksBpfO;

}  // namespace ceems::exporter::profile
