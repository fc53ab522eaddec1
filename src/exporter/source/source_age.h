#pragma once

#include <chrono>
#include <string>

namespace ceems::exporter {

/// Age of the value that a collector serves from a source that it reads in a separate thread.
struct SourceAge {
  std::string source;
  std::chrono::nanoseconds age{};
};

}  // namespace ceems::exporter
