#pragma once

#include <string_view>

#include "metrics/desc.h"
#include "metrics/sink.h"

namespace ceems::metrics {

/// The family "PROGRAM_build_info": the value is always 1, the version is in the labels. Labels
/// that only apply to Go programs are empty.
Desc build_info(std::string_view program);
void add_build_info(Sink& sink, const Desc& desc);

}  // namespace ceems::metrics
