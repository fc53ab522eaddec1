#pragma once

#include <chrono>
#include <string>

namespace ceems::exporter {

/// Age of what a collector serves from a source that it reads by a thread of its own.
struct SourceAge {
  std::string source;
  std::chrono::nanoseconds age{};
};

}  // namespace ceems::exporter
